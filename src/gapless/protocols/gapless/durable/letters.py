"""Dead letters: what becomes of an event that was delivered `max_deliveries` times and never acknowledged.

The client that has the event publishes a dead letter, an ordinary event, and acknowledges the event when the letter is
confirmed. So an event is never gone without a letter. If the client dies between the two, the event is delivered once
more, and its next client publishes another letter, which names the same event.

A letter has the attributes of the event with `event.` before their names, so a filter for the event does not match it,
and its payload. A letter of the same subscription that is delivered to it (its filter is TRUE, say) gets none.
"""

from collections import deque
from dataclasses import dataclass

from gapless.events import Attributes, Event
from gapless.names import DEAD_LETTER
from gapless.protocol import Publish

__all__ = ["Letter", "Letters", "is_letter_of", "letter_filter", "letter_of"]

ATTRIBUTE_BYTES = 16
"""The size of an attribute beside its name and its text."""


def letter_filter(name: str) -> str:
    """The advertisement of a client that may publish dead letters of this subscription."""
    return "{}subscription = '{}'".format(DEAD_LETTER, name.replace("'", "''"))


def is_letter_of(name: str, event: Event) -> bool:
    """Whether the event is a dead letter of this subscription."""
    return event.attributes.get(f"{DEAD_LETTER}subscription") == name


def letter_of(name: str, event: Event, deliveries: int, reason: str, size_max: int) -> Publish:
    """The letter. If it is too large, it lacks the payload, and then the attributes, too."""
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


@dataclass(eq=False)
class Letter:
    """A letter that is not confirmed."""

    subscription: str
    count: int
    """The delivery to the client, as its subscription counts."""
    event: Event
    deliveries: int
    reason: str
    call: Publish


class Letters:
    """Those of one client: first they wait for room among its publications, then to be confirmed."""

    def __init__(self) -> None:
        self.waiting: deque[Letter] = deque()
        self._sent: deque[tuple[int, Letter]] = deque()
        self._known: set[tuple[str, int]] = set()

    def add(self, letter: Letter) -> bool:
        """One more; false if it is there."""
        key = letter.subscription, letter.count
        if key in self._known:
            return False
        self._known.add(key)
        self.waiting.append(letter)
        return True

    def sent(self, seq: int) -> Letter:
        """The first that waits was published under this number."""
        letter = self.waiting.popleft()
        self._sent.append((seq, letter))
        return letter

    def confirmed(self, last: int) -> list[Letter]:
        """The letters that are confirmed now, if all publications up to a number are."""
        found = []
        while self._sent and self._sent[0][0] <= last:
            found.append(self._sent.popleft()[1])
            self._known.discard((found[-1].subscription, found[-1].count))
        return found
