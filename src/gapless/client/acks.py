"""The acknowledgements and negative acknowledgements of a durable subscription's events.

An acknowledgement is for one event (`event.ack()`), or cumulative: `subscription.ack()` covers an event and everything
that the subscription delivered before it. With `ack="auto"` an event is acknowledged when the application asks for the
next one, because it has processed the event by then; these acknowledgements are sent in batches. A caller that awaits
`ack()` resumes when a majority of the registry replicas has stored the acknowledgement: none of these events is
delivered again, whichever client attaches next.

Deliveries have ascending numbers. A delivery that was negatively acknowledged, or reassigned to another member, cannot
be acknowledged any more; a redelivery of its event has a new number.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import force_setattr

from gapless.client.arguments import check_span, kind_of
from gapless.client.durable_event import DurableEvent
from gapless.client.middleware import Outcome
from gapless.client.own_loop import OwnLoop
from gapless.client.unsafe import complete, refuse
from gapless.errors import AckTooLateError, CallError, GaplessError
from gapless.events import Event
from gapless.names import Acknowledge, AcknowledgeEach, ExtendAck, Nack
from gapless.positions import Position

__all__ = ["AckCall", "Acks", "Making", "Settled"]

SHOWN = 5
REVOKED_MAX = 10_000
"""The maximum number of reassigned events that are remembered."""
DELAY_MAX_S = 86_400.0

AckCall: TypeAlias = Acknowledge | AcknowledgeEach | Nack | ExtendAck
Settled: TypeAlias = Callable[[Event, Outcome], None]
"""A callback for the outcome of an event: acknowledged or negatively acknowledged."""


class Making(NamedTuple):
    """How to create the events of a durable subscription: their class and, for synchronous clients, the event loop that
    runs their calls.
    """

    kind: type[Any] = DurableEvent
    run: Callable[[Coroutine[Any, Any, None]], None] | None = None


class Acks:
    """Tracks and sends the acknowledgements of one durable subscription."""

    def __init__(
        self, subscription: str, give: Callable[[AckCall], None], *, is_manual: bool, is_shared: bool = False,
        making: Making | None = None, settled: Settled | None = None,
    ) -> None:  # fmt: skip
        self.is_shared = is_shared
        self._making = making or Making()
        self._subscription = subscription
        self._own_loop = OwnLoop("the durable subscription of this event")
        self._give = give
        self._is_manual = is_manual
        self._settled_hook = settled
        self._taken: dict[int, Event] = {}
        """The events that the application has taken but not acknowledged in either way, by delivery number in ascending
        order. With `ack="auto"`, events are kept here only if they are needed."""
        self._last = 0
        """The number of the last delivery that the application has taken."""
        self._processed = 0
        """With `ack="auto"`: the number of the last delivery that the application has finished processing."""
        self._reported = 0
        self._asked = 0
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._each: dict[int, tuple[str, asyncio.Future[None]]] = {}
        """For each delivery, the calls that are waiting until its individual acknowledgement is stored."""
        self._error: GaplessError | None = None
        self._is_reporting = False
        self._has_failed = False
        self._delivered = 0
        self._again: dict[int, int] = {}
        """For each pending redelivery, the number of deliveries of its event so far."""
        """Without `is_each`: events that the application has finished before an earlier one."""
        self._revoked: dict[int, str] = {}
        """Events that were reassigned to another member after the application took them."""
        self._unreported: set[int] = set()
        """The revoked events whose reassignment has not been reported to the application."""

    # ---- called by the subscription ---------------------------------------------------------------------

    def took(self, number: int, event: Event) -> None:
        """Record that the application has taken the event with this delivery number."""
        self._last = number
        self._again.pop(number, None)
        if self._is_manual or self.is_shared or self._settled_hook is not None:
            self._taken[number] = event

    def asked(self) -> None:
        """With `ack="auto"`, schedule the acknowledgement of all taken events: the application asks for more, so it has
        processed them."""
        if not self._is_manual and self._last > self._processed:
            before, self._processed = self._processed, self._last
            self._settle(number for number in self._taken if number > before)
            if not self._is_reporting:
                self._is_reporting = True
                asyncio.get_running_loop().call_soon(self._report)

    def left(self) -> None:
        """With `ack="auto"`, acknowledge all taken events, because the application closes the subscription."""
        if not self._has_failed:
            self.asked()
        self._report()

    def failed(self) -> None:
        """Record that the application failed to process the last event, so that closing the subscription does not
        acknowledge it.
        """
        self._has_failed = True

    def _report(self) -> None:
        self._is_reporting = False
        if self._processed > max(self._kept, self._reported):
            self._reported = self._processed
            self._give(Acknowledge(self._subscription, self._processed, is_urgent=False))

    def finish(self, event: Any) -> None:
        """Acknowledge an event that the application has finished, without waiting for the registry."""
        number = event._number
        if number not in self._taken:
            return
        self._settle([number])
        del self._taken[number]
        self._give(AcknowledgeEach(self._subscription, [number], is_urgent=False))

    def wrap(self, number: int, event: Event) -> Any:
        """Return the event in the class that the application receives, connected to these acknowledgements."""
        count = self._again.get(number, 1)
        redelivered = number in self._again or event.stamp <= self._delivered
        made = self._making.kind(
            event.publisher, event.seq, event.attributes, event.payload, event.stamp, redelivered, count
        )
        force_setattr(made, "_acks", self)
        force_setattr(made, "_number", number)
        return made

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the client's event loop and wait for it. Only synchronous clients use this."""
        assert self._making.run is not None, "this client runs in the event loop of its caller"
        self._making.run(work)

    # ---- called by the application, for one event -------------------------------------------------------

    async def ack_event(self, number: int, event: Event) -> None:
        """Acknowledge one event; return when the acknowledgement is stored."""
        self._own_loop.check()
        if not self._is_manual:
            await self.ack(event)
            return
        self._check_ours([number])
        if number in self._taken:
            if self._error is not None:
                raise self._error
            self._settle([number])
            del self._taken[number]
            self._each[number] = event.id, asyncio.get_running_loop().create_future()
            self._give(AcknowledgeEach(self._subscription, [number]))
        if number in self._each:
            await asyncio.shield(self._each[number][1])
        elif self._kept < number <= self._asked:
            await self._stored(number)

    def nack(self, number: int, event: Event, delay_s: float) -> None:
        """Request redelivery of an event after `delay_s` seconds."""
        self._own_loop.check()
        self._check_each("nack", "events cannot be returned")
        check_span("delay_s", delay_s, 0.0, DELAY_MAX_S)
        if number not in self._taken and number not in self._revoked:
            raise CallError(f"{event.id} was already acknowledged or returned; call nack() instead of ack()")
        self._give_back(number, delay_s)

    def failed_at(self, number: int, event: Event) -> None:
        """Record that the application failed to process this event, which is redelivered unless it is acknowledged."""
        if self._is_manual:
            self._give_back(number, 0.0)

    def _give_back(self, number: int, delay_s: float) -> None:
        self._unreported.discard(number)
        if number in self._taken and self._error is None:
            self._settle([number], "nack")
            del self._taken[number]
            self._give(Nack(self._subscription, [number], int(delay_s * 1e6)))

    def in_progress(self, number: int, event: Event) -> None:
        """Restart the redelivery timeout of an event that the application is still processing."""
        self._own_loop.check()
        self._check_each("in_progress", "there is no timeout to extend")
        self._check_ours([number])
        if number in self._taken and self._error is None:
            self._give(ExtendAck(self._subscription, [number]))

    def _check_each(self, call: str, otherwise: str) -> None:
        if not self._is_manual:
            raise CallError(f'{call}() is for ack="manual"; with ack="auto" {otherwise}')

    def _check_ours(self, numbers: Iterable[int]) -> None:
        """Raise an `AckTooLateError` if any of these deliveries was reassigned to another member."""
        gone = [number for number in numbers if number in self._revoked]
        if gone:
            self._unreported.difference_update(gone)
            raise _too_late([self._revoked[number] for number in gone])

    # ---- called by the application, for several events --------------------------------------------------

    async def ack(self, upto: Event | Position | None) -> None:
        """Acknowledge all events taken so far, or those up to an event or a position; return when that is stored."""
        number = self._number(upto)
        if number > self._kept:
            await self._ask(number)
        self._check_ours(sorted(revoked for revoked in self._unreported if revoked <= number))

    async def _ask(self, number: int) -> None:
        if self._error is not None:
            raise self._error
        numbers = self._upto(number)
        self._settle(numbers)
        for each in numbers:
            del self._taken[each]
        self._asked = max(self._asked, number)
        self._give(Acknowledge(self._subscription, number))
        await self._stored(number)

    async def _stored(self, number: int) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((number, waiting))
        await waiting

    def _upto(self, number: int) -> list[int]:
        return list(takewhile(lambda each: each <= number, self._taken))

    def _settle(self, numbers: Iterable[int], what: Outcome = "ack") -> None:
        """Report the outcome of these deliveries to the middleware, and forget the deliveries."""
        if self._settled_hook is not None:
            for number in numbers:
                self._settled_hook(self._taken[number], what)

    def _number(self, upto: Event | Position | None) -> int:
        if upto is None:
            return self._last
        if not isinstance(upto, Event | Position):
            raise CallError(
                f"upto must be an event, a position, or None (everything taken so far), but is {kind_of(upto)}"
            )
        if not self._is_manual:
            return self._last
        if isinstance(upto, Event):
            key = upto.publisher, upto.seq
            found = (number for number, event in self._taken.items() if (event.publisher, event.seq) == key)
            return max(found, default=0)
        within = takewhile(lambda item: item[1].position <= upto, self._taken.items())
        return max((number for number, _ in within), default=0)

    # ---- called by the client ---------------------------------------------------------------------------

    def opened(self, delivered: int) -> None:
        """Record that events with this timestamp or an earlier one may have been delivered before this attachment."""
        self._delivered = delivered

    def note_again(self, number: int, deliveries: int) -> None:
        """Record that the event of a delivery was delivered `deliveries` times, or may have been."""
        self._again[number] = deliveries

    def revoke(self, counts: Iterable[int]) -> None:
        """Record that these deliveries were reassigned to another member."""
        gone = []
        for count in counts:
            self._again.pop(count, None)
            event = self._taken.get(count)
            if event is not None:
                gone.append((count, event.id))
                self._unreported.add(count)
            waiting = self._each.pop(count, None)
            if waiting is not None:
                gone.append((count, waiting[0]))
                refuse(waiting[1], _too_late([waiting[0]]))
        self._revoked.update(gone)
        while len(self._revoked) > REVOKED_MAX:
            oldest = next(iter(self._revoked))
            del self._revoked[oldest]
            self._unreported.discard(oldest)
        for count, _ in gone:
            self._taken.pop(count, None)

    def buried(self, count: int) -> None:
        """Record that the event of this delivery became a dead letter."""
        self._taken.pop(count, None)

    def kept(self, count: int) -> None:
        """Complete the calls that wait for acknowledgements up to this delivery, which are now stored."""
        self._kept = max(self._kept, count)
        if not self._is_manual:
            for number in self._upto(self._kept):
                del self._taken[number]
        waiting, self._waiting = self._waiting, []
        for number, future in waiting:
            if number <= self._kept:
                complete(future)
            else:
                self._waiting.append((number, future))
        self.kept_each([number for number in self._each if number <= self._kept])

    def kept_each(self, counts: Iterable[int]) -> None:
        """Complete the calls that wait for the acknowledgements of these deliveries, which are now stored."""
        for count in counts:
            waiting = self._each.pop(count, None)
            if waiting is not None:
                complete(waiting[1])

    def fail(self, error: GaplessError) -> None:
        """Fail all waiting calls, because acknowledgements are no longer possible."""
        self._error = self._error or error
        for future in [*(future for _, future in self._waiting), *(future for _, future in self._each.values())]:
            refuse(future, error)
        self._waiting = []


def _too_late(gone: list[str]) -> AckTooLateError:
    more = ", …" if len(gone) > SHOWN else ""
    return AckTooLateError(
        f"{', '.join(gone[:SHOWN])}{more} was not acknowledged in time, or this client was unreachable: another member "
        "of the group has received it",
        gone,
    )
