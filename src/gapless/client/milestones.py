"""Milestones: positions that divide a range of history into parts with about the same number of matching events.

Each position is a consistent cut, so workers that read from one milestone to the next together read all events once.
No events are sent for it: brokers count the matching events of their history, and report positions and counts.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from gapless.client.subscribing import Subscribing
from gapless.client.subscription import Subscription
from gapless.errors import SkippedError
from gapless.events import Event
from gapless.positions import Position, Volume

__all__ = ["Milestones", "Stretch", "Survey", "begin_survey"]


class _Client(Protocol):
    """The part of a client that a survey uses."""

    _subscribing: Subscribing


class Stretch(NamedTuple):
    """A part of history: the position at which it ends, and the volume of its matching events."""

    until: Position
    volume: Volume


@dataclass(frozen=True)
class Milestones:
    """Evenly spaced positions in a range of history, returned by `Client.milestones`."""

    positions: tuple[Position, ...]
    """Ascending, after the starting position; the last is the end."""
    events: tuple[int, ...]
    """For each position, the number of matching events between the previous position and this one. It is at most the
    requested number, unless more events have the same timestamp."""
    gone: tuple[SkippedError, ...]
    """Reports of events in this range that no broker has any more."""


class Survey(Subscription[Event]):
    """A read whose events are counted by brokers, and not delivered."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._stretches: deque[Stretch] = deque()

    def _count(self, position: Position, counted: Volume) -> None:
        """Add a stretch, and wake the application."""
        self._stretches.append(Stretch(position, counted))
        self._wake()

    async def stretch(self) -> Stretch | None:
        """Return the next stretch; None after the last one. Raise a `SkippedError` for events that no broker holds."""
        while not self._stretches:
            self._raise_skipped(None)
            if self._has_ended:
                if self._error is not None:
                    raise self._error
                return None
            await self._something()
        return self._stretches.popleft()

    async def milestones(self, since: Position, most: int) -> Milestones:
        """Return the milestones when all events are counted."""
        ends: list[Position] = []
        counts: list[int] = []
        gone = []
        while True:
            try:
                found = await self.stretch()
            except SkippedError as error:
                gone.append(error)
                continue
            if found is None:
                break
            if ends and counts[-1] + found.volume.events <= most:
                ends[-1] = found.until
                counts[-1] += found.volume.events
            elif found.until > since:
                ends.append(found.until)
                counts.append(found.volume.events)
        if not ends or ends[-1] < self.position:
            ends.append(self.position)
            counts.append(0)
        return Milestones(tuple(ends), tuple(counts), tuple(gone))


async def begin_survey(client: _Client, filter: str, since: Position, until: Position, limit: Volume) -> Survey:
    """Return a survey of the range. Each of its stretches is at most that large, unless events share a timestamp."""
    again = partial(begin_survey, client, filter, since, until, limit)
    subscribing = client._subscribing
    return await subscribing.begin(Survey(subscribing.settings(filter), again), since, until, survey=limit)
