"""What the application has confirmed of a named subscription: what it took, or what it says.

To confirm an event confirms all that this subscription was delivered before it. What was taken is confirmed soon, and
many at a time; who calls `confirm` waits until a majority of the keepers of names holds it, so that none of it comes
again, for whoever opens the name next.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import force_setattr

from gapless.client.arguments import kind_of
from gapless.client.unsafe import fulfil, refuse
from gapless.errors import CallError, GaplessError, GivenAwayError
from gapless.events import Event
from gapless.names import Acknowledge
from gapless.positions import Position

__all__ = ["ConfirmableEvent", "Confirmations", "Making", "not_confirmable"]

SHOWN = 5
REVOKED_MAX = 10_000
"""Of how many events that were given to others it is remembered until the application hears of it."""


def not_confirmable(event: Event) -> CallError:
    """What to say of a copy of an event, which does not know where it came from."""
    return CallError(f"this copy of {event.id} was not taken from a subscription; confirm the event that was")


class ConfirmableEvent(Event, frozen=True, dict=True, gc=True, eq=False):
    """An event of a named subscription. It equals the event that was published; a copy cannot be confirmed."""

    redelivered: bool = False
    """Whether it may have been delivered before, to this client or to another, and was not confirmed. False is certain;
    after a crash, events published up to ten seconds later are marked, too."""
    _confirmations: ClassVar["Confirmations | None"] = None
    """Each has its own beside its fields, so that it is shown, copied and encoded without."""

    async def confirm(self) -> None:
        """Acknowledge it, and all that came before it. Returns when it will not come again."""
        if self._confirmations is None:
            raise not_confirmable(self)
        await self._confirmations.confirm(self)


class Making(NamedTuple):
    """How events that can be confirmed are made: of which class, and what runs their calls if that is not awaited."""

    kind: type[Any] = ConfirmableEvent
    run: Callable[[Coroutine[Any, Any, None]], None] | None = None


class Confirmations:
    """Of one named subscription."""

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
        """What was taken and is not confirmed: the number of the delivery, publisher, number and stamp."""
        self._last = 0
        """The number of the delivery that was taken last."""
        self._kept = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._error: GaplessError | None = None
        self._is_telling = False
        self._delivered = 0
        self._again: set[tuple[str, int]] = set()
        """In a group: what waits to be taken that another may have got before."""
        self._settled: set[tuple[str, int]] = set()
        """What the application is done with, while something taken before it is not."""
        self._names: dict[int, str] = {}
        """In a group, by delivery: what was taken and is not confirmed."""
        self._revoked: dict[int, str] = {}
        """What of it is another's by now, until the application hears of it."""

    # ---- for the subscription -----------------------------------------------------------------------------

    def took(self, number: int, event: Event) -> None:
        """The application has taken this."""
        self._last = number
        self._again.discard((event.publisher, event.seq))
        if self.is_shared:
            self._names[number] = event.id
        if self._is_manual:
            self._taken.append((number, event.publisher, event.seq, event.stamp))
        elif not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self.tell)

    def tell(self) -> None:
        """Acknowledge what was taken, if that is what confirms it."""
        self._is_telling = False
        if not self._is_manual and self._last > self._kept:
            self._give(Acknowledge(self._subscription, self._last, is_urgent=False))

    def untaken(self, event: Event) -> None:
        """The application does not get this after all."""
        self._again.discard((event.publisher, event.seq))

    def is_redelivered(self, event: Event) -> bool:
        """Whether it may have been delivered before; asked before it is taken."""
        return event.stamp <= self._delivered or (event.publisher, event.seq) in self._again

    def settle(self, event: Event) -> None:
        """The application is done with this one. It is confirmed as soon as all that was taken before it is settled,
        too, or another's; nobody waits for it."""
        key = (event.publisher, event.seq)
        if any(taken[1:3] == key for taken in self._taken):
            self._settled.add(key)
            self._confirm_settled()

    def _confirm_settled(self) -> None:
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
        """The event as its application gets it."""
        redelivered = self.is_redelivered(event)
        made = self._making.kind(event.publisher, event.seq, event.attributes, event.payload, event.stamp, redelivered)
        force_setattr(made, "_confirmations", self)
        return made

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it in the client's event loop, and wait; for programs without one."""
        assert self._making.run is not None, "this client runs in the event loop of its caller"
        self._making.run(work)

    # ---- for the application ------------------------------------------------------------------------------

    async def confirm(self, upto: Event | Position | None) -> None:
        """Acknowledge all that was taken, or all up to an event or a position."""
        number = self._number(upto)
        if number > self._kept:
            await self._ask(number)
        gone = [self._revoked.pop(revoked) for revoked in sorted(self._revoked) if revoked <= number]
        if gone:
            more = ", …" if len(gone) > SHOWN else ""
            raise GivenAwayError(
                f"{', '.join(gone[:SHOWN])}{more} was not confirmed in time, or this client was out of sight: another "
                "of the group has got it",
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
            raise CallError(f"confirm an event, or a position, or nothing for all; this is {kind_of(upto)}")
        if not self._is_manual:
            return self._last
        number = 0
        if isinstance(upto, Event):
            found = (taken[0] for taken in self._taken if taken[1:3] == (upto.publisher, upto.seq))
            return next(found, 0)  # else it is confirmed
        for delivery, publisher, seq, stamp in self._taken:
            if Position.after(stamp, publisher, seq) > upto:
                break
            number = delivery
        return number

    # ---- for the client -----------------------------------------------------------------------------------

    def opened(self, delivered: int) -> None:
        """What has no larger stamp may have been delivered before."""
        self._delivered = delivered

    def come_again(self, event: Event) -> None:
        """Another of the group may have got it before."""
        self._again.add((event.publisher, event.seq))

    def revoke(self, counts: Iterable[int]) -> None:
        """What came with these deliveries is another's by now."""
        for count in counts:
            name = self._names.pop(count, None)
            if name is not None:  # else the application has not taken it
                self._revoked[count] = name
        while len(self._revoked) > REVOKED_MAX:
            del self._revoked[next(iter(self._revoked))]
        if self._settled:
            self._confirm_settled()

    def kept(self, count: int) -> None:
        """All up to this delivery is confirmed."""
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
        """Nothing more can be confirmed."""
        self._error = self._error or error
        for _, future in self._waiting:
            refuse(future, error)
        self._waiting = []
