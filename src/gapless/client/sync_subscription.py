"""Generated from `gapless.client.subscription` by `scripts/generate_sync_client.py`. Edit that file instead."""

from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from gapless.client.fetching import Fetching
from gapless.client.sync_durable_event import DurableEvent
from gapless.events import Event
from gapless.positions import Position

__all__ = ["DurableSubscription", "Subscription"]
if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import TypeVar as DefaultedTypeVar

    T = DefaultedTypeVar("T", default=Event)
    D = DefaultedTypeVar("D", default=DurableEvent)
else:
    T = TypeVar("T")
    D = TypeVar("D")


class Subscription(Fetching[T], Generic[T]):
    """A stream of events to iterate over: `for event in subscription`. `Client.subscribe` and `Client.read` return it.

    `Subscription` alone yields events; `Subscription[Trade]` values of a type. An event that does not fit the type
    raises a `ConversionError` instead; the next call continues after it.
    """

    @property
    def filter(self) -> str:
        """The filter that events match."""
        found: str = self._inner.filter
        return found

    @property
    def id(self) -> str:
        """The identifier of this subscription in the network, in logs and in traces."""
        found: str = self._inner.id
        return found

    @property
    def name(self) -> str:
        """The name of a durable subscription; empty for other subscriptions."""
        found: str = self._inner.name
        return found

    @property
    def starting_cut(self) -> dict[str, int]:
        """For each publisher, the number of the first event of the subscription. Publishers that appear later are
        added. Empty for a subscription that begins at a position: with `since=…`, or durable."""
        found: dict[str, int] = dict(self._inner.starting_cut)
        return found

    @property
    def ending_cut(self) -> dict[str, int] | None:
        """After the end of the subscription: for each publisher, the number up to which all events were delivered."""
        found: dict[str, int] | None = self._inner.ending_cut
        return found

    @property
    def is_live(self) -> bool:
        """Whether the subscription receives live events. False while it reads history."""
        found: bool = self._inner.is_live
        return found

    @property
    def archive_end(self) -> Position | None:
        """For a subscription that began in an archive: the position at which brokers took over."""
        found: Position | None = self._inner.archive_end
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found: T = self._next()
        return found

    def take(self, most: int = 256, *, timeout_s: float | None = None) -> list[T]:
        """Return the next events: at least one, and all pending ones up to `most`. Return an empty list after the end.

        Parameters:
            most: the largest number of events to return.
            timeout_s: how long to wait for the first one before a `NoEventError`. None waits without a limit.

        Example: `for event in subscription.take(100, timeout_s=5): print(event)`
        """
        return self._take(most, timeout_s=timeout_s)

    def to_arrow(self) -> "pyarrow.Table":
        """Return all remaining events of a bounded read as a table (see `gapless.client.tables`).

        Example: `table = client.read("topic = 'order'", "1h").to_arrow()`
        """
        found: pyarrow.Table = self._loop.run(self._inner.to_arrow())
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Read a bounded read to its end, and return its events as a data frame.

        Example: `frame = client.read("topic = 'order'", "1h").to_pandas()`
        """
        found: pandas.DataFrame = self._loop.run(self._inner.to_pandas())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the subscription. If no broker is connected, wait at most 5 s for its ending cut."""
        self._loop.run(self._inner.__aexit__(kind, error, trace))

    def close(self) -> None:
        """End the subscription with an exact ending cut. Events delivered before can still be taken.

        Example: `subscription.close()`
        """
        self._loop.run(self._inner.close())

    @property
    def position(self) -> Position:
        """The position up to which the application has taken everything, from which another subscription can continue.

        It advances while history is read. A subscription without `since` that is not durable has none, and raises a
        `CallError`.
        """
        found: Position = self._inner.position
        return found

    @property
    def backlog(self) -> int:
        """The number of delivered events that the application has not taken yet."""
        return self._backlog()

    @property
    def events_behind(self) -> int | None:
        """The number of delivered events that were not taken, for a live subscription. None while it reads history,
        because brokers do not report how much follows.
        """
        return self._events_behind()

    @property
    def lag_s(self) -> float:
        """How many seconds the application lags, by the clock of the network. This is the age of the oldest event that
        was not taken, or, while history is read, of its position. 0 if the application has taken everything.
        """
        found: float = self._inner.lag_s
        return found

    @property
    def has_ended(self) -> bool:
        """Whether the subscription has ended. Events delivered before can still be taken."""
        found: bool = self._inner.has_ended
        return found

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the requested history, so that the next events are live. Always
        False in a group, because no member receives all of it.
        """
        return self._is_caught_up()

    def caught_up(self) -> None:
        """Wait until the application has taken all of the requested history. Another task has to take the events,
        because this call takes none.

        A bounded read is caught up at its end. If it fails before, its error is raised here as well.

        Example: `subscription.caught_up()`
        """
        self._caught_up()

    def resubscribe(self) -> Self:
        """Subscribe again with the same filter after the end of this subscription, and return the new one.

        Events published between the `ending_cut` of this subscription and the `starting_cut` of the new one are not
        delivered. For this reason it does not happen automatically.

        Example: `subscription = subscription.resubscribe()`
        """
        return type(self)(self._loop, self._loop.run(self._inner.resubscribe()))


class DurableSubscription(Subscription[D], Generic[D]):
    """A durable subscription to which this client is attached. `Client.durable` returns it.

    Iterate over it: `for event in subscription`. Acknowledged events are never delivered again. Others are redelivered,
    to this client or to the next that attaches.
    """

    def ack(self, upto: Event | Position | None = None) -> None:
        """Acknowledge everything that the application took, or everything up to an event or a position.

        Returns when a majority of the registry replicas has stored it: none of it is delivered again. If some of it was
        redelivered to another member of the group before, an `AckTooLateError` names these events.

        Parameters:
            upto: an event that was taken: this one, and everything that was delivered before it; or a position. None:
                everything taken so far.

        Example: `subscription.ack(event)`
        """
        self._loop.run(self._inner.ack(upto))
