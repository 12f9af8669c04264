"""A journal as data: what an incarnation admitted, or a copy of a part of it."""

from bisect import bisect_right

from gapless.events import Attributes, EventRun, Events
from gapless.protocols.gapless.dropped import after_dropping
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Dropped, Entry, JournalCopy
from gapless.protocols.gapless.tombstones import counted_for

__all__ = ["ENTRY_BYTES", "Journal", "cost_of", "size_of"]

EVENT_BYTES = 48
"""Bytes of an event beside its payload and its attributes."""
VALUE_BYTES = 9
"""Bytes of a value that is no text."""
ENTRY_BYTES = 64
"""Bytes of an entry beside its events."""
NUMBERS_MAX = 20_000
"""So many publishers a journal remembers. A client that comes back from a dead broker later than that, with unconfirmed
publications, is refused: nobody knows which of them were admitted."""


def size_of(events: Events) -> int:
    """About how many bytes the events take."""
    if isinstance(events, EventRun):
        return len(events.encoded) + EVENT_BYTES * len(events)  # it is sent, or written, and is encoded once
    size = EVENT_BYTES * len(events)
    for each in events:
        size += len(each.payload) + _size_of_attributes(each.attributes)
    return size


def _size_of_attributes(attributes: Attributes) -> int:
    size = 0
    for name, value in attributes.items():  # a sum of a generator takes twice as long, and this is asked of every event
        size += len(name) + (len(value) if isinstance(value, str) else VALUE_BYTES)
    return size


def cost_of(events: Events) -> int:
    """The cost of events in a window: their number, and one more for each KiB. So no window holds more KiB."""
    return len(events) + size_of(events) // 1024


class Journal:
    """A journal, or a copy of one: entries in the order of their admission.

    The first `start` entries were dropped: all brokers had processed them. So a copy is a prefix of the journal without
    a prefix of that, and its length counts from the journal's beginning.
    """

    def __init__(self) -> None:
        self.start = 0
        self.entries: list[Entry] = []
        self.sizes: list[int] = []
        """About how many bytes each of these takes: counted once, because all attributes have to be looked at."""
        self.dropped = 0
        """The largest timestamp of a dropped entry."""
        self.gone = Dropped()
        self.size = 0
        """Their sum."""
        self.lacks_earlier = False
        """Whether what it has dropped was never here, so that others may have it."""
        self.last_numbers: dict[str, int] = {}
        """By publisher, the one that published last at the end."""
        self.has_forgotten = False
        """Whether publishers are missing in this."""
        self.checked = 0
        """Entries before this place are not to be deleted, or were (see `deleting`)."""
        self.replaced: list[int] = []
        """The timestamps of entries that were replaced since the disk was given what is new."""
        self.has_changed = True
        """Whether it has begun or grown, or lost or got earlier entries, since the disk was given what is new."""

    def __len__(self) -> int:
        return self.start + len(self.entries)

    def entry(self, place: int) -> Entry:
        """The entry at this place of the journal."""
        return self.entries[place - self.start]

    def size_at(self, place: int) -> int:
        """About how many bytes the entry at this place takes."""
        return self.sizes[place - self.start]

    def cost_at(self, place: int) -> int:
        """The cost of this entry in a window (see `cost_of`)."""
        return len(self.entry(place).events) + (self.size_at(place) - ENTRY_BYTES) // 1024

    @property
    def last_timestamp(self) -> int:
        return self.entries[-1].timestamp if self.entries else self.dropped

    def append(self, entry: Entry) -> None:
        """Add an entry behind the last."""
        self.entries.append(entry)
        self.sizes.append(size_of(entry.events) + ENTRY_BYTES)
        self.size += self.sizes[-1]
        self.has_changed = True
        self._note_number(counted_for(entry), entry.last)

    def replace(self, place: int, entry: Entry) -> None:
        """Put an entry in the place of one with the same timestamp and numbers."""
        index = place - self.start
        size = size_of(entry.events) + ENTRY_BYTES
        self.size += size - self.sizes[index]
        self.entries[index], self.sizes[index], self.has_changed = entry, size, True
        self.replaced.append(entry.timestamp)

    def _note_number(self, publisher: str, number: int) -> None:
        self.last_numbers.pop(publisher, None)
        self.last_numbers[publisher] = number
        if len(self.last_numbers) > NUMBERS_MAX:
            del self.last_numbers[next(iter(self.last_numbers))]
            self.has_forgotten = True

    def last_number(self, publisher: str) -> int | None:
        """The publisher's last number here, 0 if there is none; None if nobody knows any more."""
        return self.last_numbers.get(publisher, None if self.has_forgotten else 0)

    def cut_to(self, length: int) -> None:
        """Drop what lies beyond a length: it was never confirmed."""
        for entry in reversed(self.entries[max(0, length - self.start) :]):
            self.entries.pop()
            self.size -= self.sizes.pop()
            self.last_numbers[entry.publisher] = entry.first - 1

    def drop(self, count: int) -> None:
        """Drop the first entries that are here."""
        if count:
            self.gone = after_dropping(self.gone, self.dropped, self.entries[:count])
            self.dropped = self.entries[count - 1].timestamp
            self.size -= sum(self.sizes[:count])
            self.start += count
            self.lacks_earlier = False
            self.has_changed = True
            del self.entries[:count], self.sizes[:count]

    def place_after(self, timestamp: int) -> int:
        """The place of the first entry with a larger timestamp."""
        return self.start + bisect_right(self.entries, timestamp, key=_timestamp_of)

    def extend_from(self, copy: JournalCopy) -> None:
        """Take over what the copy has beyond this. If it begins after the end of this, it takes the place of this."""
        if copy.start > len(self):
            self.start, self.entries, self.sizes, self.size, self.checked = copy.start, [], [], 0, 0
            self.dropped, self.lacks_earlier, self.has_changed = copy.dropped, True, True
            self.gone = copy.gone
            for publisher, number in copy.last_numbers.items():
                self._note_number(publisher, number)
            self.has_forgotten |= copy.has_forgotten
        for entry in copy.entries[max(0, len(self) - copy.start) :]:
            self.append(entry)

    def prepend(self, copy: JournalCopy) -> bool:
        """Take over what the copy has just before this. Whether it has anything."""
        if not copy.entries or copy.length != self.start:
            return False
        self.start, self.dropped, self.has_changed, self.checked = copy.start, copy.dropped, True, 0
        if copy.gone.until == copy.dropped:
            self.gone = copy.gone
        sizes = [size_of(entry.events) + ENTRY_BYTES for entry in copy.entries]
        self.entries[:0], self.sizes[:0] = copy.entries, sizes
        self.size += sum(sizes)
        return True

    def copy(
        self, incarnation: Incarnation, start: int = 0, end: int | None = None, *, is_page: bool = False
    ) -> JournalCopy:  # fmt: skip
        """The entries from a place on, or from the first that is here, and what a holder that has none has to know:
        not if it is a page for one that has what follows."""
        start = max(start, self.start)
        before = self.entry(start - 1).timestamp if start > self.start else self.dropped
        stop = None if end is None else max(0, end - self.start)
        numbers = dict(self.last_numbers) if start and not is_page else {}
        entries = self.entries[start - self.start : stop]
        gone = Dropped() if is_page and start > self.start else self.gone
        return JournalCopy(incarnation, start, before, numbers, self.has_forgotten, entries, gone)

    def last_entry(self, incarnation: Incarnation) -> JournalCopy:
        """The last entry, for a holder that has all before it."""
        return JournalCopy(incarnation, len(self) - 1, 0, {}, False, self.entries[-1:])


def _timestamp_of(entry: Entry) -> int:
    return entry.timestamp
