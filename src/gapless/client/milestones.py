"""Evenly spaced positions between two others, where a range of history can be divided.

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
    """The result of `Client.milestones`."""

    positions: tuple[Position, ...]
    """Ascending, after the starting position; the last is the end. At most a few thousand events of any kind are
    between two of them, unless they were admitted almost simultaneously."""
    gone: tuple[SkippedError, ...]
    """The events in this range that no broker still holds."""


class Survey(Subscription[Event]):
    """A read that delivers nothing, and records its progress."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._positions: dict[Position, None] = {}

    def _reach(self, position: Position, *, is_live: bool) -> None:
        """Note that everything up to there was scanned."""
        super()._reach(position, is_live=is_live)
        self._positions[position] = None

    async def milestones(self, since: Position) -> Milestones:
        """Return the milestones when the scan is finished."""
        gone = []
        while True:
            try:
                if not await self.take():
                    break
            except SkippedError as error:
                gone.append(error)
        between = (position for position in self._positions if since < position < self.position)
        return Milestones((*sorted(between), self.position), tuple(gone))
