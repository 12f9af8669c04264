"""The lag of a streaming query behind the newest event: in time, in events and in bytes.

PySpark gives Python sources no way to add metrics to the progress that a `StreamingQueryListener` sees. But the
progress contains the offset up to which a query has read, and that is enough to ask the network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gapless.errors import SkippedError
from gapless.positions import Position
from gapless_spark.stream.connection import LONG, Connection, in_time
from gapless_spark.stream.lookout import TAKE, size_of
from gapless_spark.stream.offsets import check_offset
from gapless_spark.stream.options import Options

__all__ = ["Lag", "lag_of"]


@dataclass(frozen=True)
class Lag:
    """The distance of one source of a query to the newest position."""

    position: Position
    """The position up to which the query has read."""
    newest: Position
    ms: float
    """The time between these positions; 0 if no matching event is between them."""
    events: int
    """The number of matching events between them, and the bytes of their attributes and payloads."""
    bytes: int


def lag_of(progress: Mapping[str, Any], source: int = 0, **options: str) -> Lag | None:
    """Return the lag of a query, from its `lastProgress` or the progress that a listener gets, as a mapping.

    The options are those of the source. It reads all events between the query and now, as the query will. Returns None
    if the query has not read anything yet.
    """
    reached = progress["sources"][source]["endOffset"]
    if reached is None:
        return None
    given = Options.of(options)
    with Connection(given) as connection:
        since = check_offset(connection.client.network, json.loads(reached) if isinstance(reached, str) else reached)
        return connection.run(_counted(given, connection, since))


async def _counted(options: Options, connection: Connection, since: Position) -> Lag:
    reading = await in_time(options, connection.client.read(options.filter, since=since), LONG)
    events = size = last = 0
    while True:
        try:
            found = await in_time(options, reading.take(TAKE), LONG)
        except SkippedError as error:
            events += sum(end - begin + 1 for ranges in error.lost.values() for begin, end in ranges)
            continue
        if not found:
            break
        events += len(found)
        size += sum(map(size_of, found))
        last = found[-1].stamp
    ms = max(0, last - since.timestamp) / 1_000 if events else 0.0
    return Lag(since, reading.position, ms, events, size)
