"""Subscriptions for programs without an event loop: iterators and context managers.

Events are fetched in batches, so a loop over a subscription does not cross threads for each. Several threads can take
from the same subscription; each event is taken by one of them.
"""

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from gapless.client import changes, subscription
from gapless.client.acks import Acks
from gapless.client.arguments import check_count
from gapless.client.changes import ConnectionChange
from gapless.client.durable_event import not_taken
from gapless.client.loop_thread import LoopThread
from gapless.events import Event
from gapless.positions import Position

__all__ = ["ConnectionChanges", "DurableEvent", "DurableSubscription", "Subscription"]

FETCH = 256


class DurableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a durable subscription. It equals the event that was published; a copy cannot be acknowledged.

    `with event:` acknowledges it when the block succeeds, and gives it back when the block raises.
    """

    redelivered: bool = False
    """Whether it may have been delivered before, to this client or to another, without an acknowledgement. False is
    certain; after a crash, events published up to ten seconds later are marked, too."""
    delivery_count: int = 1
    """How many times it was delivered, this time included. In a group this counts for all members, whatever became of
    them; else it counts what was given back (`nack`), by this client or an earlier one."""
    _acks: ClassVar[Acks | None] = None
    """Set on each event, as the next is, but no field: it is not shown, copied or encoded."""
    _number: ClassVar[int] = 0
    """The number of its delivery."""

    def ack(self) -> None:
        """Acknowledge this event, and no other. Returns when it can never be delivered again.

        With `ack="auto"` this acknowledges everything that was taken. An event that was given back stays so.

        Example: `event.ack()`
        """
        if self._acks is None:
            raise not_taken(self)
        self._acks.run(self._acks.ack_event(self._number, self))

    def nack(self, *, delay_s: float = 0.0) -> None:
        """Give the event back: it is delivered again, in a group to another member if there is one. For
        `ack="manual"`.

        Parameters:
            delay_s: deliver it again after so many seconds, up to a day.

        Example: `event.nack(delay_s=5)`
        """
        if self._acks is None:
            raise not_taken(self)
        self._acks.run(_soon(self._acks.nack, self._number, self, delay_s))

    def in_progress(self) -> None:
        """Say that you still work on it: in a group, its `redeliver_s` begins anew. For `ack="manual"`.

        Raises an `AckTooLateError` if the event is another member's by now.

        Example: `event.in_progress()`
        """
        if self._acks is None:
            raise not_taken(self)
        self._acks.run(_soon(self._acks.in_progress, self._number, self))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.ack()
        elif isinstance(error, Exception) and self._acks is not None:
            self._acks.run(_soon(self._acks.failed_at, self._number, self))


async def _soon(call: Callable[..., None], *arguments: Any) -> None:
    """Make a call in the client's event loop."""
    call(*arguments)


if TYPE_CHECKING:  # type checkers know defaults of type variables, Python 3.11 does not
    import pandas
    import pyarrow
    from typing_extensions import TypeVar as DefaultedTypeVar

    T = DefaultedTypeVar("T", default=Event)
    D = DefaultedTypeVar("D", default=DurableEvent)
else:
    T = TypeVar("T")
    D = TypeVar("D")


class Subscription(Generic[T]):
    """Iterate over it: `for event in subscription`. Made by `Client.subscribe` and `Client.read`.

    `Subscription` alone is one of events; `Subscription[Trade]` one of values of a type. An event that does not fit the
    type is raised as a `ConversionError` in its place; the next call continues after it.
    """

    def __init__(self, loop: LoopThread, inner: subscription.Subscription[Any]) -> None:
        self._loop = loop
        self._inner = inner
        self._fetched: deque[T] = deque()
        self._has_history = False
        """Whether what is fetched is history."""
        self._drained = threading.Condition()
        self.id: str = inner.id
        self.name: str = inner.name
        self.filter: str = inner.filter
        self._at_once = FETCH if inner._acks is None else 1
        """What is fetched counts as taken, and what is taken of a durable subscription can be acknowledged."""

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def starting_cut(self) -> dict[str, int]:
        """For each publisher, the number of the first event that counts."""
        return dict(self._inner.starting_cut)

    @property
    def ending_cut(self) -> dict[str, int] | None:
        """Once it has ended: for each publisher, the number up to which everything was delivered."""
        return self._inner.ending_cut

    @property
    def position(self) -> Position:
        """You have taken everything up to this position, so another subscription can continue from there.

        It moves while history is read. A subscription without `since` that is not durable has none, and raises a
        `CallError`.
        """
        return self._inner.position

    @property
    def is_live(self) -> bool:
        """Whether it receives what is published now; False while it reads history."""
        return self._inner.is_live

    @property
    def archive_end(self) -> Position | None:
        """If it began in an archive: the position up to which the archive was read, once brokers have taken over."""
        return self._inner.archive_end

    @property
    def backlog(self) -> int:
        """How many delivered events the application has not taken yet."""
        return self._inner.backlog + len(self._fetched)

    @property
    def events_behind(self) -> int | None:
        """How many events the application is behind, where that can be known: once the subscription is live, those that
        were delivered and not taken. None while it reads history, of which brokers tell no number."""
        behind = self._inner.events_behind
        return None if behind is None else behind + len(self._fetched)

    @property
    def lag_s(self) -> float:
        """How many seconds the application is behind, by the clock of the network: the age of the oldest event that
        was not taken, or, while history is read, of the position that it has come to. 0 if it has taken everything."""
        return self._inner.lag_s

    @property
    def has_ended(self) -> bool:
        """Whether it has ended. Events that were delivered before can still be taken."""
        return self._inner.has_ended

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        while True:
            with suppress(IndexError):  # another thread may have taken it
                item = self._fetched.popleft()
                self._note_drained()
                return item
            if not self._loop.run(self._fetch(self._at_once, None)):
                raise StopIteration

    def take(self, most: int = FETCH, *, timeout_s: float | None = None) -> list[T]:
        """Return the next events: as many as wait, at least one, or an empty list when the subscription has ended.

        Parameters:
            most: the largest number of events to return.
            timeout_s: how long to wait for the first one; a `NoEventError` if none comes. None waits without a limit.

        Example: `for event in subscription.take(100, timeout_s=5): print(event)`
        """
        check_count("most", most)
        while True:
            events: list[T] = []
            with suppress(IndexError):
                while len(events) < most:
                    events.append(self._fetched.popleft())
            self._note_drained()
            if events or not self._loop.run(self._fetch(most, timeout_s)):
                return events

    def to_arrow(self) -> "pyarrow.Table":
        """Read to the end, and return the events as a table: for a bounded read (see `gapless.client.tables`).

        Example: `table = client.read("topic = 'order'", "1h").to_arrow()`
        """
        return self._loop.run(self._inner.to_arrow())

    def to_pandas(self) -> "pandas.DataFrame":
        """Read to the end, and return the events as a data frame: for a bounded read.

        Example: `frame = client.read("topic = 'order'", "1h").to_pandas()`
        """
        return self._loop.run(self._inner.to_pandas())

    async def _fetch(self, most: int, timeout_s: float | None) -> int:
        """Put events where the caller takes them: a caller that is interrupted meanwhile loses none."""
        was_caught_up = self._inner.is_caught_up
        events = await self._inner.take(most, timeout_s=timeout_s)
        with self._drained:
            self._has_history = self._has_history or (bool(events) and not was_caught_up)
            self._fetched.extend(events)
        return len(events)

    def _note_drained(self) -> None:
        if self._has_history:
            with self._drained:
                if not self._fetched:
                    self._has_history = False
                    self._drained.notify_all()

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the history that was asked for, and what comes now is live. In a
        group always False, as no member sees all of it."""
        return self._inner.is_caught_up and not self._has_history

    def caught_up(self) -> None:
        """Return when the application has taken all of the history that was asked for: what follows was published
        since. This call takes nothing itself, so another thread has to."""
        self._loop.run(self._inner.caught_up())
        with self._drained:
            self._drained.wait_for(lambda: not self._has_history)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. Without a broker, this waits for the ending cut for 5 s at most; the subscription ends later."""
        self._loop.run(self._inner.__aexit__(kind, error, trace))

    def close(self) -> None:
        """End it with an exact ending cut. Events that were delivered before can still be taken."""
        self._loop.run(self._inner.close())

    def resubscribe(self) -> Self:
        """After its end, subscribe anew with the same filter.

        Events published between the `ending_cut` of this subscription and the `starting_cut` of the new one are not
        delivered. That is why it does not happen by itself.
        """
        return type(self)(self._loop, self._loop.run(self._inner.resubscribe()))


class DurableSubscription(Subscription[D], Generic[D]):
    """A durable subscription that is attached to this client. Made by `Client.durable`.

    Iterate over it: `for event in subscription`. Acknowledged events are never delivered again. Others are
    redelivered, to this client or to the next that attaches.
    """

    _inner: subscription.DurableSubscription[Any]

    def ack(self, upto: Event | Position | None = None) -> None:
        """Acknowledge everything that you took, or everything up to an event, or up to a position.

        Returns when a majority of the registry replicas has stored it: none of it is delivered again. If some of it was
        redelivered to another member of the group before, an `AckTooLateError` names these events.

        Example: `subscription.ack(event)`
        """
        self._loop.run(self._inner.ack(upto))


class ConnectionChanges:
    """Iterate over it: `for change in client.connection_changes()`. It begins with the current state, and ends with the
    client."""

    def __init__(self, loop: LoopThread, inner: changes.ConnectionChanges) -> None:
        self._loop = loop
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConnectionChange:
        change = self._loop.run(self._next())
        if change is None:
            raise StopIteration
        return change

    async def _next(self) -> ConnectionChange | None:
        return await anext(self._inner, None)
