"""A client's attachment to a durable subscription: its deliveries, and which of them are acknowledged.

A delivery is **open** until the application acknowledges it or gives it back. It is then **acked** until the register
contains its acknowledgement. An event that is returned for the last time is **buried** until its dead letter is
confirmed; then it is acked.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from gapless.events import Event
from gapless.names import Acknowledged, EachAcknowledged, Revoked
from gapless.protocol import Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.durable.letters import FAILED, Letters, is_last_delivery
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["Attachment", "AttachmentState", "Held"]


class AttachmentState(Enum):
    """The state of an attachment. It is LEAVING while its last acknowledgement is in flight. A member of a shared
    subscription returns to REQUESTED when its coordinator is unreachable or the client has a new session."""

    REQUESTED = "requested"
    ATTACHED = "attached"
    LEAVING = "leaving"


ATTACHMENTS: Transitions = {
    AttachmentState.REQUESTED: {AttachmentState.ATTACHED},
    AttachmentState.ATTACHED: {AttachmentState.REQUESTED, AttachmentState.LEAVING},
    AttachmentState.LEAVING: set(),
}


@dataclass(eq=False)
class Held:
    """A delivered event whose acknowledgement the register does not contain yet."""

    event: Event
    deliveries: int
    """How many times the event was delivered, including this delivery."""
    count: int
    """The number of the delivery, counted over all deliveries to the client."""
    number: int = 0
    """For a shared subscription: the number of the delivery in the line."""
    is_each: bool = False
    """Whether the event was acknowledged individually."""
    is_sent: bool = False
    """Whether the acknowledgement is in flight."""


class Attachment(ABC):
    """A client's attachment to one durable subscription. Subclasses send its requests and acknowledgements."""

    def __init__(self, call: Subscribe, connection: ClientConnection, letters: Letters) -> None:
        self.call = call
        self.state = AttachmentState.REQUESTED
        self.line = ""
        """Identifies this attachment at the broker."""
        self.generation = 0
        """The generation of the record when the client attached; 0 before that."""
        self.is_changed = False
        """Whether there are acknowledgements to send."""
        self.open: dict[int, Held] = {}
        """The unacknowledged deliveries, by number, in ascending order."""
        self.acked: list[Held] = []
        self.buried: dict[int, Held] = {}
        self._connection = connection
        self._letters = letters
        self._max_deliveries = 0
        self._count = self._asked = self._over = 0
        """The delivery numbers up to which everything is acknowledged by the application, in flight, and stored,
        respectively."""

    # ---- implemented by subclasses -------------------------------------------------------------------------

    @abstractmethod
    def request(self) -> None:
        """Ask the broker to attach the client."""

    @abstractmethod
    def report(self) -> None:
        """Send the acknowledgements."""

    @abstractmethod
    def repeat(self) -> None:
        """Resend in a new session everything that may not have arrived."""

    @abstractmethod
    def returned(self, held: Held, delay_us: int) -> None:
        """Process a negative acknowledgement of an event that will be redelivered."""

    @abstractmethod
    def extend(self, counts: list[int]) -> None:
        """Restart the acknowledgement timeout of these deliveries, if there is one."""

    @property
    def is_due(self) -> bool:
        return self.is_changed and self.state is not AttachmentState.REQUESTED

    # ---- shared by all attachments -------------------------------------------------------------------------

    def leave(self) -> None:
        self.state = AttachmentState.LEAVING
        self.is_changed = True
        if self.is_due:
            self.report()

    def deliver(self, event: Event, deliveries: int, *, is_again: bool, number: int = 0) -> Held:
        count = self._connection.deliver(event, self.call.subscription, deliveries, is_again=is_again)
        held = self.open[count] = Held(event, deliveries, count, number)
        return held

    def acknowledge(self, count: int) -> None:
        if count > self._count:
            self._count = count
            self._ack([self.open.pop(each) for each in list(takewhile(lambda each: each <= count, self.open))])

    def acknowledge_each(self, counts: list[int]) -> None:
        found = [self.open.pop(count) for count in counts if count in self.open]
        for held in found:
            held.is_each = True
        self._ack(found)

    def give_back(self, counts: list[int], delay_us: int) -> None:
        """Process negative acknowledgements. An event that was delivered for the last time gets a dead letter."""
        found = [self.open.pop(count) for count in counts if count in self.open]
        again = [held for held in found if not self.is_last(held.event, held.deliveries)]
        for held in found:
            if held in again:
                self.returned(held, delay_us)
            else:
                self.bury(held, FAILED)
        if again:
            self._connection.emit(Revoked(self.call.subscription, [held.count for held in again]))

    def is_last(self, event: Event, deliveries: int) -> bool:
        return is_last_delivery(self.call, self._max_deliveries, event, deliveries)

    def bury(self, held: Held, reason: str) -> None:
        self.buried[held.count] = held
        self._letters.write(self.call, held.count, held.event, held.deliveries, reason)

    def letter_confirmed(self, count: int) -> None:
        """Acknowledge an event whose dead letter was confirmed."""
        if count in self.buried:
            self._ack([self.buried.pop(count)])

    def _ack(self, found: list[Held]) -> None:
        self.acked += found
        self.is_changed |= bool(found)

    def announce(self) -> None:
        """Notify the application that all acknowledgements are in flight now."""
        name, emit = self.call.subscription, self._connection.emit
        if self._count > self._asked:
            self._asked = self._count
            emit(Acknowledged(name, self._count, False))
        each = [held.count for held in self.acked if held.is_each and not held.is_sent]
        if each:
            emit(EachAcknowledged(name, each, False))
        for held in self.acked:
            held.is_sent = True

    def forget(self, stored: list[Held]) -> None:
        """Notify the application that these acknowledgements are stored, and up to which delivery all are stored."""
        name, emit = self.call.subscription, self._connection.emit
        each = [held.count for held in stored if held.is_each]
        if each:
            emit(EachAcknowledged(name, each))
        count = min([self._count, *(held.count - 1 for held in (*self.acked, *self.buried.values()))])
        count = min(count, next(iter(self.open), count + 1) - 1)
        if count > self._over:
            self._over = count
            emit(Acknowledged(name, count, True))


follow(Attachment, "state", ATTACHMENTS)
