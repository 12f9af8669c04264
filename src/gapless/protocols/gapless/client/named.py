"""A durable subscription, as the client holds it that listens: what was delivered, and what of it is confirmed.

The application confirms what it was delivered up to some place, and never less than before; so what is confirmed is,
for each publisher, all up to some number. The broker tells positions in their places among the deliveries: when all
that stands before one is confirmed, that position is, too, and what lies up to it need not be told by numbers.

One confirmation is under way at a time; the next carries all that has come together meanwhile. After the client has
attached anew it confirms all again, with a larger serial: an earlier one may still be on its way, and counts no more.
"""

from collections import deque

from gapless.events import Event
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client_messages import ClientConfirm, ClientOpen
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.name_messages import NameRecord

__all__ = ["Named"]

STEP_US = 5_000_000
"""How far a position must have moved, where nothing was delivered, to be told."""


class Named:
    """One of them."""

    def __init__(self, call: Subscribe) -> None:
        self.call = call
        self.generation = 0
        self.is_open = False
        self.is_leaving = False
        self.position = 0
        """All up to here is confirmed."""
        self._got: dict[str, tuple[int, int]] = {}
        """Beyond that: by publisher, the last number that is confirmed, and its stamp."""
        self._waiting: deque[tuple[int, str, int, int]] = deque()
        """What was delivered and is not confirmed: the number of the delivery, publisher, number and stamp; positions
        have no publisher."""
        self._count = 0
        """All up to this delivery is confirmed."""
        self._serial = 0
        self._under_way: tuple[int, int] | None = None
        """The serial of the confirmation that was not answered, and up to which delivery it goes."""
        self._is_changed = False
        self._told_position = 0
        self.has_left = False
        """Whether the confirmation that was sent last says so."""

    # ---- opening ------------------------------------------------------------------------------------------

    def opening(self, attempt: int) -> ClientOpen:
        """What the client asks for."""
        call = self.call
        return ClientOpen(attempt, call.subscription, call.name, call.filter, call.replace)

    def opened(self, record: NameRecord) -> None:
        """It is this client's."""
        self.is_open = True
        self.generation = record.generation
        self.position = self._told_position = record.position
        self._got = {publisher: (seq, record.latest) for publisher, seq in record.got.items()}
        self._delivered = record.delivered

    # ---- what comes ---------------------------------------------------------------------------------------

    def delivered(self, number: int, event: Event) -> None:
        """An event was delivered."""
        self._waiting.append((number, event.publisher, event.seq, event.stamp))
        self._delivered = max(self._delivered, event.stamp)

    def reached(self, number: int, position: int) -> None:
        """All up to this position was delivered, with that delivery."""
        if self._waiting and not self._waiting[-1][1]:
            self._waiting.pop()
        self._waiting.append((number, "", position, 0))
        self.confirm(self._count)

    def confirm(self, count: int) -> None:
        """The application is done with all up to this delivery."""
        self._count = max(self._count, count)
        while self._waiting and self._waiting[0][0] <= self._count:
            _, publisher, seq, stamp = self._waiting.popleft()
            if publisher:
                self._got[publisher] = (seq, stamp)
                self._is_changed = True
            elif seq > self.position:
                self.position = seq
                self._got = {name: last for name, last in self._got.items() if last[1] > seq}
                self._is_changed = self._is_changed or seq - self._told_position >= STEP_US

    # ---- what is told -------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether there is something to confirm, and nothing under way."""
        return self.is_open and self._under_way is None and (self._is_changed or self.is_leaving)

    @property
    def unconfirmed(self) -> int:
        """How many deliveries the application has not confirmed."""
        return len(self._waiting)

    def confirming(self, attempt: int) -> ClientConfirm:
        """All that is confirmed by now."""
        self._serial += 1
        self._under_way = (self._serial, self._count)
        self._is_changed = False
        self.has_left = self.is_leaving
        self._told_position = self.position
        call = self.call
        return ClientConfirm(
            attempt, call.subscription, call.name, self.generation, self._serial, self.position, self._numbers(),
            max((stamp for _, stamp in self._got.values()), default=0), self.is_leaving, delivered=self._delivered,
        )  # fmt: skip

    def _numbers(self) -> Cuts:
        return {publisher: seq for publisher, (seq, _) in self._got.items()}

    @property
    def count(self) -> int:
        """All up to this delivery is confirmed, or about to be."""
        return self._count

    def kept(self, serial: int) -> int | None:
        """A confirmation is held: up to which delivery, if it was the one under way."""
        if self._under_way is None or self._under_way[0] != serial:
            return None
        count = self._under_way[1]
        self._under_way = None
        return count
