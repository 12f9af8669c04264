"""The sink: `df.writeStream.format("gapless")` and `df.write.format("gapless")`.

Tasks write files. The driver publishes the files of a committed batch exactly once, or lets the tasks' processes
publish them (see `staging`, `committing` and `publishers`). A task that is repeated, duplicated or lost leaves a file
that no batch lists. Spark creates writers in separate processes, so a writer contains only its options.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from gapless.client.loop_thread import LoopThread
from gapless_spark.error_sentences import sentences
from gapless_spark.stream.committing import Batch, Committing
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.publishers import Publisher, ready_publisher
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Manifest, Staging

__all__ = ["BatchWriter", "StreamWriter", "Tasks"]

PATIENT = 3
"""The number of timeouts to wait for another process that publishes from the same directory."""
NO_QUERY = "no streaming query"


@dataclass
class Staged(WriterCommitMessage):
    """The file that a task has written."""

    file: str
    rows: int
    largest: int
    query: str
    publisher: Publisher | None = None
    """The task's process, if it is ready to publish."""


class Tasks:
    """Shared by both writers: the work of tasks and of the driver."""

    def __init__(self, options: SinkOptions, schema: StructType, files: str) -> None:
        self._options = options
        self._schema = schema
        self._layout = Layout(schema, options.payload)
        self._files = files

    @cached_property
    def staging(self) -> Staging:
        """Return the staging directory on this machine, or the place in an object store."""
        if "://" not in self._options.staging:
            return Staging(self._options.staging, self._files)
        from gapless_spark.stream.object_staging import ObjectStaging
        from gapless_spark.stream.objects import Objects

        return ObjectStaging(*Objects.at(self._options.staging), self._files)

    def write(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """Write rows to a new file; no file if there are none."""
        context = TaskContext.get()
        query = (context.getLocalProperty("sql.streaming.queryId") or "") if context is not None else ""
        staging = self.staging
        path = staging.files / f"{secrets.token_hex(16)}.arrow"
        added = len(self._options.sink.encode()) + max(64, len(self._options.batch.encode()) + 16)
        rows = largest = 0
        writer: pa.ipc.RecordBatchFileWriter | None = None
        staging.prepare()
        with staging.disk.create(path) as file:
            for given in batches:
                if given.num_rows:
                    batch = self._layout.plain(given)
                    writer = writer or pa.ipc.new_file(file, batch.schema)
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    largest = max(largest, self._layout.largest(batch, added))
            if writer is not None:
                writer.close()
        if not rows:
            staging.disk.remove(path)
            return Staged("", 0, 0, query)
        staging.disk.sync(staging.files)
        return Staged(f"{self._files}/{path.name}", rows, largest, query, self._publisher())

    def _publisher(self) -> Publisher | None:
        """Return this process, ready to publish for the driver."""
        if self._options.publishers == 1:
            return None
        return ready_publisher(self._options, self._schema.json(), self._layout)

    def commit(self, batch: Batch) -> None:
        """Publish the batch."""
        self.staging.prepare()
        committing = Committing(self._options, self.staging, self._layout)
        with self.staging.locked(PATIENT * self._options.network.timeout_s):
            loop = LoopThread()
            try:
                loop.run(committing.commit(batch))
            finally:
                loop.stop()

    def batch(self, owner: str, run: str, number: int, name: str, key: str, staged: Sequence[Staged]) -> Batch:
        """Return the files of these tasks as a batch."""
        files = [(each.file, each.rows) for each in staged]
        largest = max((each.largest for each in staged), default=0)
        ready = dict.fromkeys(each.publisher for each in staged if each.publisher is not None)
        return Batch(owner, run, number, name, key, files, largest, tuple(ready)[: self._options.publishers])

    def _pending(self) -> Manifest | None:
        """Return the batch that a process began to publish and did not finish."""
        state = self.staging.state()
        return None if state is None else state.manifest

    def has_pending(self) -> bool:
        """Return whether a process began to publish a batch and did not finish."""
        return self._pending() is not None

    def clear(self, *, alone: bool = False) -> None:
        """Remove the written files, except those of a decided batch. With `alone`, the directory belongs to this write
        only."""
        self.staging.prepare()
        with self.staging.locked(PATIENT * self._options.network.timeout_s):
            self.staging.clear_after(self._pending(), alone=alone)


def _files(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged) and message.rows]


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes a streaming query: its batches are identified by their numbers."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._tasks = Tasks(options, schema, "files")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write rows in a task."""
        with sentences():
            return self._tasks.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's word
        """Publish the batch in the driver after all tasks have finished."""
        with sentences():
            query = next((each.query for each in messages if isinstance(each, Staged)), "")
            staged = _files(messages)
            if staged or (query and self._tasks.has_pending()):
                self._tasks.commit(self._tasks.batch(query, query[:8], batchId, "", str(batchId), staged))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove the files in the driver after a task has failed."""
        with sentences():
            self._tasks.clear()


class BatchWriter(DataSourceArrowWriter):
    """Writes a finite DataFrame. A batch with a name is written once, even if the write is repeated."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._key = secrets.token_hex(4)
        self._tasks = Tasks(options, schema, f"files-{self._key}")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write rows in a task."""
        with sentences():
            return self._tasks.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish the batch in the driver after all tasks have finished."""
        with sentences():
            staged = _files(messages)
            name = self._options.batch
            if staged or name:
                self._tasks.commit(self._tasks.batch(NO_QUERY, self._key, -1, name, name or self._key, staged))
            self._tasks.clear(alone=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files in the driver after a task has failed."""
        with sentences():
            self._tasks.clear(alone=True)
