"""A subscription, as its application sees it: events in order, from an exact start to an exact end.

Events wait here until the application takes them. What happens if it does not is its own choice:

- `block`: the broker is told what was taken, and sends no more than a bounded number ahead. It keeps the rest, and when
  brokers keep as much as they may, publishers wait. Nothing is lost, and nobody else's memory is used up.
- `fail`: others are never held back. When more than `queue` events wait, the subscription ends, and says so with a
  `SlowConsumerError` after the events that did fit.

Events are never dropped without a word. A subscription that its application closed just ends; one that the network
ended says so with a `SubscriptionEndedError`, after the last event before the gap.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import suppress
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, cast, get_args

from gapless.client.archived import Item, Past
from gapless.client.arguments import check_choice, check_count, check_timeout
from gapless.client.confirmations import ConfirmableEvent, Confirmations
from gapless.client.own_loop import OwnLoop
from gapless.client.progress import Progress
from gapless.client.reader import Reader
from gapless.client.replay import Replay
from gapless.client.untaken import Untaken
from gapless.errors import (
    CallError,
    ClosedError,
    GaplessError,
    MisfitError,
    NoEventError,
    SkippedError,
    SlowConsumerError,
)
from gapless.events import Event, Events
from gapless.positions import Position
from gapless.protocol import ProtocolSpec

__all__ = [
    "BaseSubscription", "ConfirmableSubscription", "OnFull", "Subscriber", "Subscription", "TypedSubscription",
    "chosen_policy",
]  # fmt: skip

OnFull: TypeAlias = Literal["block", "fail"]

T = TypeVar("T")

Lost: TypeAlias = dict[str, list[tuple[int, int]]]
Gap: TypeAlias = tuple[Position, Position]

LEAVE_S = 5.0
"""How long the end of an `async with` block waits for the ending cut."""

_BEFORE_ALL = -(2**62)
"""The number of the first event out of an archive: less than that of any delivery."""


def chosen_policy(spec: ProtocolSpec, on_full: OnFull | None) -> OnFull:
    """What happens if events are not taken: what the application chose, or the protocol can do best."""
    if on_full is None:
        return "block" if spec.paces else "fail"
    check_choice("on_full", on_full, get_args(OnFull))
    if on_full == "block" and not spec.paces:
        raise CallError(f"protocol {spec.name!r} cannot hold events back; subscribe with on_full='fail'")
    return on_full


def _skipped(text: str, lost: Lost, gap: Gap | None) -> SkippedError:
    gone = sum(last - first + 1 for ranges in lost.values() for first, last in ranges)
    what, are, them = f"{gone:,} events", "are", "them"
    if gap is not None:
        what = f"{gone:,} events, and an unknown number before them," if gone else "an unknown number of events"
    elif gone == 1:
        what, are, them = "1 event", "is", "it"
    message = f"{what} that {text!r} may match {are} gone: no broker holds {them} any more"
    return SkippedError(message, lost, gap)


class Subscriber(Protocol):
    """The client whose subscription it is."""

    async def unsubscribe(self, subscription: "BaseSubscription[Any]") -> None: ...


class BaseSubscription(ABC, Generic[T]):
    """What all subscriptions have in common; `_read` makes of an event what the application gets."""

    def __init__(
        self,
        client: Subscriber,
        took: Callable[[], None],
        name: str,
        text: str,
        on_full: OnFull,
        queue: int,
        again: Callable[[], Awaitable["BaseSubscription[T]"]],
    ) -> None:
        self.name = name
        """Unique in the network."""
        self.title = ""
        """If it is a named one: its name for all who open it."""
        self.filter = text
        self.cuts: dict[str, int] = {}
        """The starting cut: for each publisher, the number of the first event that counts. Publishers that turn up
        later are added. It is empty where it starts at a position: with `name`, `share` or `since`."""
        self.last: dict[str, int] | None = None
        """The ending cut, once it is over: for each publisher, the number up to which everything was delivered."""
        self.is_live = True
        """Whether it gets what is published; not while it reads what was published before."""
        self.seam: Position | None = None
        """If it began in an archive: the position up to which it was read there, once brokers have taken over."""
        self._progress = Progress()
        self._confirmations: Confirmations | None = None
        """If it is a named one: what is confirmed of it."""
        self._skips: deque[tuple[int, SkippedError]] = deque()
        """What is gone of the history that was asked for, and the number of the delivery before which it is missing."""
        self._own_loop = OwnLoop(f"the subscription to {text!r}")
        self._client = client
        self._on_full = on_full
        self._holds_back = on_full == "block"
        """Whether the network waits for this one's application."""
        self._limit = queue
        self._got: dict[str, int] = {}
        """Where `fail` applies: the number of the last event of each publisher that did fit."""
        self._again = again
        self._took = took
        self._untaken = Untaken()
        self._replay = Replay(self._untaken, self._skips)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._error: GaplessError | None = None
        self._is_over = False
        self._is_closed = False
        """Whether the application has closed it."""
        self._past: AsyncIterator[Callable[[], None]] | None = None
        """If it begins in an archive: what lays in what comes next."""
        self._laying: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} to {self.filter!r}>"

    # ---- for the application ------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if not self._untaken and not await self._wait(None):
            raise StopAsyncIteration
        return self._next(1)[0]

    async def take(self, most: int = 256, *, timeout_s: float | None = None) -> list[T]:
        """The next events, at least one and as many as are there; empty when the subscription is over.

        With a timeout, a `NoEventError` if none comes in time.
        """
        check_count("most", most)
        seconds = check_timeout(timeout_s)
        if not self._untaken and not await self._wait(seconds):
            return []
        return self._next(most)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it. Without a broker, this waits for the ending cut for 5 s at most; the subscription ends later."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await self.close()

    async def close(self) -> None:
        """End it, with an exact ending cut. What was delivered before can still be taken."""
        self._own_loop.check()
        self._is_closed = True
        if self._past is not None:
            self._past = None
            self._end()
        await self._client.unsubscribe(self)

    @property
    def is_caught_up(self) -> bool:
        """Whether the application has taken all of the history that was asked for, and what comes now is live. In a
        group always False, as no member sees all of it."""
        return not self._is_shared and self._replay.is_taken

    async def caught_up(self) -> None:
        """Returns when the application has taken all of the history that was asked for: what comes after was published
        since. It takes nothing itself, so another task has to.

        A reading is caught up at its end. If it ends before, that is raised here as well.
        """
        if self._is_shared:
            raise CallError(f"a group shares the subscription to {self.filter!r}: no member can tell when history ends")
        self._own_loop.check()
        await self._replay.wait()

    @property
    def _is_shared(self) -> bool:
        return self._confirmations is not None and self._confirmations.is_shared

    async def confirm(self, upto: Event | Position | None = None) -> None:
        """Of a named subscription: confirm all that you took, or all up to an event, or up to a position.

        Returns when a majority of the keepers of names holds it: none of it comes again, whoever opens the name next.
        """
        if self._confirmations is None:
            raise CallError(f"the subscription to {self.filter!r} has no name, so there is nothing to confirm")
        self._own_loop.check()
        await self._confirmations.confirm(upto)

    async def resubscribe(self) -> Self:
        """After its end, begin anew: the same filter from a new starting cut on.

        What was published between the ending cut of this one (`last`) and the starting cut of the new one (`cuts`) is
        not delivered. That is why it is not done by itself.
        """
        if not self._is_over:
            raise CallError(f"the subscription to {self.filter!r} is not over; there is nothing to begin anew")
        return cast(Self, await self._again())

    async def _wait(self, timeout_s: float | None) -> bool:
        """Until there is an event, or none will come: false, or an error that says why."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._untaken:
                    self._raise_skipped(None)
                    if self._past is not None:
                        await self._lay_in(self._past)
                        continue
                    if self._is_over:
                        if self._error is not None:
                            raise self._error
                        return False
                    await self._something()
        except TimeoutError:
            raise NoEventError(f"no event of {self.filter!r} came within {timeout_s:g} s") from None
        return True

    async def _lay_in(self, past: AsyncIterator[Callable[[], None]]) -> None:
        """The next of what comes before brokers are asked. Who gives up waiting loses none of it."""
        if self._laying is None:
            self._laying = asyncio.create_task(self._lay_next(past))
        laying = self._laying
        try:
            await asyncio.shield(laying)
        finally:
            if laying.done() and self._laying is laying:
                self._laying = None

    async def _lay_next(self, past: AsyncIterator[Callable[[], None]]) -> None:
        lay = await anext(past, None)
        if self._past is not past:
            return
        if lay is None:
            self._past = None
        else:
            lay()

    async def _something(self) -> None:
        self._own_loop.check()
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            with suppress(ValueError):  # it may have been woken in the same moment
                self._waiters.remove(waiter)
            raise

    def _next(self, most: int) -> list[T]:
        """What is there, but not across what is missing: that is raised in its place."""
        if self._skips:
            self._raise_skipped(self._untaken.first)
            if self._skips:
                most = min(most, sum(number < self._skips[0][0] for number, _ in self._untaken))
        most = self._replay.within(most)
        try:
            return self._pop(most) if self._confirmations is None else self._pop_named(most, self._confirmations)
        finally:
            self._replay.look()

    def _pop_named(self, most: int, confirmations: Confirmations) -> list[T]:
        """Note what is taken, also if that is a misfit."""
        there, before = list(islice(self._untaken, most)), len(self._untaken)
        try:
            return self._pop(most)
        finally:
            for number, event in there[: before - len(self._untaken)]:
                confirmations.took(number, event)

    def _raise_skipped(self, number: int | None) -> None:
        """Raise what is missing before that delivery; or before the next that may come."""
        if self._skips and (number is None or self._skips[0][0] <= number):
            _, skipped = self._skips.popleft()
            self._replay.look()
            self._settle()
            raise skipped

    @abstractmethod
    def _pop(self, most: int) -> list[T]:
        """The events that are there, as the application wants them."""

    def _pop_events(self, most: int) -> list[Event]:
        events = self._untaken.take(most)
        if events:
            self._progress.take(events[-1])
            self._settle()
        self._took()
        return events

    # ---- for the client -----------------------------------------------------------------------------------

    def _begin_in(self, past: Past, client: Any, go_on: Callable[[Position], Awaitable[None]]) -> None:
        """Let an archive come first; then, unless that was all, `go_on` asks brokers from a position on."""
        self._read_from(past.position)
        self._past = self._items(past, client, go_on)

    async def _items(
        self, past: Past, client: Any, go_on: Callable[[Position], Awaitable[None]]
    ) -> AsyncIterator[Callable[[], None]]:
        number = _BEFORE_ALL
        async for item in past.items(client):
            yield partial(self._lay, number, item, past.position)
            number += len(item) if isinstance(item, list) else 0
        self.seam = past.position
        self._reach(past.position, is_live=False)
        if past.is_all:
            self._end()
        else:
            await go_on(past.position)

    def _lay(self, number: int, item: Item, position: Position) -> None:
        if isinstance(item, list):
            self._untaken.put(number, item)
        else:
            self._skips.append((number, item))
        self._reach(position, is_live=False)

    def _release(self) -> None:
        """The application wants no more: nobody has to wait for it."""
        self._holds_back = False

    @property
    def position(self) -> Position:
        """You have taken everything up to this position, so another subscription can go on from there.

        It moves while history is read. A subscription without `since` or a name has none, and raises a `CallError`.
        """
        if self._progress.position is None:
            raise CallError(
                f"the subscription to {self.filter!r} has no position, because it did not begin with one; subscribe "
                "with since=…, or give it a name, to go on later from where it stopped"
            )
        return self._progress.position

    @property
    def backlog(self) -> int:
        """How many delivered events the application has not taken yet."""
        return len(self._untaken)

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes in. What is there can still be taken."""
        return self._is_over

    def _oldest(self) -> int | None:
        """The number of the first delivery that was not taken."""
        return self._untaken.first if self._untaken else None

    def _read_from(self, since: Position | None) -> None:
        """It reads history, from this position on."""
        self.is_live = False
        self._progress.begin(since)
        self._replay.begin()

    def _reach(self, position: Position, *, is_live: bool) -> None:
        """Everything up to this position was delivered."""
        self.is_live = is_live
        self._progress.reach(position, is_live=is_live)
        self._settle()
        if is_live:
            self._replay.end()
        else:
            self._replay.begin()

    def _settle(self) -> None:
        if not self._untaken and not self._skips:
            self._progress.settle()

    def _put(self, number: int, events: Events) -> bool:
        """Deliveries; the first has this number. False if that was one too many, and the subscription is over."""
        if self._is_over:
            return True
        room = self._limit - len(self._untaken) if self._on_full == "fail" else len(events)
        fitting = events[: max(0, room)] if room < len(events) else events
        if self._on_full == "fail":
            self._got.update([(event.publisher, event.seq) for event in fitting])
        self._untaken.put(number, fitting)
        if self._waiters and fitting:
            self._wake()
        if room < len(events):
            self._give_up()
            return False
        return True

    def _withdraw(self, numbers: Container[int]) -> None:
        """These deliveries are another's by now: what the application has not taken it does not get."""
        gone = self._untaken.withdraw(numbers)
        if not gone:
            return
        if self._confirmations is not None:
            for event in gone:
                self._confirmations.untaken(event)
        self._took()

    def _skip(self, number: int, lost: Lost, gap: Gap | None) -> None:
        """Something is missing before the delivery of that number. What is missing in one place is one error."""
        if self._skips and self._skips[-1][0] == number:
            before = self._skips.pop()[1]
            lost = {name: [*before.lost.get(name, ()), *lost.get(name, ())] for name in {**before.lost, **lost}}
            gaps = [each for each in (before.gap, gap) if each is not None]
            gap = (min(gaps)[0], max(each[1] for each in gaps)) if gaps else None
        self._skips.append((number, _skipped(self.filter, lost, gap)))
        self._wake()

    def _give_up(self) -> None:
        reason = (
            f"events of {self.filter!r} were not taken in time, and no more than {self._limit:,} may wait, so the "
            "subscription ended; take them faster, or subscribe with on_full='block'"
        )
        self.last = {**{publisher: cut - 1 for publisher, cut in self.cuts.items()}, **self._got}
        self._end(SlowConsumerError(reason, self.last))

    def _end(self, error: GaplessError | None = None) -> None:
        """Nothing more comes in."""
        if not self._is_over:
            self._is_over = True
            self._error = error
            if error is None and not self._is_closed:
                self._replay.end()
            else:
                self._replay.fail(
                    error or ClosedError(f"the subscription to {self.filter!r} was closed before its history ended")
                )
            self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)


class Subscription(BaseSubscription[Event]):
    """Iterate over it: `async for event in subscription`. Made by `Client.subscribe`."""

    def _pop(self, most: int) -> list[Event]:
        return self._pop_events(most)


class ConfirmableSubscription(BaseSubscription[ConfirmableEvent]):
    """A named subscription: `async for event in subscription`. Made by `Client.subscribe` with a `name`."""

    def _pop(self, most: int) -> list[ConfirmableEvent]:
        assert self._confirmations is not None
        return list(map(self._confirmations.wrap, self._pop_events(most)))


class TypedSubscription(BaseSubscription[T]):
    """A subscription whose events are made into values of a type. Made by `Client.subscribe` with a `type`.

    An event that does not fit is raised as a `MisfitError`, in its place; the next call goes on after it.
    """

    def __init__(
        self,
        client: Subscriber,
        took: Callable[[], None],
        name: str,
        text: str,
        on_full: OnFull,
        queue: int,
        again: Callable[[], Awaitable["TypedSubscription[T]"]],
        reader: Reader[T],
    ) -> None:
        super().__init__(client, took, name, text, on_full, queue, again)
        self._reader = reader

    def _pop(self, most: int) -> list[T]:
        values: list[T] = []
        wrap = None if self._confirmations is None else self._confirmations.wrap
        try:
            for _, event in islice(self._untaken, most):
                values.append(self._reader.read(event, wrap))
        except MisfitError:
            if not values:
                self._pop_events(1)
                raise
        self._pop_events(len(values))
        return values
