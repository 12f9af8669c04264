"""Spark as a pool of workers: many independent tasks, each a row, on whatever machine Spark chooses.

Tasks run in batches; each is a DataFrame with as many partitions as rows, so that Spark assigns one task at a time to a
free core. The rows of a batch return together, so an interruption loses a batch or two. Two batches run at any time, so
that no core waits for the slowest task of one. Short tasks run in larger batches, because a Spark job has overhead.

If a task kills its worker (out of memory, for example), Spark gives up its batch. The tasks of that batch are then
tried one by one, and a task that kills its worker again has no row.

Spark starts with the first task. A wrong address is an error at once.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Any, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from gapless_spark.address import require_address
from gapless_spark.session import spark_session

__all__ = ["SparkPool"]

UNDER_WAY = 2
"""The number of batches that run at a time."""
BATCH_LEAST = 1
"""The initial number of tasks per core in a batch: the first tasks take the longest."""
BATCH_MOST = 64
SHORT_S = 10.0
"""If a batch took less time than this, the next ones are larger."""
POLL_S = 0.5
REMOTE_CORES = 8
"""The number of cores assumed if Spark does not report the number."""

TASKS = pa.schema([("place", pa.int32()), ("key", pa.string()), ("task", pa.string())])
"""A task: the index in the batch, the key, and the text."""

_Task: TypeAlias = tuple[str, str]
_Found: TypeAlias = Generator[tuple[str, dict[str, Any] | None], None, None]
_Work: TypeAlias = Callable[[str, str], dict[str, Any]]
_Batches: TypeAlias = Iterator[pa.RecordBatch]


class SparkPool:
    """One session for a command, started at the first task, closed at the end."""

    def __init__(self, master: str | None, remote: str | None) -> None:
        require_address(master, remote)
        self._master = master
        self._remote = remote
        self._session: SparkSession | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "SparkPool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def run(
        self, work: _Work, tasks: Sequence[_Task], schema: pa.Schema, on_done: Callable[[int], None] = lambda _: None
    ) -> _Found:
        """Yield each key with its row, in batches; executors must be able to import `work`."""
        if self._session is None:
            self._session = self._stack.enter_context(spark_session(master=self._master, remote=self._remote))
        return _Job(self._session, work, schema, on_done).run(tasks)


class _Job:
    """The tasks of one call."""

    def __init__(
        self, spark: SparkSession, work: _Work, schema: pa.Schema, on_done: Callable[[int], None]
    ) -> None:  # fmt: skip
        self._spark = spark
        self._work = work
        self._schema = schema
        self._on_done = on_done
        self._waiting: deque[_Task] = deque()
        self._alone: deque[_Task] = deque()
        """Tasks to be tried one by one."""

    def run(self, tasks: Sequence[_Task]) -> _Found:
        """Run all tasks."""
        self._waiting.extend(tasks)
        cores = _cores(self._spark)
        size = BATCH_LEAST * cores
        under_way: dict[Future[list[dict[str, Any]]], tuple[list[_Task], float]] = {}
        with ThreadPoolExecutor(UNDER_WAY, "tasks") as threads:
            try:
                while self._waiting or self._alone or under_way:
                    while (self._waiting or self._alone) and len(under_way) < UNDER_WAY:
                        batch = self._next_batch(size)
                        under_way[threads.submit(self._run_batch, batch)] = (batch, time.perf_counter())
                    for future in wait(under_way, POLL_S, FIRST_COMPLETED).done:
                        batch, began = under_way.pop(future)
                        yield from self._rows(future, batch)
                        if time.perf_counter() - began < SHORT_S:
                            size = min(2 * size, BATCH_MOST * cores)
                    self._on_done(_tasks_done(self._spark, {len(batch) for batch, _ in under_way.values()}))
            except BaseException:
                with suppress(Exception):  # the error that ended this block may have ended Spark, too
                    self._spark.interruptAll()
                raise

    def _next_batch(self, size: int) -> list[_Task]:
        if self._alone:
            return [self._alone.popleft()]
        return [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]

    def _run_batch(self, batch: list[_Task]) -> list[dict[str, Any]]:
        keys, texts = zip(*batch, strict=True)
        table = pa.table([pa.array(range(len(batch)), pa.int32()), keys, texts], schema=TASKS)
        frame = self._spark.createDataFrame(table).repartitionById(table.num_rows, "place").drop("place")
        carrier = partial(_carry_out, self._work, self._schema)
        found: list[dict[str, Any]] = frame.mapInArrow(carrier, from_arrow_schema(self._schema)).toArrow().to_pylist()
        return found

    def _rows(self, future: Future[list[dict[str, Any]]], batch: list[_Task]) -> _Found:
        try:
            rows = future.result()
        except (PySparkException, Py4JJavaError):
            if len(batch) > 1:
                self._alone.extend(batch)
            else:
                yield batch[0][0], None
            return
        for row in rows:
            yield row["key"], row


def _carry_out(work: _Work, schema: pa.Schema, batches: _Batches) -> _Batches:
    for batch in batches:
        for row in batch.to_pylist():
            yield pa.RecordBatch.from_pylist([work(row["key"], row["task"])], schema=schema)


def _cores(spark: SparkSession) -> int:
    """Return how many tasks Spark can run at a time, as far as it reports that."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except PySparkException:  # Spark Connect does not report it
        return REMOTE_CORES


def _tasks_done(spark: SparkSession, sizes: set[int]) -> int:
    """Return how many tasks of the running batches are finished. Only stages as large as a batch count, because others
    move data."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:
        return 0
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None and stage.numTasks in sizes)
