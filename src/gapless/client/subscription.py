"""A subscription, as its application sees it: events in order, from an exact start to an exact end.

Events wait here until the application takes them. What happens if it does not is its own choice:

- `block`: the broker is told what was taken, and sends no more than a bounded number ahead. It keeps the rest, and when
  brokers keep as much as they may, publishers wait. Nothing is lost, and nobody else's memory is used up.
- `fail`: others are never held back. When more than `queue` events wait, the subscription ends, and says so with a
  `SlowConsumerError` after the events that did fit.

Events are never dropped without a word.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias

from gapless.errors import GaplessError, SlowConsumerError
from gapless.events import Event

if TYPE_CHECKING:
    from gapless.client.client import Client

__all__ = ["OnFull", "Subscription"]

OnFull: TypeAlias = Literal["block", "fail"]


class Subscription:
    """Iterate over it: `async for event in subscription`. Made by `Client.subscribe`."""

    def __init__(self, client: "Client", name: str, text: str, on_full: OnFull, queue: int, took: Callable[[], None]):
        self.name = name
        """Unique in the network."""
        self.filter = text
        self.cuts: dict[str, int] = {}
        """The starting cut: for each publisher, the number of the first event that counts. Publishers that turn up
        later are added."""
        self.last: dict[str, int] | None = None
        """The ending cut, once it is over: for each publisher, the number up to which everything was delivered."""
        self._client = client
        self._on_full = on_full
        self._holds_back = on_full == "block"
        self._limit = queue
        self._took = took
        self._queue: deque[tuple[int, Event]] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._error: GaplessError | None = None
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Subscription {self.name} to {self.filter!r}>"

    # ---- for the application ------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        queue = self._queue
        while not queue:
            if self._is_over:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            await self._something()
        event = queue.popleft()[1]
        self._took()
        return event

    async def take(self, most: int = 256) -> list[Event]:
        """The next events, at least one and as many as are there; empty when the subscription is over."""
        queue = self._queue
        while not queue:
            if self._is_over:
                if self._error is not None:
                    raise self._error
                return []
            await self._something()
        count = min(most, len(queue))
        pop = queue.popleft
        events = [pop()[1] for _ in range(count)]
        self._took()
        return events

    async def close(self) -> None:
        """End it, with an exact ending cut. What was delivered before can still be taken."""
        await self._client.unsubscribe(self)

    async def _something(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            with suppress(ValueError):  # it may have been woken in the same moment
                self._waiters.remove(waiter)
            raise

    # ---- for the client -----------------------------------------------------------------------------------

    @property
    def holds_back(self) -> bool:
        """Whether the network waits for this one's application."""
        return self._holds_back

    def release(self) -> None:
        """The application wants no more: nobody has to wait for it."""
        self._holds_back = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes in."""
        return self._is_over

    def oldest(self) -> int | None:
        """The number of the first delivery that was not taken."""
        return self._queue[0][0] if self._queue else None

    def put(self, number: int, event: Event) -> bool:
        """A delivery. False if that was one too many, and the subscription is over."""
        if self._is_over:
            return True
        if self._on_full == "fail" and len(self._queue) >= self._limit:
            self.end(
                SlowConsumerError(
                    f"{self._limit} events of {self.filter!r} were not taken in time, so the subscription ended; "
                    "take them faster, or subscribe with on_full='block'"
                )
            )
            return False
        self._queue.append((number, event))
        if self._waiters:
            self._wake()
        return True

    def end(self, error: GaplessError | None = None) -> None:
        """Nothing more comes in."""
        if not self._is_over:
            self._is_over = True
            self._error = error
            self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
