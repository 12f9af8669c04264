"""The lag of a streaming query behind the newest event: in time, in events and in bytes.

PySpark gives Python sources no way to add metrics to the progress that a `StreamingQueryListener` sees. But the
progress contains the offset up to which a query has read, and that is enough to ask the network.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gapless.client.milestones import begin_survey
from gapless.errors import SkippedError
from gapless.positions import NO_EVENTS, Position, Volume
from gapless.protocol import NEWEST
from gapless_spark.stream.connection import LONG, Connection, in_time
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
    """The number of matching events between them."""
    bytes: int
    """The size of their attributes and payloads. Attributes that are equal in events published together count once."""


def lag_of(progress: Mapping[str, Any], source: int = 0, **options: str) -> Lag | None:
    """Return the lag of a query, from its `lastProgress` or the progress that a listener gets, as a mapping.

    The options are those of the source. Brokers count the events between the query's position and now. Returns None
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
    survey = await begin_survey(connection.client, options.filter, since, NEWEST, Volume(options.partition))
    total = NO_EVENTS
    while True:
        try:
            stretch = await in_time(options, survey.stretch(), LONG)
        except SkippedError as error:
            lost = sum(last - first + 1 for ranges in error.lost.values() for first, last in ranges)
            total = total.plus(lost, 0)
            continue
        if stretch is None:
            break
        total = total.plus(*stretch.volume)
    newest = survey.position
    ms = max(0, newest.timestamp - since.timestamp) / 1_000 if total.events else 0.0
    return Lag(since, newest, ms, total.events, total.size)
