"""Detects when the application has taken all of a subscription's history, so that the next events are live.

Brokers report when the last event of history was delivered. Its delivery has a number, so history is taken when no
pending event, and no report of missing events, has that number or a smaller one.
"""

import asyncio
from collections.abc import Sequence

from gapless.client.pending_events import PendingEvents
from gapless.client.unsafe import complete, refuse
from gapless.errors import GaplessError, SkippedError

__all__ = ["Replay"]

_NOTHING = -(2**63)
"""A number smaller than that of any delivery."""


class Replay:
    """Tracks the replay of one subscription, given its pending events and its reports of missing ones."""

    def __init__(self, pending_events: PendingEvents, skips: Sequence[tuple[int, SkippedError]]) -> None:
        self._pending_events = pending_events
        self._skips = skips
        self._last: int | None = _NOTHING
        """The number of the last delivery of history, or None while history continues."""
        self._error: GaplessError | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """Record that deliveries from now on are history."""
        self._last = None

    def end(self) -> None:
        """Record that all of history was delivered."""
        if self._last is None:
            missing = self._skips[-1][0] if self._skips else _NOTHING
            self._last = max(self._pending_events.last if self._pending_events else _NOTHING, missing)
            self.look()

    def fail(self, error: GaplessError) -> None:
        """Record that the rest of history will not arrive, because of this error."""
        if self._last is None:
            self._error = error
            for waiting in self._waiting:
                refuse(waiting, error)

    @property
    def is_taken(self) -> bool:
        """Return whether the application has taken all of the history."""
        if self._last is None:
            return False
        has_missing = bool(self._skips) and self._skips[0][0] <= self._last
        return not has_missing and (not self._pending_events or self._pending_events.first > self._last)

    def within(self, most: int) -> int:
        """Return how many of the next `most` events can be returned in one list: history and live events are
        not mixed.
        """
        last, pending_events = self._last, self._pending_events
        if most == 1 or last is None or not pending_events.first <= last < pending_events.last:
            return most
        return min(most, sum(number <= last for number, _ in pending_events))

    def look(self) -> None:
        """Wake the callers of `wait` if the history is taken or will not arrive."""
        if self._waiting and self.is_taken:
            for waiting in self._waiting:
                complete(waiting)

    async def wait(self) -> None:
        """Wait until the history is taken. Raise an error with the reason if that will not happen."""
        while not self.is_taken:
            if self._error is not None:
                raise self._error
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                self._waiting.remove(waiting)
