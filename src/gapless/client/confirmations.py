"""What the application has confirmed of a named subscription: what it took, or what it says.

To confirm an event confirms all that this subscription was delivered before it. What was taken is confirmed soon, and
many at a time; who calls `confirm` waits until a majority of the keepers of names holds it, so that none of it comes
again, for whoever opens the name next.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from gapless.client.unsafe import fulfil, refuse
from gapless.errors import CallError, GaplessError
from gapless.events import Event
from gapless.names import Confirm

__all__ = ["Confirmable", "Confirmations"]


class Confirmable(Event, frozen=True, gc=True, eq=False):
    """An event of a named subscription that its application confirms."""

    confirmations: Any = None

    async def confirm(self) -> None:
        """Confirm it, and all that came before it. Returns when it will not come again."""
        await self.confirmations.confirm(self)


class Confirmations:
    """Of one named subscription."""

    def __init__(self, subscription: str, give: Callable[[Confirm], None], *, is_manual: bool) -> None:
        self._subscription = subscription
        self._give = give
        self._is_manual = is_manual
        self._taken: deque[tuple[int, str, int, int]] = deque()
        """What was taken and is not confirmed: the number of the delivery, publisher, number and stamp."""
        self._last = 0
        """The number of the delivery that was taken last."""
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._error: GaplessError | None = None
        self._is_telling = False

    # ---- for the subscription -----------------------------------------------------------------------------

    def took(self, number: int, event: Event) -> None:
        """The application has taken this."""
        self._last = number
        if self._is_manual:
            self._taken.append((number, event.publisher, event.seq, event.stamp))
        elif not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self.tell)

    def tell(self) -> None:
        """Confirm what was taken, if that is what confirms it."""
        self._is_telling = False
        if not self._is_manual and self._last > self._kept:
            self._give(Confirm(self._subscription, self._last, is_urgent=False))

    def wrap(self, event: Event) -> Event:
        """The event as its application gets it."""
        if not self._is_manual:
            return event
        return Confirmable(event.publisher, event.seq, event.attributes, event.payload, event.stamp, self)

    # ---- for the application ------------------------------------------------------------------------------

    async def confirm(self, upto: Event | int | None) -> None:
        """Confirm all that was taken, or all up to an event or a position."""
        number = self._number(upto)
        if number <= self._kept:
            return
        if self._error is not None:
            raise self._error
        while self._taken and self._taken[0][0] <= number:
            self._taken.popleft()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, waiting))
        self._give(Confirm(self._subscription, number))
        await waiting

    def _number(self, upto: Event | int | None) -> int:
        if upto is None:
            return self._last
        if isinstance(upto, bool) or not isinstance(upto, Event | int):
            raise CallError(f"confirm an event, or a position, or nothing for all; this is of type {_kind(upto)}")
        number = 0
        if isinstance(upto, Event):
            found = (taken[0] for taken in self._taken if taken[1:3] == (upto.publisher, upto.seq))
            return next(found, 0)  # else it is confirmed
        for taken in self._taken:
            if taken[3] > upto:
                break
            number = taken[0]
        return number

    # ---- for the client -----------------------------------------------------------------------------------

    def kept(self, count: int) -> None:
        """All up to this delivery is confirmed."""
        self._kept = max(self._kept, count)
        waiting, self._waiting = self._waiting, []
        for number, future in waiting:
            if number <= self._kept:
                fulfil(future)
            else:
                self._waiting.append((number, future))

    def fail(self, error: GaplessError) -> None:
        """Nothing more can be confirmed."""
        self._error = self._error or error
        for _, future in self._waiting:
            refuse(future, error)
        self._waiting = []


def _kind(value: object) -> str:
    return type(value).__name__
