"""Finds evenly spaced positions in a range of history, at which several readers can divide it.

Every position is a consistent cut, so workers that read from one milestone to the next together read all events once.
No events are delivered for it: brokers scan their history with a filter that matches nothing, and report after each
stretch how far they got.
"""

from dataclasses import dataclass
from typing import Any

from gapless.client.subscription import Subscription
from gapless.errors import SkippedError
from gapless.events import Event
from gapless.positions import Position

__all__ = ["Milestones", "Survey"]


@dataclass(frozen=True)
class Milestones:
    """Evenly spaced positions in a range of history, returned by `Client.milestones`."""

    positions: tuple[Position, ...]
    """The positions in ascending order, after the start of the range; the last one is its end. There are at most a few
    thousand events between two of them, unless they were admitted almost at the same time."""
    gone: tuple[SkippedError, ...]
    """Reports of events in this range that no broker holds any longer."""


class Survey(Subscription[Event]):
    """A bounded read that delivers no events, and records its progress."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._positions: dict[Position, None] = {}

    def _reach(self, position: Position, *, is_live: bool) -> None:
        """Record that all events up to this position were scanned."""
        super()._reach(position, is_live=is_live)
        self._positions[position] = None

    async def milestones(self, since: Position) -> Milestones:
        """Wait until the scan has finished, and return the milestones."""
        gone = []
        while True:
            try:
                if not await self.take():
                    break
            except SkippedError as error:
                gone.append(error)
        between = (position for position in self._positions if since < position < self.position)
        return Milestones((*sorted(between), self.position), tuple(gone))
