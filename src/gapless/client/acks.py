"""What the application has acknowledged of a durable subscription.

An acknowledgement is cumulative: it covers the event and everything that the subscription delivered before it. With
`ack="auto"` an event is acknowledged when the application asks for the next one, because it has processed the event by
then; acknowledgements leave many at a time. A caller that awaits
`ack()` resumes when a majority of the registry replicas has stored the acknowledgement: none of these events is
delivered again, whichever client attaches next.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, ClassVar, NamedTuple, Self

from msgspec.structs import force_setattr

from gapless.client.arguments import kind_of
from gapless.client.unsafe import fulfil, refuse
from gapless.errors import AckTooLateError, CallError, GaplessError
from gapless.events import Event
from gapless.names import Acknowledge
from gapless.positions import Position

__all__ = ["Acks", "DurableEvent", "Making", "not_taken"]

SHOWN = 5
REVOKED_MAX = 10_000
"""So many reassigned events are remembered until the application is notified."""


def not_taken(event: Event) -> CallError:
    """The error for a copy of an event, which belongs to no subscription."""
    return CallError(f"this copy of {event.id} was not taken from a subscription; acknowledge the event that was")


class DurableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a durable subscription. It equals the event that was published; a copy cannot be acknowledged.

    `async with event:` acknowledges it when the block succeeds. If the block raises, the event stays unacknowledged and
    is redelivered.
    """

    redelivered: bool = False
    """Whether it may have been delivered before, to this client or to another, without an acknowledgement. False is
    certain; after a crash, events published up to ten seconds later are marked, too."""
    _acks: ClassVar["Acks | None"] = None
    """Set on each event, but no field: it is not shown, copied or encoded."""

    async def ack(self) -> None:
        """Acknowledge the event and everything that the subscription delivered before it. Returns when none of it can
        be delivered again."""
        if self._acks is None:
            raise not_taken(self)
        await self._acks.ack(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.ack()


class Making(NamedTuple):
    """The class of a durable subscription's events, and what runs their calls in programs without an event loop."""

    kind: type[Any] = DurableEvent
    run: Callable[[Coroutine[Any, Any, None]], None] | None = None


class Acks:
    """The acknowledgements of one durable subscription."""

    def __init__(
        self, subscription: str, give: Callable[[Acknowledge], None], *, is_manual: bool, is_shared: bool = False,
        making: Making | None = None,
    ) -> None:  # fmt: skip
        self.is_shared = is_shared
        self._making = making or Making()
        self._subscription = subscription
        self._give = give
        self._is_manual = is_manual
        self._taken: deque[tuple[int, str, int, int]] = deque()
        """Taken and not acknowledged: the number of the delivery, publisher, number and timestamp."""
        self._last = 0
        """The number of the delivery that was taken last."""
        self._processed = 0
        """With `ack="auto"`: the number of the last delivery that the application has processed."""
        self._told = 0
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._error: GaplessError | None = None
        self._is_telling = False
        self._has_failed = False
        self._delivered = 0
        self._again: set[tuple[str, int]] = set()
        """In a group: events that wait to be taken and that another member may have received before."""
        self._settled: set[tuple[str, int]] = set()
        """Events that the application has finished while one that it took before is unfinished."""
        self._names: dict[int, str] = {}
        """In a group, by delivery: events that were taken and are not acknowledged."""
        self._revoked: dict[int, str] = {}
        """Those of them that were reassigned, until the application is notified."""

    # ---- for the subscription -----------------------------------------------------------------------------

    def took(self, number: int, event: Event) -> None:
        """Note that the application has taken an event."""
        self._last = number
        self._again.discard((event.publisher, event.seq))
        if self.is_shared:
            self._names[number] = event.id
        if self._is_manual:
            self._taken.append((number, event.publisher, event.seq, event.stamp))

    def asked(self) -> None:
        """With `ack="auto"`, acknowledge soon what was taken: the application asks for more, so it has processed it."""
        if not self._is_manual and self._last > self._processed:
            self._processed = self._last
            if not self._is_telling:
                self._is_telling = True
                asyncio.get_running_loop().call_soon(self._tell)

    def left(self) -> None:
        """With `ack="auto"`, acknowledge what was taken: the application closes the subscription."""
        if not self._has_failed:
            self.asked()
        self._tell()

    def failed(self) -> None:
        """The application failed at what it took last, so leaving does not acknowledge it."""
        self._has_failed = True

    def _tell(self) -> None:
        self._is_telling = False
        if self._processed > max(self._kept, self._told):
            self._told = self._processed
            self._give(Acknowledge(self._subscription, self._processed, is_urgent=False))

    def pending_events(self, event: Event) -> None:
        """Note that an event was withdrawn before the application took it."""
        self._again.discard((event.publisher, event.seq))

    def is_redelivered(self, event: Event) -> bool:
        """Whether the event may have been delivered before. To be asked before it is taken."""
        return event.stamp <= self._delivered or (event.publisher, event.seq) in self._again

    def settle(self, event: Event) -> None:
        """Note that the application has finished an event. It is acknowledged as soon as everything that was taken
        before it is finished, too, or reassigned. Nobody waits for that."""
        key = (event.publisher, event.seq)
        if any(taken[1:3] == key for taken in self._taken):
            self._settled.add(key)
            self._ack_settled()

    def _ack_settled(self) -> None:
        number = 0
        while self._taken:
            first, publisher, seq, _ = self._taken[0]
            if first not in self._revoked and (publisher, seq) not in self._settled:
                break
            self._taken.popleft()
            self._settled.discard((publisher, seq))
            self._revoked.pop(first, None)
            number = first
        if number:
            self._give(Acknowledge(self._subscription, number, is_urgent=False))

    def wrap(self, event: Event) -> Any:
        """The event as the application receives it."""
        redelivered = self.is_redelivered(event)
        made = self._making.kind(event.publisher, event.seq, event.attributes, event.payload, event.stamp, redelivered)
        force_setattr(made, "_acks", self)
        return made

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a call in the client's event loop and wait for it; for programs without an event loop."""
        assert self._making.run is not None, "this client runs in the event loop of its caller"
        self._making.run(work)

    # ---- for the application ------------------------------------------------------------------------------

    async def ack(self, upto: Event | Position | None) -> None:
        """Acknowledge all that was taken, or all up to an event or a position."""
        number = self._number(upto)
        if number > self._kept:
            await self._ask(number)
        gone = [self._revoked.pop(revoked) for revoked in sorted(self._revoked) if revoked <= number]
        if gone:
            more = ", …" if len(gone) > SHOWN else ""
            raise AckTooLateError(
                f"{', '.join(gone[:SHOWN])}{more} was not acknowledged in time, or this client was unreachable: "
                "another member of the group has received it",
                gone,
            )

    async def _ask(self, number: int) -> None:
        if self._error is not None:
            raise self._error
        while self._taken and self._taken[0][0] <= number:
            self._taken.popleft()
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, waiting))
        self._give(Acknowledge(self._subscription, number))
        await waiting

    def _number(self, upto: Event | Position | None) -> int:
        if upto is None:
            return self._last
        if not isinstance(upto, Event | Position):
            raise CallError(
                f"ack() takes an event, a position, or nothing (everything taken), but this is {kind_of(upto)}"
            )
        if not self._is_manual:
            return self._last
        number = 0
        if isinstance(upto, Event):
            found = (taken[0] for taken in self._taken if taken[1:3] == (upto.publisher, upto.seq))
            return next(found, 0)  # else it is acknowledged
        for delivery, publisher, seq, stamp in self._taken:
            if Position.after(stamp, publisher, seq) > upto:
                break
            number = delivery
        return number

    # ---- for the client -----------------------------------------------------------------------------------

    def opened(self, delivered: int) -> None:
        """Events with this timestamp or an earlier one may have been delivered before."""
        self._delivered = delivered

    def note_redelivered(self, event: Event) -> None:
        """Note that another member of the group may have received the event before."""
        self._again.add((event.publisher, event.seq))

    def revoke(self, counts: Iterable[int]) -> None:
        """Note that these deliveries were reassigned to another member."""
        for count in counts:
            name = self._names.pop(count, None)
            if name is not None:  # else the application has not taken it
                self._revoked[count] = name
        while len(self._revoked) > REVOKED_MAX:
            del self._revoked[next(iter(self._revoked))]
        if self._settled:
            self._ack_settled()

    def kept(self, count: int) -> None:
        """Note that everything up to this delivery is acknowledged and stored."""
        self._kept = max(self._kept, count)
        for number in [number for number in self._names if number <= self._kept]:
            del self._names[number]
        waiting, self._waiting = self._waiting, []
        for number, future in waiting:
            if number <= self._kept:
                fulfil(future)
            else:
                self._waiting.append((number, future))

    def fail(self, error: GaplessError) -> None:
        """End every wait with an error: nothing more can be acknowledged."""
        self._error = self._error or error
        for _, future in self._waiting:
            refuse(future, error)
        self._waiting = []
