"""The work of a task: it reads a range of positions through its own broker, and makes batches of Arrow."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from gapless.client import Subscription
from gapless.errors import SkippedError
from gapless.events import Event
from gapless.positions import Position
from gapless_spark.stream.columns import Columns
from gapless_spark.stream.connection import Connection, handle_loss, in_time
from gapless_spark.stream.options import Options
from gapless_spark.stream.quiet_worker import end_quietly

__all__ = ["ArchivedRange", "Range", "ranges", "read"]

ROWS = 8_192
BYTES = 16 * 1024 * 1024
"""The limits of a batch: rows, and approximately bytes of payload."""


@dataclass
class ArchivedRange(InputPartition):
    """A range in a file of an archive."""

    since: Position
    until: Position
    path: str


@dataclass
class Range(InputPartition):
    """All matching events after one position and up to another, with the brokers to read them from."""

    since: Position
    until: Position
    url: str


def ranges(positions: list[Position], urls: list[str]) -> list[InputPartition]:
    """Return the ranges between successive positions."""
    return [
        Range(since, until, url) for (since, until), url in zip(pairwise(positions), urls, strict=True) if since < until
    ]


def read(options: Options, schema: StructType, text: str, part: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield the events of a range, in causal order."""
    end_quietly()
    if isinstance(part, ArchivedRange):
        from gapless.archive import read_file  # a task that does not need Parquet avoids the time to import it

        columns = Columns(schema, "archive")
        for found in read_file(Path(part.path), text, part.since, part.until):
            yield columns.batch(found)
        return
    if not isinstance(part, Range):
        return  # Spark creates its own range if there is nothing to read
    columns = Columns(schema)
    with Connection(options, part.url) as connection:
        client = connection.client
        reading = connection.run(in_time(options, client.read(text, since=part.since, until=part.until)))
        while events := connection.run(_portion(options, reading)):
            yield columns.batch(events)
    if columns.misfits:
        logging.getLogger("gapless.spark").warning(
            f"{columns.misfits:,} attributes between positions {part.since} and {part.until} have another "
            "type than their columns, so they are null"
        )


async def _portion(options: Options, reading: Subscription) -> list[Event]:
    """Return the next events; an empty list at the end."""
    found: list[Event] = []
    size = 0
    while len(found) < ROWS and size < BYTES:
        try:
            events = await in_time(options, reading.take(ROWS - len(found)))
        except SkippedError as error:
            handle_loss(options, error)
            continue
        if not events:
            break
        found += events
        size += sum(len(event.payload) for event in events)
    return found
