"""A journal: the entries admitted by one incarnation, or a copy of some of them."""

from bisect import bisect_right

from gapless.event_runs import EventRun
from gapless.protocols.gapless.dropped import after_dropping
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Dropped, Entry, JournalCopy
from gapless.protocols.gapless.tombstones import counted_for

__all__ = ["ENTRY_BYTES", "Journal", "cost_of", "size_of"]

EVENT_BYTES = 48
"""The assumed size of an event in bytes, without its payload and its attributes."""
ENTRY_BYTES = 64
"""The assumed size of an entry in bytes, without its events."""
NUMBERS_MAX = 20_000
"""The maximum number of publishers whose last number a journal remembers. A client of a failed broker that is not among
them and has unconfirmed publications is rejected, because it is unknown which of them were admitted."""


def size_of(events: EventRun) -> int:
    """Return the approximate size of the events in bytes."""
    return events.size + EVENT_BYTES * len(events)


def cost_of(events: EventRun) -> int:
    """Return the cost of events in a window: their number, plus one for each KiB, so that the window bounds both."""
    return len(events) + size_of(events) // 1024


class Journal:
    """A journal, or a copy of one: entries in the order of their admission.

    The first `start` entries were dropped after all brokers had processed them. A copy is a prefix of the journal
    without its dropped beginning; its length includes the dropped entries.
    """

    def __init__(self) -> None:
        self.start = 0
        self.entries: list[Entry] = []
        self.sizes: list[int] = []
        """The approximate size of each entry in bytes, computed once because that examines all attributes."""
        self.dropped = 0
        """The largest timestamp of a dropped entry."""
        self.gone = Dropped()
        self.size = 0
        """The sum of `sizes`."""
        self.lacks_earlier = False
        """Whether the first entries were never here, so that other brokers may have them."""
        self.last_numbers: dict[str, int] = {}
        """Each publisher's last number, least recently active publisher first."""
        self.has_forgotten = False
        """Whether publishers are missing from `last_numbers`."""
        self.checked = 0
        """All entries before this place were checked for deletion (see `deleting`)."""
        self.replaced: list[int] = []
        """The timestamps of entries replaced since the last write to the disk."""
        self.has_changed = True
        """Whether the journal is new, or entries were added, replaced or dropped since the last write to the disk."""

    def __len__(self) -> int:
        return self.start + len(self.entries)

    def entry(self, place: int) -> Entry:
        """Return the entry at this place of the journal."""
        return self.entries[place - self.start]

    def size_at(self, place: int) -> int:
        """Return the approximate size in bytes of the entry at this place."""
        return self.sizes[place - self.start]

    def cost_at(self, place: int) -> int:
        """Return the cost in a window of the entry at this place (see `cost_of`)."""
        index = place - self.start
        return len(self.entries[index].events) + (self.sizes[index] - ENTRY_BYTES) // 1024

    @property
    def last_timestamp(self) -> int:
        return self.entries[-1].timestamp if self.entries else self.dropped

    def append(self, entry: Entry) -> None:
        """Append an entry."""
        size = size_of(entry.events) + ENTRY_BYTES
        self.entries.append(entry)
        self.sizes.append(size)
        self.size += size
        self.has_changed = True
        self._note_number(counted_for(entry), entry.last)

    def replace(self, place: int, entry: Entry) -> None:
        """Replace an entry with one that has the same timestamp and numbers."""
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
        """Return the publisher's last number, or 0 if it has no entry here. Return None if it may have been
        forgotten."""
        return self.last_numbers.get(publisher, None if self.has_forgotten else 0)

    def cut_to(self, length: int) -> None:
        """Truncate the journal to a length. The dropped entries were never confirmed."""
        for entry in reversed(self.entries[max(0, length - self.start) :]):
            self.entries.pop()
            self.size -= self.sizes.pop()
            self.last_numbers[entry.publisher] = entry.first - 1

    def drop(self, count: int) -> None:
        """Drop the first `count` remaining entries."""
        if count:
            self.gone = after_dropping(self.gone, self.dropped, self.entries[:count])
            self.dropped = self.entries[count - 1].timestamp
            self.size -= sum(self.sizes[:count])
            self.start += count
            self.lacks_earlier = False
            self.has_changed = True
            del self.entries[:count], self.sizes[:count]

    def place_after(self, timestamp: int) -> int:
        """Return the place of the first entry with a larger timestamp."""
        return self.start + bisect_right(self.entries, timestamp, key=_timestamp_of)

    def extend_from(self, copy: JournalCopy) -> None:
        """Append the entries of a copy that are missing here. If the copy begins after the end of this journal, it
        replaces the journal."""
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
        """Prepend the entries that the copy has just before this journal's first one. Return whether there were any."""
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
        """Return a copy of the entries from `start`, or from the first remaining one, to `end`. It includes the summary
        of dropped entries, unless it is a page for a holder of the following entries."""
        start = max(start, self.start)
        before = self.entry(start - 1).timestamp if start > self.start else self.dropped
        stop = None if end is None else max(0, end - self.start)
        numbers = dict(self.last_numbers) if start and not is_page else {}
        entries = self.entries[start - self.start : stop]
        gone = Dropped() if is_page and start > self.start else self.gone
        return JournalCopy(incarnation, start, before, numbers, self.has_forgotten, entries, gone)

    def last_entry(self, incarnation: Incarnation) -> JournalCopy:
        """Return a copy of the last entry only, for a holder of all earlier entries."""
        return JournalCopy(incarnation, len(self) - 1, 0, {}, False, self.entries[-1:])


def _timestamp_of(entry: Entry) -> int:
    return entry.timestamp
