"""The queue of deliveries between the network and one subscription's application: events, missing-event reports, and
the end.

The client adds the network's deliveries, and the application takes them in order. If the application is slow:

- by default the broker sends only a bounded number of deliveries ahead of it. Beyond a bound for pending deliveries the
  client lags: the broker serves it from history;
- with `max_pending`, the subscription ends with a `SlowConsumerError` when more events are pending, after those within
  the limit.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import suppress
from functools import partial
from time import time
from typing import Any, NamedTuple, Protocol, TypeAlias

from gapless.client.acks import Acks
from gapless.client.archived import Item, Past
from gapless.client.middleware import Deliver
from gapless.client.own_loop import OwnLoop
from gapless.client.pending_events import PendingEvents
from gapless.client.progress import Progress
from gapless.client.replay import Replay
from gapless.errors import ClosedError, GaplessError, NoEventError, SkippedError, SlowConsumerError
from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.positions import Position, Volume

__all__ = ["PENDING_MAX", "Deliveries", "Settings", "Subscriber"]

Lost: TypeAlias = dict[str, list[tuple[int, int]]]
Gap: TypeAlias = tuple[Position, Position]

PENDING_MAX = 10_000
"""The default of `max_pending` in protocols without flow control."""

_BEFORE_ALL = -(2**62)
"""The delivery number of the first archived event, smaller than that of any delivery from a broker."""


class Subscriber(Protocol):
    async def unsubscribe(self, subscription: Any) -> None: ...


class Settings(NamedTuple):
    """The parameters of a new subscription."""

    client: Subscriber
    took: Callable[[], None]
    """Called after the application has taken events."""
    id: str
    filter: str
    max_pending: int | None
    deliver: Deliver | None = None
    """Called with each event that the application takes."""
    now_s: Callable[[], float] = time
    """The clock of the network, in seconds since 1970."""


def _skipped(text: str, lost: Lost, gap: Gap | None) -> SkippedError:
    gone = sum(last - first + 1 for ranges in lost.values() for first, last in ranges)
    what, are, them = f"{gone:,} events", "are", "them"
    if gap is not None:
        what = f"{gone:,} events, and an unknown number before them," if gone else "an unknown number of events"
    elif gone == 1:
        what, are, them = "1 event", "is", "it"
    message = f"{what} that {text!r} may match {are} lost: no broker holds {them} any longer"
    return SkippedError(message, lost, gap)


class Deliveries:
    """Base class of subscriptions: the queue of their deliveries, and their progress."""

    def __init__(self, settings: Settings) -> None:
        self.filter: str = settings.filter
        """The filter that events match."""
        self.id: str = settings.id
        """The identifier of this subscription in the network, in logs and in traces."""
        self.name: str = ""
        """The name of a durable subscription; empty for other subscriptions."""
        self.starting_cut: dict[str, int] = {}
        """For each publisher, the number of the first event of the subscription. Publishers that appear later are
        added. Empty for a subscription that begins at a position: with `since=…`, or durable."""
        self.ending_cut: dict[str, int] | None = None
        """After the end of the subscription: for each publisher, the number up to which all events were delivered."""
        self.is_live: bool = True
        """Whether the subscription receives live events. False while it reads history."""
        self.archive_end: Position | None = None
        """For a subscription that began in an archive: the position at which brokers took over."""
        self._progress = Progress()
        self._acks: Acks | None = None
        """The acknowledgements of a durable subscription; None for others."""
        self._skips: deque[tuple[int, SkippedError]] = deque()
        """Reports of missing events, each with the number of the delivery that follows the gap."""
        self._own_loop = OwnLoop(f"the subscription to {settings.filter!r}")
        self._client = settings.client
        self._took = settings.took
        self._is_bounded = False
        """Whether this is a bounded read, which ends at a position."""
        self._deliver = settings.deliver
        self._now_s = settings.now_s
        self._holds_back = settings.max_pending is None
        """Whether a slow application of this subscription makes brokers wait."""
        self._limit = settings.max_pending
        self._got: dict[str, int] = {}
        """With `max_pending`: for each publisher, the number of the last event that was accepted within the limit."""
        self._pending_events = PendingEvents()
        self._replay = Replay(self._pending_events, self._skips)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._error: GaplessError | None = None
        self._has_ended = False
        self._is_closed = False
        """Whether the application has closed the subscription."""
        self._past: AsyncIterator[Callable[[], None]] | None = None
        """The archived events, which precede those from brokers."""
        self._enqueuing: asyncio.Task[None] | None = None

    # ---- called by the application --------------------------------------------------------------------------

    async def _wait(self, timeout_s: float | None) -> bool:
        """Wait for an event. Return False, or raise the error that ended the subscription, if none will arrive."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._pending_events:
                    self._raise_skipped(None)
                    if self._past is not None:
                        await self._enqueue_archived(self._past)
                        continue
                    if self._has_ended:
                        if self._error is not None:
                            raise self._error
                        return False
                    await self._something()
        except TimeoutError:
            raise NoEventError(f"no event that matches {self.filter!r} arrived within {timeout_s:g} s") from None
        return True

    async def _enqueue_archived(self, past: AsyncIterator[Callable[[], None]]) -> None:
        """Add the next archived events to the queue. No event is lost if the caller stops waiting."""
        if self._enqueuing is None:
            self._enqueuing = asyncio.create_task(self._enqueue_next_archived(past))
        enqueuing = self._enqueuing
        try:
            await asyncio.shield(enqueuing)
        finally:
            if enqueuing.done() and self._enqueuing is enqueuing:
                self._enqueuing = None

    async def _enqueue_next_archived(self, past: AsyncIterator[Callable[[], None]]) -> None:
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
            with suppress(ValueError):  # the future may have been completed and removed already
                self._waiters.remove(waiter)
            raise

    def _raise_skipped(self, number: int | None) -> None:
        """Raise the report of events missing before this delivery, if there is one."""
        if self._skips and (number is None or self._skips[0][0] <= number):
            _, skipped = self._skips.popleft()
            self._replay.look()
            self._settle()
            raise skipped

    # ---- called by the client -------------------------------------------------------------------------------

    def _begin_in(self, past: Past, client: Any, go_on: Callable[[Position], Awaitable[None]]) -> None:
        """Begin with the events of an archive. At its end call `go_on` with the position, unless a bounded read ends
        there.
        """
        self._read_from(past.position)
        self._past = self._items(past, client, go_on)

    async def _items(
        self, past: Past, client: Any, go_on: Callable[[Position], Awaitable[None]]
    ) -> AsyncIterator[Callable[[], None]]:
        number = _BEFORE_ALL
        async for item in past.items(client):
            yield partial(self._enqueue, number, item, past.position)
            number += len(item) if isinstance(item, list) else 0
        self.archive_end = past.position
        self._reach(past.position, is_live=False)
        if past.is_all:
            self._end()
        else:
            await go_on(past.position)

    def _enqueue(self, number: int, item: Item, position: Position) -> None:
        if isinstance(item, list):
            self._pending_events.put(number, item)
        else:
            self._skips.append((number, item))
        self._reach(position, is_live=False)

    def _release(self) -> None:
        """Exempt this subscription from flow control, because its application takes no further events."""
        self._holds_back = False

    def _oldest(self) -> int | None:
        """Return the number of the first pending delivery, or None."""
        return self._pending_events.first if self._pending_events else None

    def _read_from(self, since: Position | None) -> None:
        """Record that the subscription reads history, beginning after this position."""
        self.is_live = False
        self._progress.begin(since)
        self._replay.begin()

    def _reach(self, position: Position, *, is_live: bool) -> None:
        """Record that all events up to this position were delivered."""
        self.is_live = is_live
        self._progress.reach(position, is_live=is_live)
        self._settle()
        if is_live:
            self._replay.end()
        else:
            self._replay.begin()

    def _count(self, position: Position, counted: Volume) -> None:
        """Record the volume of the events up to this position. Only surveys use it."""

    def _settle(self) -> None:
        if not self._pending_events and not self._skips:
            self._progress.settle()

    def _put(self, number: int, events: list[Event] | EventRun) -> bool:
        """Add events, the first with this delivery number. Return False if they exceeded `max_pending` and ended the
        subscription.
        """
        if self._has_ended:
            return True
        room = len(events) if self._limit is None else self._limit - len(self._pending_events)
        fitting = list(events)[: max(0, room)] if room < len(events) else events
        if self._limit is not None:
            self._got.update([(event.publisher, event.seq) for event in fitting])
        self._pending_events.put(number, fitting)
        if self._waiters and fitting:
            self._wake()
        if room < len(events):
            self._give_up()
            return False
        return True

    def _withdraw(self, numbers: Container[int]) -> None:
        """Remove pending deliveries that were reassigned to another member of the group."""
        gone = self._pending_events.withdraw(numbers)
        if not gone:
            return
        self._took()

    def _skip(self, number: int, lost: Lost, gap: Gap | None) -> None:
        """Report events missing before the delivery with this number. All gaps at one place become one error."""
        if self._skips and self._skips[-1][0] == number:
            before = self._skips.pop()[1]
            lost = {name: [*before.lost.get(name, ()), *lost.get(name, ())] for name in {**before.lost, **lost}}
            gaps = [each for each in (before.gap, gap) if each is not None]
            gap = (min(gaps)[0], max(each[1] for each in gaps)) if gaps else None
        self._skips.append((number, _skipped(self.filter, lost, gap)))
        self._wake()

    def _give_up(self) -> None:
        reason = (
            f"the subscription to {self.filter!r} ended because more than {self._limit:,} of its events were pending; "
            "consume them faster, or subscribe without max_pending"
        )
        self.ending_cut = {**{publisher: cut - 1 for publisher, cut in self.starting_cut.items()}, **self._got}
        self._end(SlowConsumerError(reason, self.ending_cut))

    def _end(self, error: GaplessError | None = None) -> None:
        """End the subscription, with an error if there is one."""
        if not self._has_ended:
            self._has_ended = True
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
