"""The data source: `spark.read.format("gapless")` and `spark.readStream.format("gapless")`.

Spark creates readers in separate processes, several of them for one query, and passes some on to its tasks. So a reader
contains its options, and connects on first use. Each process imports only what it needs, because Spark starts many and
waits for them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from gapless.client import Client
from gapless.errors import SkippedError, SparkError
from gapless.positions import NO_EVENTS, Position, Volume
from gapless_spark.error_sentences import sentences
from gapless_spark.stream.columns import Columns, default_schema
from gapless_spark.stream.connection import LONG, Connection, handle_loss, in_time, urls
from gapless_spark.stream.durable import DurablePosition
from gapless_spark.stream.lookout import Lookout, Portion, thinned
from gapless_spark.stream.offsets import check_offset, offset, positions
from gapless_spark.stream.options import EARLIEST, LATEST, Options
from gapless_spark.stream.pushdown import Pushdown
from gapless_spark.stream.reading import ranges, read
from gapless_spark.worker_python import prepare_worker_python

if TYPE_CHECKING:
    from gapless.archive import Contents

__all__ = ["GaplessSource", "register"]

_REGISTERED = "gapless.registered"
"""A session setting that marks the format as registered: Spark warns about a second registration."""

IDLE_US = 60_000_000
"""After this time without a matching event the offset advances, so that it stays within the retained history."""


def register(spark: SparkSession) -> None:
    """Register the format `gapless` in this session, unless it is registered.

    Raises a `SparkError` if the Python of Spark's workers lacks a package.
    """
    if spark.conf.get(_REGISTERED, "") == "true":
        return
    prepare_worker_python(spark)
    if spark.conf.get("spark.sql.python.filterPushdown.enabled", "false") != "true":
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(GaplessSource)
    spark.conf.set(_REGISTERED, "true")


class GaplessSource(DataSource):
    """Implements Spark's interface for data sources."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "gapless"

    def schema(self) -> StructType:
        """Return the columns of a query without a schema of its own."""
        with sentences():
            return default_schema(is_variant=Options.of(self.options).is_variant)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        with sentences():
            return Reader(Options.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's word
        """Return the reader of a stream."""
        with sentences():
            return StreamReader(Options.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a finite DataFrame."""
        from gapless_spark.stream.sink import BatchWriter
        from gapless_spark.stream.sink_options import SinkOptions

        with sentences():
            _check_mode(overwrite)
            return BatchWriter(SinkOptions.of(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream."""
        from gapless_spark.stream.sink import StreamWriter
        from gapless_spark.stream.sink_options import SinkOptions

        with sentences():
            _check_mode(overwrite)
            return StreamWriter(SinkOptions.of(self.options), schema)


def _check_mode(overwrite: bool) -> None:
    if overwrite:
        raise SparkError("published events cannot be withdrawn: write with the mode 'append'")


class Reader(DataSourceReader):
    """Reads the events between two positions."""

    def __init__(self, options: Options, schema: StructType) -> None:
        Columns(schema)  # so that an invalid column is reported at once
        if options.durable:
            raise SparkError("a table is read once: the option 'durable' is for spark.readStream")
        self._options = options
        self._schema = schema
        self._pushdown = Pushdown(schema)

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802
        """Push filters down; return those that Spark must still check."""
        for condition in filters:
            if not self._pushdown.take(condition):
                yield condition

    def partitions(self) -> list[InputPartition]:
        """Return the range, divided among tasks."""
        options = self._options
        with sentences(), Connection(options) as connection:
            client = connection.client
            if not options.archive:
                return self._of_brokers(connection, *connection.run(in_time(options, self._range(client, None))))
            from gapless_spark.stream.continuing import archived, archived_ranges, around

            kept = archived(options.archive, client.network, options.filter)
            since, until = connection.run(in_time(options, self._range(client, kept)))
            parts: list[InputPartition] = []
            parts += archived_ranges(options.archive, kept, since, until, fails=options.fails_on_loss)
            for first, last in around(kept, since, until):
                parts += self._of_brokers(connection, first, last)
            return parts

    def _of_brokers(self, connection: Connection, since: Position, until: Position) -> list[InputPartition]:
        if since >= until:
            return []
        client = connection.client
        pattern = self._pushdown.filter(self._options.filter)
        survey = client.milestones(pattern, since, until, events=self._options.partition)
        found = connection.run(in_time(self._options, survey, LONG))
        for error in found.gone:
            handle_loss(self._options, error)
        ends = [since, *thinned(found.positions[:-1]), until]
        return ranges(ends, urls(self._options, client, len(ends) - 1))

    async def _range(self, client: Client, kept: "Contents | None") -> tuple[Position, Position]:
        newest = await client.position()
        start, end = self._options.start or EARLIEST, self._options.end
        if start == LATEST:
            since = newest
        elif start == EARLIEST:
            since = min(await earliest(client, self._options.filter), newest if kept is None else kept.since)
        else:
            since = await client.position(start)
        until = newest if end == LATEST else min(await client.position(end), newest)
        pushed = self._pushdown
        begin = max(since, Position.at(pushed.since))
        return begin, until if pushed.until is None else min(until, Position.at(pushed.until))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part of the range."""
        with sentences():
            yield from read(self._options, self._schema, self._pushdown.filter(self._options.filter), partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads from position to position; the causes of a batch's events are in the same batch or an earlier one."""

    def __init__(self, options: Options, schema: StructType) -> None:
        Columns(schema)
        self._options = options
        self._schema = schema
        self._connection: Connection | None = None
        self._lookout: Lookout | None = None
        self._durable: DurablePosition | None = None
        self._is_durable = False
        """Whether brokers store the durable position."""
        self._is_past_archive = False
        """Whether the query has read the whole archive."""
        self._initial: dict[str, Any] | None = None
        self._target: Position | None = None
        """The end of the stream, if it has one."""

    # ---- at the driver ------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new query begins; Spark calls this more than once."""
        with sentences():
            if self._initial is None:
                client = self._client
                self._initial = offset(client.network, self._run(in_time(self._options, self._start(client))))
            return self._initial

    async def _start(self, client: Client) -> Position:
        start = self._options.start
        if not start and self._durable is not None:
            known = await self._durable.find()
            if known is not None:
                return known
        kept = self._kept() if start == EARLIEST else None
        if kept is not None:
            return kept.since
        if start == EARLIEST:
            return await earliest(client, self._options.filter)
        return await client.position("now" if start in ("", LATEST) else start)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Make the stream end with the events that exist now."""
        with sentences():
            self._target = self._run(in_time(self._options, self._client.position()))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limits of one batch, from the options."""
        if self._options.events_max:
            return ReadMaxRows(self._options.events_max)
        return ReadMaxBytes(self._options.bytes_max) if self._options.bytes_max else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the next batch ends; its start, if there are no events for it."""
        with sentences():
            client = self._client
            since = check_offset(client.network, start)
            if self._durable is not None:
                self._run(self._keep_durable(self._durable, since))
            portion = self._next_portion(since, self._limit(limit))
            gone = start.get("gone", 0) + portion.gone
            if portion.is_empty and not portion.gone and portion.until.timestamp - since.timestamp < IDLE_US:
                return start
            return offset(client.network, portion.until, portion.cuts, gone)

    def _next_portion(self, since: Position, limit: Volume) -> Portion:
        """Return the next portion from the archive, as long as it has one; then from brokers."""
        assert self._lookout is not None
        kept = None if self._is_past_archive else self._kept()
        target = self._target
        if kept is not None:
            from gapless_spark.stream.continuing import archived_portion

            found = archived_portion(kept, since, target, limit.events)
            if found is not None:
                return found
            if since < kept.since:
                target = kept.since if target is None else min(target, kept.since)
        self._is_past_archive = kept is None or since >= kept.until
        portion: Portion = self._run(self._lookout.look(since, target, limit))
        return portion

    def _kept(self) -> "Contents | None":
        """Return the contents of the archive, if there is one."""
        if not self._options.archive:
            return None
        from gapless_spark.stream.continuing import archived

        return archived(self._options.archive, self._client.network, self._options.filter)

    async def _keep_durable(self, durable: DurablePosition, since: Position) -> None:
        """Create the durable position with the query's first batch."""
        if not self._is_durable:
            if await in_time(self._options, durable.find()) is None:
                await in_time(self._options, durable.create(since), LONG)
            self._is_durable = True

    def commit(self, end: dict[str, Any]) -> None:
        """Record that a batch is done, so that brokers need not keep it for this query."""
        if self._durable is not None:
            with sentences():
                self._run(self._durable.move(check_offset(self._client.network, end)))

    def _limit(self, limit: ReadLimit) -> Volume:
        if isinstance(limit, ReadMaxRows):
            return Volume(limit.max_rows, self._options.bytes_max)
        return Volume(0, limit.max_bytes) if isinstance(limit, ReadMaxBytes) else NO_EVENTS

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Return the newest known position, for monitoring."""
        if self._lookout is None or self._connection is None or self._lookout.newest is None:
            return None
        return offset(self._connection.client.network, self._lookout.newest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the parts of a batch, which are the same each time the batch is read."""
        with sentences():
            client = self._client
            ends = positions(client.network, start, end)
            kept = None if ends[0] == ends[-1] else self._kept()
            if kept is None or kept.until <= ends[0]:
                return ranges(ends, urls(self._options, client, len(ends) - 1))
            return self._with_archive(kept, ends)

    def _with_archive(self, kept: "Contents", ends: list[Position]) -> list[InputPartition]:
        from gapless_spark.stream.continuing import archived_ranges, around

        options, parts = self._options, list[InputPartition]()
        for first, last in pairwise(ends):
            parts += archived_ranges(options.archive, kept, first, last, fails=options.fails_on_loss)
            for since, until in around(kept, first, last):
                parts += ranges([since, until], urls(options, self._client, 1))
        return parts

    def stop(self) -> None:
        """Disconnect at the end of the query."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _client(self) -> Client:
        if self._connection is None:
            self._connection = Connection(self._options)
            self._lookout = Lookout(self._options, self._connection.client)
            if self._options.durable:
                self._durable = DurablePosition(self._options, self._connection.client)
        return self._connection.client

    def _run(self, work: Any) -> Any:
        assert self._connection is not None
        return self._connection.run(work)

    # ---- at tasks -----------------------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one part of a batch."""
        with sentences():
            yield from read(self._options, self._schema, self._options.filter, partition)


async def earliest(client: Client, text: str) -> Position:
    """Return the position before the first retained event that matches the filter. The user needs permission only for
    matching events."""
    reading = await client.read(text)
    while True:
        try:
            events = await reading.take(1)
        except SkippedError:
            continue
        await reading.close()
        return Position.at(events[0].stamp - 1) if events else reading.position
