"""A journal as data: what an incarnation admitted, or a copy of a part of it."""

from gapless.events import Attributes, EventRun, Events
from gapless.protocols.fenced.messages import Entry, Incarnation, JournalCopy

__all__ = ["Journal", "size_of"]

EVENT_BYTES = 48
"""What an event takes beside its payload and its attributes."""
VALUE_BYTES = 9
"""What a value takes that is no text."""


def size_of(events: Events) -> int:
    """About how many bytes the events take."""
    if isinstance(events, EventRun):
        shared = sum(_size_of_attributes(attributes) for attributes, _ in events.alike)
        return shared + sum(map(len, events.payloads)) + EVENT_BYTES * len(events)
    return sum(_size_of_attributes(each.attributes) + len(each.payload) + EVENT_BYTES for each in events)


def _size_of_attributes(attributes: Attributes) -> int:
    return sum(
        len(name) + (len(value) if isinstance(value, str) else VALUE_BYTES) for name, value in attributes.items()
    )


class Journal:
    """A journal, or a copy of one: entries in the order of their admission."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.last_numbers: dict[str, int] = {}
        """By publisher."""

    def __len__(self) -> int:
        return len(self.entries)

    def append(self, entry: Entry) -> None:
        """Add an entry behind the last."""
        self.entries.append(entry)
        self.last_numbers[entry.publisher] = entry.last

    def cut_to(self, length: int) -> None:
        """Drop what lies beyond a length: it was never confirmed."""
        if len(self.entries) > length:
            del self.entries[length:]
            self.last_numbers = {entry.publisher: entry.last for entry in self.entries}

    def extend_from(self, copy: JournalCopy) -> None:
        """Take over what the copy has beyond this."""
        assert copy.start <= len(self.entries), f"a copy that begins after {copy.start} entries leaves a hole"
        for entry in copy.entries[len(self.entries) - copy.start :]:
            self.append(entry)

    def copy(self, incarnation: Incarnation, start: int = 0, end: int | None = None) -> JournalCopy:
        """The entries from a place on."""
        return JournalCopy(incarnation, start, {}, self.entries[start:end])
