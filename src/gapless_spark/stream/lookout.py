"""Determines where a micro-batch ends: the driver reads ahead.

It reads the same events as the tasks will, and counts them. If there is no limit and much to read, it stops counting
early, and asks brokers where to divide the range (`Client.milestones`).

A batch ends at a network-wide position, so events with the same timestamp, which one call published, are counted and
read together. A batch can exceed its limit by the events of one timestamp, if it would otherwise be empty.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from gapless.client import Client, Subscription
from gapless.client.positions import EARLIEST
from gapless.errors import SkippedError
from gapless.events import Event
from gapless.positions import Position
from gapless_spark.stream.connection import LONG, handle_loss, in_time
from gapless_spark.stream.options import Options

__all__ = ["Limit", "Lookout", "Portion", "size_of", "thinned"]

GLANCE = 8_192
"""The number of events to count if there is no limit."""
TAKE = 4_096
STRETCH = 4_096
"""The approximate number of events between milestones."""
PARTS_MAX = 1_000
"""The maximum number of parts of a batch."""


@dataclass(frozen=True)
class Limit:
    """The limits of one batch; 0: none."""

    events: int = 0
    size: int = 0


@dataclass(frozen=True)
class Portion:
    """The part of the history that a batch will read, after a position."""

    until: Position
    cuts: tuple[Position, ...]
    """The positions at which it is divided among tasks."""
    is_empty: bool
    gone: int
    """The number of events known to be missing."""


@dataclass
class _Group:
    """The events of one timestamp."""

    timestamp: int
    events: int = 0
    size: int = 0

    def add(self, other: "_Group") -> None:
        """Add the events of the next group."""
        self.timestamp = other.timestamp
        self.events += other.events
        self.size += other.size


class Lookout:
    """Keeps one read open from call to call, as long as each call begins where the last ended.

    A client delivers its reads in order, so unread events of one read block all its others. While this read is open,
    the client is used for nothing else.
    """

    def __init__(self, options: Options, client: Client) -> None:
        self._options = options
        self._client = client
        self._reading: Subscription | None = None
        self._end = EARLIEST
        """The end of the last finished read."""
        self._groups: deque[_Group] = deque()
        """Events read that are in no portion. While the read is open, the last group can grow."""
        self._place: Position | None = None
        self._clear: Position | None = None
        """The position up to which everything is in portions, or known not to exist."""
        self._gone = 0
        self.newest: Position | None = None
        """The newest known position."""

    async def look(self, since: Position, target: Position | None, limit: Limit) -> Portion:
        """Return the next portion, up to `target`, or up to now."""
        place = self._place
        if place is None or self._clear is None or not self._clear <= since <= place:
            await self._begin_at(since)
            place = since
        if target is not None and place >= target:
            return Portion(place, (), is_empty=True, gone=0)
        is_limited = limit.events > 0 or limit.size > 0
        portion = await self._count(place, target, limit if is_limited else Limit(GLANCE))
        is_all = self._reading is None and not self._groups
        if not is_limited and not is_all:
            portion = await self._divided(since, target)
        if not portion.is_empty:
            self._clear = self._place
        return portion

    async def _begin_at(self, since: Position) -> None:
        if self._reading is not None:
            await in_time(self._options, self._reading.close())
        self._reading = None
        self._groups.clear()
        self._place = self._clear = since

    async def _divided(self, since: Position, target: Position | None) -> Portion:
        """Return everything available, divided at the brokers' milestones."""
        await self._begin_at(since)
        found = await in_time(self._options, self._client.milestones(since=since, until=target), LONG)
        gone = sum(handle_loss(self._options, error) for error in found.gone)
        *cuts, until = found.positions
        await self._begin_at(until)
        self.newest = until
        step = max(1, self._options.partition // STRETCH)
        return Portion(until, thinned(cuts[step - 1 :: step]), is_empty=False, gone=gone)

    async def _count(self, place: Position, target: Position | None, limit: Limit) -> Portion:
        """Return a portion within the limit, as far as the read has got."""
        if self._reading is None and not self._groups:
            reading = self._client.read(self._options.filter, since=place, until=target)
            self._reading = await in_time(self._options, reading)
        total, part = _Group(0), _Group(0)
        cuts: list[Position] = []
        self._gone = 0
        while (group := await self._next()) is not None:
            if total.events and _exceeds(limit, total, group):
                break
            self._groups.popleft()
            if part.events >= self._options.partition:
                cuts.append(Position.at(part.timestamp))
                part = _Group(0)
            for sums in (total, part):
                sums.add(group)
            place = Position.at(group.timestamp)
        else:
            place = self.newest = max(place, self._end)
        self._place = place
        return Portion(place, thinned(cuts), is_empty=not total.events, gone=self._gone)

    async def _next(self) -> _Group | None:
        """Return the next complete group; None when the read is finished."""
        while self._reading is not None and len(self._groups) < 2:
            if not await self._take(self._reading):
                self._end, self._reading = self._reading.position, None
        return self._groups[0] if self._groups else None

    async def _take(self, reading: Subscription) -> bool:
        while True:
            try:
                events = await in_time(self._options, reading.take(TAKE))
            except SkippedError as error:
                self._gone += handle_loss(self._options, error)
                continue
            for event in events:
                if not self._groups or self._groups[-1].timestamp != event.stamp:
                    self._groups.append(_Group(event.stamp))
                self._groups[-1].events += 1
                self._groups[-1].size += size_of(event)
            return bool(events)


def _exceeds(limit: Limit, total: _Group, group: _Group) -> bool:
    return bool(
        (limit.events and total.events + group.events > limit.events)
        or (limit.size and total.size + group.size > limit.size)
    )


def size_of(event: Event) -> int:
    """Return the size in bytes, without framing."""
    return len(event.payload) + sum(
        len(name) + (len(value) if isinstance(value, str) else 8) for name, value in event.attributes.items()
    )


def thinned(cuts: Sequence[Position]) -> tuple[Position, ...]:
    """Return at most `parts` of the positions, evenly spaced."""
    if len(cuts) < PARTS_MAX:
        return tuple(cuts)
    return tuple(cuts[place * len(cuts) // PARTS_MAX] for place in range(1, PARTS_MAX))
