"""Positions between two others, about equally many events apart: where a range of history can be divided.

Every position is a consistent cut, so those who share the work, each from one milestone to the next, read all of it
once. Nothing is delivered for it: brokers go through what they keep, with a filter that matches nothing, and tell after
each stretch how far they got.
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
    """Ascending, after the position that was asked from; the last is the end. Between two of them lie no more than a
    few thousand events, of whatever kind, unless they were admitted almost at once."""
    gone: tuple[SkippedError, ...]
    """The events between them that no broker holds any more."""


class Survey(Subscription[Event]):
    """A reading that delivers nothing, and remembers how it got on."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._positions: dict[Position, None] = {}

    def _reach(self, position: Position, *, is_live: bool) -> None:
        """All up to there was looked at."""
        super()._reach(position, is_live=is_live)
        self._positions[position] = None

    async def milestones(self, since: Position) -> Milestones:
        """When it is over."""
        gone = []
        while True:
            try:
                if not await self.take():
                    break
            except SkippedError as error:
                gone.append(error)
        between = (position for position in self._positions if since < position < self.position)
        return Milestones((*sorted(between), self.position), tuple(gone))
