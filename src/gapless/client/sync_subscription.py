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
    """Iterate over it: `for event in subscription`. Made by `Client.subscribe` and `Client.read`.

    `Subscription` alone yields events; `Subscription[Trade]` values of a type. An event that does not fit the type
    raises a `ConversionError` in its place; the next call continues after it.
    """

    @property
    def filter(self) -> str:
        """The filter."""
        found: str = self._inner.filter
        return found

    @property
    def id(self) -> str:
        """Identifies this subscription of this client in the network, in logs and traces."""
        found: str = self._inner.id
        return found

    @property
    def name(self) -> str:
        """The name of a durable subscription; empty for others."""
        found: str = self._inner.name
        return found

    @property
    def starting_cut(self) -> dict[str, int]:
        """For each publisher, the number of the first event of the subscription. Publishers that appear later are
        added. It is empty for a subscription that begins at a position (`since=…`, or a durable one)."""
        found: dict[str, int] = dict(self._inner.starting_cut)
        return found

    @property
    def ending_cut(self) -> dict[str, int] | None:
        """Once it has ended: for each publisher, the number up to which everything was delivered."""
        found: dict[str, int] | None = self._inner.ending_cut
        return found

    @property
    def is_live(self) -> bool:
        """Whether it receives live events; False while it reads history."""
        found: bool = self._inner.is_live
        return found

    @property
    def archive_end(self) -> Position | None:
        """If it began in an archive: the position up to which the archive was read, once brokers have taken over."""
        found: Position | None = self._inner.archive_end
        return found

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found: T = self._next()
        return found

    def take(self, most: int = 256, *, timeout_s: float | None = None) -> list[T]:
        """Return the next events: all pending ones, at least one, or an empty list when the subscription has ended.

        Parameters:
            most: the largest number of events to return.
            timeout_s: how long to wait for the first one before a `NoEventError`. None waits without a limit.

        Example: `for event in subscription.take(100, timeout_s=5): print(event)`
        """
        return self._take(most, timeout_s=timeout_s)

    def to_arrow(self) -> "pyarrow.Table":
        """Read to the end, and return the events as a table: for a bounded read (see `gapless.client.tables`).

        Example: `table = client.read("topic = 'order'", "1h").to_arrow()`
        """
        found: pyarrow.Table = self._loop.run(self._inner.to_arrow())
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Read to the end, and return the events as a data frame: for a bounded read.

        Example: `frame = client.read("topic = 'order'", "1h").to_pandas()`
        """
        found: pandas.DataFrame = self._loop.run(self._inner.to_pandas())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the subscription. Without a broker, it ends later, and this waits at most 5 s for its ending cut."""
        self._loop.run(self._inner.__aexit__(kind, error, trace))

    def close(self) -> None:
        """End it with an exact ending cut. Events delivered before can still be taken.

        Example: `subscription.close()`
        """
        self._loop.run(self._inner.close())

    @property
    def position(self) -> Position:
        """The position up to which you have taken everything, so another subscription can continue from there.

        It advances while history is read. A subscription without `since` that is not durable has none, and raises a
        `CallError`.
        """
        found: Position = self._inner.position
        return found

    @property
    def backlog(self) -> int:
        """How many delivered events the application has not taken yet."""
        return self._backlog()

    @property
    def events_behind(self) -> int | None:
        """The number of delivered events that were not taken, once the subscription is live. None while it reads
        history, whose size brokers do not report."""
        return self._events_behind()

    @property
    def lag_s(self) -> float:
        """How many seconds the application lags, by the clock of the network: the age of the oldest event that was not
        taken, or, while history is read, of its position. 0 if it has taken everything."""
        found: float = self._inner.lag_s
        return found

    @property
    def has_ended(self) -> bool:
        """Whether it has ended. Events delivered before can still be taken."""
        found: bool = self._inner.has_ended
        return found

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the requested history, so that the next events are live. In a group
        always False, because no member receives all of it."""
        return self._is_caught_up()

    def caught_up(self) -> None:
        """Return when the application has taken all of the requested history: later events are live. This call takes
        nothing itself, so another thread has to.

        A bounded read is caught up at its end. If it fails before, its error is raised here as well.

        Example: `subscription.caught_up()`
        """
        self._caught_up()

    def resubscribe(self) -> Self:
        """Subscribe again with the same filter, after its end.

        Events published between the `ending_cut` of this subscription and the `starting_cut` of the new one are not
        delivered. For this reason it does not happen automatically.

        Example: `subscription = subscription.resubscribe()`
        """
        return type(self)(self._loop, self._loop.run(self._inner.resubscribe()))


class DurableSubscription(Subscription[D], Generic[D]):
    """A durable subscription that is attached to this client. Made by `Client.durable`.

    Iterate over it: `for event in subscription`. Acknowledged events are never delivered again. Others are redelivered,
    to this client or to the next that attaches.
    """

    def ack(self, upto: Event | Position | None = None) -> None:
        """Acknowledge everything that you took, or everything up to an event, or up to a position.

        Returns when a majority of the registry replicas has stored it: none of it is delivered again. If some of it was
        redelivered to another member of the group before, an `AckTooLateError` names these events.

        Parameters:
            upto: an event that was taken: this one, and everything that was delivered before it; or a position. None:
                everything taken so far.

        Example: `subscription.ack(event)`
        """
        self._loop.run(self._inner.ack(upto))
