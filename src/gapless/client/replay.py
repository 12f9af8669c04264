"""Whether the application has taken all of a subscription's history, and what comes now is live.

Brokers tell when the last event of history was delivered. Its delivery has a number, so history is taken when nothing
that waits for the application has that number or a smaller one, neither an event nor a report of something missing.
"""

import asyncio
from collections.abc import Sequence

from gapless.client.pending_events import PendingEvents
from gapless.client.unsafe import fulfil, refuse
from gapless.errors import GaplessError, SkippedError

__all__ = ["Replay"]

_NOTHING = -(2**63)
"""Less than the number of any delivery."""


class Replay:
    """Of one subscription. It knows what waits to be taken: events, and what is missing before a delivery."""

    def __init__(self, pending_events: PendingEvents, skips: Sequence[tuple[int, SkippedError]]) -> None:
        self._pending_events = pending_events
        self._skips = skips
        self._last: int | None = _NOTHING
        """The number of the last delivery of history; None while more of it comes."""
        self._error: GaplessError | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        """Deliveries from now on are history."""
        self._last = None

    def end(self) -> None:
        """All of it was delivered."""
        if self._last is None:
            missing = self._skips[-1][0] if self._skips else _NOTHING
            self._last = max(self._pending_events.last if self._pending_events else _NOTHING, missing)
            self.look()

    def fail(self, error: GaplessError) -> None:
        """The rest of it does not come."""
        if self._last is None:
            self._error = error
            for waiting in self._waiting:
                refuse(waiting, error)

    @property
    def is_taken(self) -> bool:
        """Whether the application has taken all of it."""
        if self._last is None:
            return False
        has_missing = bool(self._skips) and self._skips[0][0] <= self._last
        return not has_missing and (not self._pending_events or self._pending_events.first > self._last)

    def within(self, most: int) -> int:
        """How many of the next events to take at once: history and what is live are not taken together."""
        last, pending_events = self._last, self._pending_events
        if most == 1 or last is None or not pending_events.first <= last < pending_events.last:
            return most
        return min(most, sum(number <= last for number, _ in pending_events))

    def look(self) -> None:
        """Something was taken, or has come to its end."""
        if self._waiting and self.is_taken:
            for waiting in self._waiting:
                fulfil(waiting)

    async def wait(self) -> None:
        """Until it is taken; an error says why that will not be."""
        while not self.is_taken:
            if self._error is not None:
                raise self._error
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                self._waiting.remove(waiting)
