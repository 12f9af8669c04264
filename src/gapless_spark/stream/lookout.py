"""Determines where a micro-batch ends: brokers count the matching events that follow.

A batch ends at a network-wide position, so events with the same timestamp, which one call published, are read together.
A batch can exceed its limit by the events of one timestamp, if it would otherwise be empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.client import Client
from gapless.client.milestones import Stretch, Survey, begin_survey
from gapless.client.positions import EARLIEST
from gapless.errors import SkippedError
from gapless.positions import NO_EVENTS, Position, Volume
from gapless.protocol import NEWEST
from gapless_spark.stream.connection import LONG, handle_loss, in_time
from gapless_spark.stream.options import Options

__all__ = ["Lookout", "Portion", "thinned"]

SHARES = 8
"""The number of stretches of a limited batch: a full batch is at most one eighth below its limit."""
PARTS_MAX = 1_000
"""The maximum number of parts of a batch."""


@dataclass(frozen=True)
class Portion:
    """The part of the history that a batch will read, after a position."""

    until: Position
    cuts: tuple[Position, ...]
    """The positions at which the portion is divided among tasks."""
    is_empty: bool
    gone: int
    """The number of events known to be missing."""


class Lookout:
    """Keeps one survey open from call to call, as long as each call begins where the last ended."""

    def __init__(self, options: Options, client: Client) -> None:
        self._options = options
        self._client = client
        self._survey: Survey | None = None
        self._limit = NO_EVENTS
        self._next: Stretch | None = None
        """The next stretch that is in no portion."""
        self._end = EARLIEST
        """The end of the last finished survey."""
        self._place: Position | None = None
        self._clear: Position | None = None
        """The position up to which everything is in portions, or known not to exist."""
        self._gone = 0
        self.newest: Position | None = None
        """The newest known position."""

    async def look(self, since: Position, target: Position | None, limit: Volume) -> Portion:
        """Return the next portion, up to `target`, or up to now."""
        place = self._place
        if place is None or self._clear is None or not self._clear <= since <= place or limit != self._limit:
            await self._begin_at(since)
            place, self._limit = since, limit
        if target is not None and place >= target:
            return Portion(place, (), is_empty=True, gone=0)
        portion = await self._portion(place, target)
        if not portion.is_empty:
            self._clear = portion.until
        return portion

    async def _begin_at(self, since: Position) -> None:
        if self._survey is not None:
            await in_time(self._options, self._survey.close())
        self._survey = self._next = None
        self._place = self._clear = since

    async def _portion(self, place: Position, target: Position | None) -> Portion:
        if self._survey is None and self._next is None:
            survey = begin_survey(self._client, self._options.filter, place, target or NEWEST, self._stretch_max())
            self._survey = await in_time(self._options, survey)
        total, part = NO_EVENTS, 0
        cuts: list[Position] = []
        self._gone = 0
        while (stretch := await self._peek()) is not None:
            until, volume = stretch
            if total.events and total.plus(*volume).exceeds(self._limit):
                break
            self._next = None
            if part and part + volume.events > self._options.partition:
                cuts.append(place)
                part = 0
            part += volume.events
            total, place = total.plus(*volume), until
        else:
            place = self.newest = max(place, self._end)
        self._place = place
        return Portion(place, thinned(cuts), is_empty=not total.events, gone=self._gone)

    def _stretch_max(self) -> Volume:
        events, size = (number and max(1, number // SHARES) for number in self._limit)
        return Volume(min(events or self._options.partition, self._options.partition), size)

    async def _peek(self) -> Stretch | None:
        """Return the next stretch; None when the survey has ended."""
        while self._survey is not None and self._next is None:
            try:
                self._next = await in_time(self._options, self._survey.stretch(), LONG)
            except SkippedError as error:
                self._gone += handle_loss(self._options, error)
                continue
            if self._next is None:
                self._end, self._survey = self._survey.position, None
        return self._next


def thinned(cuts: Sequence[Position]) -> tuple[Position, ...]:
    """Return evenly spaced positions from the given ones, fewer than `PARTS_MAX`."""
    if len(cuts) < PARTS_MAX:
        return tuple(cuts)
    return tuple(cuts[place * len(cuts) // PARTS_MAX] for place in range(1, PARTS_MAX))
