"""Subscriptions as applications use them: asynchronous iterators and context managers over events or typed values.

Events are never dropped silently. A subscription that its application closed just ends; one that the network ended
raises a `SubscriptionEndedError` after the last event before the gap, and events that are permanently lost raise a
`SkippedError` in their place.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from gapless.client.acks import Acks
from gapless.client.arguments import check_count, check_timeout
from gapless.client.deliveries import PENDING_MAX, Deliveries, Settings
from gapless.client.durable_event import DurableEvent
from gapless.client.tables import table_of
from gapless.errors import CallError, ConversionError
from gapless.events import Event
from gapless.positions import Position

__all__ = ["DurableSubscription", "Subscription"]

if TYPE_CHECKING:  # type checkers know defaults of type variables, Python 3.11 does not
    import pandas
    import pyarrow
    from typing_extensions import TypeVar as DefaultedTypeVar

    T = DefaultedTypeVar("T", default=Event)
    D = DefaultedTypeVar("D", default=DurableEvent)
else:
    T = TypeVar("T")
    D = TypeVar("D")

CLOSE_S = 5.0
"""How long the end of an `async with` block waits for the ending cut."""


class Subscription(Deliveries, Generic[T]):
    """A stream of events to iterate over: `async for event in subscription`. `Client.subscribe` and `Client.read`
    return it.

    `Subscription` alone yields events; `Subscription[Trade]` values of a type. An event that does not fit the type
    raises a `ConversionError` instead; the next call continues after it.
    """

    def __init__(
        self, settings: Settings, again: Callable[[], Awaitable[Any]], convert: Callable[[int, Event], T] | None = None
    ) -> None:
        super().__init__(settings)
        self._again = again
        self._convert = convert
        """Converts each event to the type of the subscription, or None if the application receives events."""

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        state = "ended" if self._has_ended else "live" if self.is_live else "reading history"
        return f"<{type(self).__name__}{name} to {self.filter!r}, {state}, {len(self._pending_events):,} waiting>"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._acks is not None:
            self._acks.asked()
        if not self._pending_events and not await self._wait(None):
            raise StopAsyncIteration
        return self._next(1)[0]

    async def take(self, most: int = 256, *, timeout_s: float | None = None) -> list[T]:
        """Return the next events: at least one, and all pending ones up to `most`. Return an empty list after the end.

        Parameters:
            most: the largest number of events to return.
            timeout_s: how long to wait for the first one before a `NoEventError`. None waits without a limit.

        Example: `for event in await subscription.take(100, timeout_s=5): print(event)`
        """
        check_count("most", most)
        seconds = check_timeout(timeout_s)
        if self._acks is not None:
            self._acks.asked()
        if not self._pending_events and not await self._wait(seconds):
            return []
        return self._next(most)

    async def to_arrow(self) -> "pyarrow.Table":
        """Return all remaining events of a bounded read as a table (see `gapless.client.tables`).

        Example: `table = await (await client.read("topic = 'order'", "1h")).to_arrow()`
        """
        return table_of(await self._rest())

    async def to_pandas(self) -> "pandas.DataFrame":
        """Read a bounded read to its end, and return its events as a data frame.

        Example: `frame = await (await client.read("topic = 'order'", "1h")).to_pandas()`
        """
        return (await self.to_arrow()).to_pandas()

    async def _rest(self) -> list[Event]:
        """Take all events up to the end of a bounded read, and close it."""
        if self._convert is not None or not self._is_bounded:
            raise CallError("to_arrow() and to_pandas() are for read(…) of events; a subscription has no end")
        found: list[Event] = []
        async with self:
            while some := await self.take(PENDING_MAX):
                found += cast("list[Event]", some)
        return found

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the subscription. If no broker is connected, wait at most 5 s for its ending cut."""
        if kind is not None and self._acks is not None:
            self._acks.failed()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self.close()

    async def close(self) -> None:
        """End the subscription with an exact ending cut. Events delivered before can still be taken.

        Example: `await subscription.close()`
        """
        self._own_loop.check()
        self._is_closed = True
        if self._past is not None:
            self._past = None
            self._end()
        await self._client.unsubscribe(self)

    @property
    def position(self) -> Position:
        """The position up to which the application has taken everything, from which another subscription can continue.

        It advances while history is read. A subscription without `since` that is not durable has none, and raises a
        `CallError`.
        """
        if self._progress.position is None:
            raise CallError(
                f"the subscription to {self.filter!r} has no position, because it did not begin at one; subscribe "
                "with since=…, or use client.durable(name, filter), to continue later from where it stopped"
            )
        return self._progress.position

    @property
    def backlog(self) -> int:
        """The number of delivered events that the application has not taken yet."""
        return len(self._pending_events)

    @property
    def events_behind(self) -> int | None:
        """The number of delivered events that were not taken, for a live subscription. None while it reads history,
        because brokers do not report how much follows.
        """
        return len(self._pending_events) if self.is_live and self._past is None else None

    @property
    def lag_s(self) -> float:
        """How many seconds the application lags, by the clock of the network. This is the age of the oldest event that
        was not taken, or, while history is read, of its position. 0 if the application has taken everything.
        """
        first = next(iter(self._pending_events), None)
        if first is not None and first[1].stamp:
            since_us = first[1].stamp
        elif self.is_live or self._has_ended or self._progress.position is None:
            return 0.0
        else:
            since_us = self._progress.position.timestamp
        return max(0.0, self._now_s() - since_us / 1e6)

    @property
    def has_ended(self) -> bool:
        """Whether the subscription has ended. Events delivered before can still be taken."""
        return self._has_ended

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the requested history, so that the next events are live. Always
        False in a group, because no member receives all of it.
        """
        return not self._is_shared and self._replay.is_taken

    async def caught_up(self) -> None:
        """Wait until the application has taken all of the requested history. Another task has to take the events,
        because this call takes none.

        A bounded read is caught up at its end. If it fails before, its error is raised here as well.

        Example: `live = asyncio.create_task(subscription.caught_up())`
        """
        if self._is_shared:
            raise CallError(
                f"the subscription to {self.filter!r} is shared by a group, so no member can tell when history ends"
            )
        self._own_loop.check()
        await self._replay.wait()

    @property
    def _is_shared(self) -> bool:
        return self._acks is not None and self._acks.is_shared

    async def resubscribe(self) -> Self:
        """Subscribe again with the same filter after the end of this subscription, and return the new one.

        Events published between the `ending_cut` of this subscription and the `starting_cut` of the new one are not
        delivered. For this reason it does not happen automatically.

        Example: `subscription = await subscription.resubscribe()`
        """
        if not self._has_ended:
            raise CallError(
                f"the subscription to {self.filter!r} has not ended; resubscribe() is for ended subscriptions"
            )
        return cast(Self, await self._again())

    def _next(self, most: int) -> list[T]:
        """Return the pending events before the next report of missing events. If the report comes first, raise it."""
        if self._skips:
            self._raise_skipped(self._pending_events.first)
            if self._skips:
                most = min(most, sum(number < self._skips[0][0] for number, _ in self._pending_events))
        most = self._replay.within(most)
        try:
            return self._pop(most) if self._acks is None else self._pop_durable(most, self._acks)
        finally:
            self._replay.look()

    def _pop_durable(self, most: int, acks: Acks) -> list[T]:
        """Take events, and record them as taken even if one of them does not fit the type."""
        there, before = list(islice(self._pending_events, most)), len(self._pending_events)
        try:
            return self._pop(most)
        finally:
            for number, event in there[: before - len(self._pending_events)]:
                acks.took(number, event)

    def _pop(self, most: int) -> list[T]:
        """Take events, and convert them to the subscription's type."""
        if self._convert is None:
            return cast("list[T]", self._pop_events(most))
        values: list[T] = []
        try:
            for number, event in islice(self._pending_events, most):
                values.append(self._convert(number, event))
        except ConversionError:
            if not values:
                self._pop_events(1)
                raise
        self._pop_events(len(values))
        return values

    def _pop_events(self, most: int) -> list[Event]:
        events = self._pending_events.take(most)
        if events:
            self._progress.take(events[-1])
            self._settle()
        self._took()
        if self._deliver is not None:
            for event in events:
                self._deliver(event, self.name or self.filter, self._acks is not None)
        return events


class DurableSubscription(Subscription[D], Generic[D]):
    """A durable subscription to which this client is attached. `Client.durable` returns it.

    Iterate over it: `async for event in subscription`. Acknowledged events are never delivered again. Others are
    redelivered, to this client or to the next that attaches.
    """

    async def ack(self, upto: Event | Position | None = None) -> None:
        """Acknowledge everything that the application took, or everything up to an event or a position.

        Returns when a majority of the registry replicas has stored it: none of it is delivered again. If some of it was
        redelivered to another member of the group before, an `AckTooLateError` names these events.

        Parameters:
            upto: an event that was taken: this one, and everything that was delivered before it; or a position. None:
                everything taken so far.

        Example: `await subscription.ack(event)`
        """
        assert self._acks is not None
        self._own_loop.check()
        await self._acks.ack(upto)
