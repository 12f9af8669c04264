"""Dead letters, for events that were delivered `max_deliveries` times without being acknowledged.

The client that has the event publishes a dead letter, an ordinary event, and acknowledges the event when the letter is
confirmed. So an event never disappears without a letter. If the client dies between the two, the event is delivered
once more, and its next client publishes another letter, which names the same event.

A letter has the attributes of the event with the prefix `event.`, so a filter for the event does not match it, and its
payload. If a letter is delivered to the subscription that caused it (with the filter TRUE, for example), it gets no
letter itself.
"""

from collections import deque
from dataclasses import dataclass

from gapless.events import Attributes, Event
from gapless.names import DEAD_LETTER, DeadLettered
from gapless.protocol import Advertise, Publish, Subscribe, Unadvertise
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_publications import ClientPublications

__all__ = ["BURIED", "FAILED", "UNACKNOWLEDGED", "Letters", "is_last_delivery", "letter_filter", "letter_of"]

BURIED = 1 << 62
"""Line numbers from here on mark assignments that the client does not deliver, because they become dead letters."""
FAILED, UNACKNOWLEDGED = "nack", "not acknowledged"
"""The reasons for a dead letter."""
ATTRIBUTE_BYTES = 16
"""The assumed size of an attribute in bytes, without its name and its text."""


def letter_filter(name: str) -> str:
    """Return the text of the filter that a client advertises in order to publish dead letters of a subscription."""
    return "{}subscription = '{}'".format(DEAD_LETTER, name.replace("'", "''"))


def is_letter_of(name: str, event: Event) -> bool:
    return event.attributes.get(f"{DEAD_LETTER}subscription") == name


def letter_of(name: str, event: Event, deliveries: int, reason: str, size_max: int) -> Publish:
    """Return the dead letter. If it is too large, omit the payload, and then the attributes, too."""
    facts: Attributes = {
        f"{DEAD_LETTER}subscription": name,
        f"{DEAD_LETTER}reason": reason,
        f"{DEAD_LETTER}deliveries": deliveries,
        f"{DEAD_LETTER}publisher": event.publisher,
        f"{DEAD_LETTER}seq": event.seq,
        f"{DEAD_LETTER}position": str(event.position),
    }
    whole = facts | {f"event.{key}": value for key, value in event.attributes.items()}
    cut = {f"{DEAD_LETTER}is_cut": True}
    for found in (Publish(whole, event.payload), Publish(whole | cut)):
        if _size(found) <= size_max:
            return found
    return Publish(facts | cut)


def _size(call: Publish) -> int:
    texts = [*call.attributes, *(value for value in call.attributes.values() if isinstance(value, str))]
    return len(call.payload) + ATTRIBUTE_BYTES * len(call.attributes) + sum(len(text.encode()) for text in texts)


def is_last_delivery(call: Subscribe, deliveries_max: int, event: Event, deliveries: int) -> bool:
    """Return whether an event with this number of deliveries will not be redelivered."""
    return call.max_deliveries > 0 and 0 < deliveries_max <= deliveries and not is_letter_of(call.name, event)


@dataclass(eq=False)
class Letter:
    subscription: str
    count: int
    """The number of the delivery, counted over all deliveries to the client."""
    event: Event
    deliveries: int
    reason: str
    call: Publish


class Letters:
    """The dead letters of one client that wait for room among its publications, or for confirmation."""

    def __init__(self, connection: ClientConnection, publications: ClientPublications) -> None:
        self._connection = connection
        self._publications = publications
        self._waiting: deque[Letter] = deque()
        self._sent: deque[tuple[int, Letter]] = deque()
        self._confirmed = 0

    def advertise(self, call: Subscribe) -> None:
        """Advertise the dead letters of a subscription. If that is rejected, so is the subscription."""
        if call.max_deliveries:
            self._publications.advertise(Advertise(f"{call.subscription}#0", letter_filter(call.name)))

    def unadvertise(self, call: Subscribe) -> None:
        if call.max_deliveries:
            self._publications.unadvertise(Unadvertise(f"{call.subscription}#0"))

    def write(self, call: Subscribe, count: int, event: Event, deliveries: int, reason: str) -> None:
        """Publish the dead letter for a delivery."""
        letter = letter_of(call.name, event, deliveries, reason, call.letter_max)
        self._waiting.append(Letter(call.subscription, count, event, deliveries, reason, letter))
        self._send()

    def _send(self) -> None:
        while self._waiting:
            seq = self._publications.publish_letter(self._waiting[0].call)
            if not seq:
                return
            sent = self._waiting.popleft()
            self._sent.append((seq, sent))
            self._connection.emit(
                DeadLettered(
                    sent.subscription, sent.event.publisher, sent.event.seq, sent.deliveries, sent.reason, seq,
                    sent.count if sent.count < BURIED else 0,
                )
            )  # fmt: skip

    def take_confirmed(self) -> list[tuple[str, int]]:
        """Return the subscription and number of each delivery whose dead letter was confirmed since the last call."""
        found = []
        while self._publications.confirmed > self._confirmed:
            self._confirmed = self._publications.confirmed
            while self._sent and self._sent[0][0] <= self._confirmed:
                letter = self._sent.popleft()[1]
                found.append((letter.subscription, letter.count))
            self._send()
        return found
