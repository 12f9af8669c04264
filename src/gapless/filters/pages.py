"""Stores very many conjunctions as bits of pages, of which each event opens few.

A page has SLOTS similar conjunctions: all require the same string, or numbers of the same range, of
one attribute. An event with another value of that attribute matches none of them. So bounds of all
pages are compared first, at once, and only some pages are opened: an event opens an eighth of the
pages for a hundred thousand filters.

A page has a row of bits for each state of each attribute (`page_column`): the conjunctions that
fail in that state. The rows of the event's states are fetched from all open pages and combined by
OR; conjunctions without a failing row are compared with the event's numbers, as floats. That is
exact, except for ranges of strings: the strings themselves are compared if nothing else excludes
the conjunction. Conjunctions with more than listed strings, ranges and single intervals are not stored in
pages.

numpy does the work in some twenty calls per event, and in few more for a batch. Adding and removing
change bits of one page. Columns and the number of pages are fixed (see `store`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER
from gapless.filters.page_column import Floats, PageColumn, Rows, Run, as_float, note
from gapless.filters.string_sets import StringSet

WORDS = 4
SLOTS = 64 * WORDS
"""The number of conjunctions per page. With fewer, there are more pages to compare; with more, pages are opened
unnecessarily more often."""

CELLS = 4
"""The number of parts into which the range of numbers is divided. Intervals that begin in the same part and have a
similar length share pages."""

INTERVALS_MAX = 5
"""Maximum number of intervals of one conjunction in a page."""

BATCH = 256
"""The number of events that are matched together, so that their data fits into caches."""

OPENED = 8192
"""The number of pages that are opened together, so that their data fits into caches."""

Bits = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]
Key = tuple[int, int, int]
"""The index of an attribute, and a cell of its rows."""

Touched = list[tuple[int, list[Run]]]
"""For each constraint, the index of its attribute, and the runs of rows that it allows."""

_FULL = (1 << 64) - 1


class Pages:
    """Conjunctions in numbered slots. Slot i is in page i // SLOTS."""

    def __init__(self, columns: list[PageColumn], count: int) -> None:
        """Create `count` empty pages with these columns."""
        self._columns = columns
        self._places = {column.name: place for place, column in enumerate(columns)}
        self._readers = [(column.name, *column.reader, column) for column in columns]
        self._height = columns[-1].end
        self.slots = count * SLOTS
        self.living_count = 0
        self.additions = 0
        """The number of conjunctions that were ever added."""
        self.members: list[Member | None] = []
        self._fails: Bits = np.zeros((self._height * count, WORDS), dtype=np.uint64)
        """The bits of failing conjunctions. Row r of page p is at r * count + p, because an event reads its row from
        many pages."""
        self._alive: Bits = np.zeros((count, WORDS), dtype=np.uint64)
        self._pages = 0
        """The number of pages in use, which are the first ones."""
        self._count = count
        # An event opens a page if its row of the page's attribute is in the page's run.
        self._attribute: Places = np.zeros(count, dtype=np.intp)
        self._first: Rows = np.zeros(count, dtype=np.int32)
        self._last: Rows = np.zeros(count, dtype=np.int32)
        self._open: dict[Key, list[int]] = {}
        """The pages with room, by key."""
        self._keys: list[Key] = []
        self._everybody = (-1, 0, 0), 0, (0, self._height)
        """The key of conjunctions without a selective constraint, whose pages every event opens. A third of all pages
        is reserved for them."""
        self._used: set[int] = set()
        """Free slots that still have the bits of a removed conjunction."""
        self._orders = np.zeros(self.slots, dtype=np.int64)
        # The intervals of each conjunction. Unused ones refer to an attribute that is 0 in all events.
        self._compared = np.full((self.slots, INTERVALS_MAX), len(columns), dtype=np.uint8)
        self._lows = np.zeros((self.slots, INTERVALS_MAX), dtype=np.float64)
        self._highs = np.zeros((self.slots, INTERVALS_MAX), dtype=np.float64)
        self._ranged: dict[int, list[tuple[str, StringSet]]] = {}
        """For each slot, the attributes with ranges of strings, which are compared one by one."""

    # ---- adding and removing ------------------------------------------------------------------------------

    def takes(self, member: Member) -> bool:
        """Return whether the pages can represent the conjunction and have room for it."""
        if member.conjunction.opaque or not self.has_room:
            return False
        intervals = 0
        for name, constraint in member.conjunction.constraints.items():
            place = self._places.get(name)
            if place is None or not self._columns[place].lists(constraint):
                return False
            intervals += constraint.numbers not in (EVERY_NUMBER, NO_NUMBER) or constraint.strings.patterned
        return intervals <= INTERVALS_MAX

    def add(self, member: Member) -> None:
        """Add a conjunction for which `takes` returned True."""
        touched: Touched = []
        intervals: list[tuple[int, float, float]] = []
        for name, constraint in member.conjunction.constraints.items():
            place = self._places[name]
            touched.append((place, self._columns[place].touched(constraint)))
            if constraint.numbers not in (EVERY_NUMBER, NO_NUMBER):
                intervals.append((place, *constraint.numbers[0]))
            elif constraint.strings.patterned:
                intervals.append((place, *self._columns[place].ranks(constraint.strings)))
        intervals += [(len(self._columns), 0.0, 0.0)] * (INTERVALS_MAX - len(intervals))
        slot = self._take_slot(touched)
        self._write(slot, touched)
        self._compared[slot], self._lows[slot], self._highs[slot] = zip(*intervals, strict=True)
        self._orders[slot] = member.order
        constraints = member.conjunction.constraints
        ranged = [(name, each.strings) for name, each in constraints.items() if each.strings.patterned]
        if ranged:
            self._ranged[slot] = ranged
        self.members[slot] = member
        member.segment, member.number = self, slot
        self.living_count += 1
        self.additions += 1

    def kill(self, member: Member) -> None:
        """Remove a conjunction from its slot."""
        assert member.segment is self
        page, place = divmod(member.number, SLOTS)
        if self._is_full(page):
            self._open[self._keys[page]].append(page)
        self._alive[page, place >> 6] ^= np.uint64(1 << (place & 63))
        self._used.add(member.number)
        self._ranged.pop(member.number, None)
        self.members[member.number] = None
        member.segment = None
        self.living_count -= 1

    @property
    def has_room(self) -> bool:
        """Return whether there is certainly room for another conjunction."""
        return self._pages < self._count

    def _take_slot(self, touched: Touched) -> int:
        key, place, run = self._key(touched)
        if key not in self._open and self._pages >= self._count * 2 // 3:
            key, place, run = self._everybody
        pages = self._open.setdefault(key, [])
        if not pages:
            page = self._pages
            self._pages += 1
            pages.append(page)
            self._keys.append(key)
            self.members += [None] * SLOTS
            self._attribute[page], self._first[page], self._last[page] = place, run[0], run[1] - 1
        page = pages[-1]
        self._first[page] = min(int(self._first[page]), run[0])
        self._last[page] = max(int(self._last[page]), run[1] - 1)
        for number, word in enumerate(self._alive[page].tolist()):
            if word != _FULL:
                free = ~word & (word + 1)
                self._alive[page, number] |= np.uint64(free)
                if self._is_full(page):
                    pages.pop()
                return page * SLOTS + number * 64 + int(free).bit_length() - 1
        raise AssertionError("a page in the list of pages with room is full")

    def _is_full(self, page: int) -> bool:
        return bool((self._alive[page] == _FULL).all())

    def _key(self, touched: Touched) -> tuple[Key, int, Run]:
        """Return the key of a conjunction, by its most selective attribute."""
        best: tuple[float, Key, int, Run] | None = None
        for place, runs in touched:
            if len(runs) == 1:
                share, *cell = self._columns[place].cell(runs[0], CELLS)
                if best is None or share < best[0]:
                    best = share, (place, cell[0], cell[1]), place, runs[0]
        return self._everybody if best is None else best[1:]

    def _write(self, slot: int, touched: Touched) -> None:
        """Set the bits of a slot, which may contain those of a removed conjunction."""
        page, place = divmod(slot, SLOTS)
        bit = 1 << (place & 63)
        column = self._fails[page :: self._count, place >> 6]
        if slot in self._used:
            self._used.remove(slot)
            column &= np.uint64(_FULL ^ bit)
        mask = np.uint64(bit)
        for number, runs in touched:
            free, end = self._columns[number].base, self._columns[number].end
            for first, after in runs:
                column[free:first] |= mask
                free = after
            column[free:end] |= mask

    # ---- matching -----------------------------------------------------------------------------------------

    def match(self, attributes: Attributes) -> list[int]:
        """Return the order numbers of the filters that an event matches."""
        used, get = self._pages, attributes.get
        codes: list[int] = []
        values: list[float] = []
        # Unrolled for the most frequent case: a call for each attribute would take as long as the rest.
        for name, strings, ranked, others, cuts, first_number, column in self._readers:
            value: Any = get(name)
            kind = type(value)
            if kind is int:
                codes.append(first_number + bisect_right(cuts, value))
                values.append(value)
            elif kind is str:
                rank = bisect_right(ranked, value) if ranked else 0
                codes.append(strings.get(value, others[rank]))
                values.append(rank)
            else:
                codes.append(column.row(value))
                values.append(as_float(value))
        rows = np.array(codes)
        own = rows.take(self._attribute[:used])
        pages = ((self._first[:used] <= own) & (own <= self._last[:used])).nonzero()[0]
        fails = self._fails.take(np.add.outer(rows * self._count, pages), axis=0)
        failed: Bits = np.bitwise_or.reduce(fails, axis=0)
        place, slots = _slots(self._alive.take(pages, axis=0) & ~failed, pages)
        if not len(place):
            return []
        numbers = np.zeros(len(values) + 1)
        if not note(values, numbers[:-1]):
            numbers[:-1] = list(map(as_float, values))
        held = self._hold(slots, numbers.take(self._compared.take(slots, axis=0)))
        slots = slots.compress(held)
        orders: list[int] = self._orders.take(slots).tolist()
        if not self._ranged:
            return orders
        return [order for slot, order in zip(slots.tolist(), orders, strict=True) if self._fits(slot, attributes)]

    def _fits(self, slot: int, attributes: Attributes) -> bool:
        """Return whether the event's strings are in the ranges of the conjunction in a slot."""
        for name, strings in self._ranged.get(slot, ()):
            value: Any = attributes[name]
            if value < strings.low or (strings.high is not None and value >= strings.high) or value in strings.values:
                return False
            if strings.likes or strings.unlikes:
                member = self.members[slot]
                return member is not None and member.filter.test(attributes)
        return True

    def match_many(self, batch: Sequence[Attributes], found: list[list[int]]) -> None:
        """Append the order numbers of the matching filters to each event's list."""
        for begin in range(0, len(batch), BATCH):
            self._match_some(batch[begin : begin + BATCH], found[begin : begin + BATCH])

    def _match_some(self, batch: Sequence[Attributes], found: list[list[int]]) -> None:
        used, width = self._pages, len(batch)
        rows: Rows = np.empty((len(self._columns), width), dtype=np.int32)
        numbers = np.zeros((len(self._columns) + 1, width), dtype=np.float64)
        for place, column in enumerate(self._columns):
            name = column.name
            column.read([attributes.get(name) for attributes in batch], rows[place], numbers[place])
        own = rows.take(self._attribute[:used], axis=0)
        # Page by page, so that the rows of a page are in the cache for all events that open it.
        pages, events = ((self._first[:used, None] <= own) & (own <= self._last[:used, None])).nonzero()
        for begin in range(0, len(pages), OPENED):
            some = slice(begin, begin + OPENED)
            event, slots = self._survivors(rows, pages[some], events[some])
            held = self._hold(slots, numbers[self._compared.take(slots, axis=0), event[:, None]])
            slots = slots[held]
            orders = self._orders[slots].tolist()
            for place, slot, order in zip(event[held].tolist(), slots.tolist(), orders, strict=True):
                if self._fits(slot, batch[place]):
                    found[place].append(order)

    def _survivors(self, rows: Rows, pages: Places, events: Places) -> tuple[Places, Places]:
        """Return pairs of events and slots in their open pages in which no row fails."""
        left = self._alive.take(pages, axis=0)
        half = len(self._columns) // 2
        rows = rows * self._count
        for columns in (rows[:half], rows[half:]):
            failed = np.zeros_like(left)
            for column in columns:
                failed |= self._fails.take(pages + column.take(events), axis=0)
            left &= ~failed
            kept = np.flatnonzero(left.any(axis=1))
            left, pages, events = left.take(kept, axis=0), pages.take(kept), events.take(kept)
        place, slots = _slots(left, pages)
        return events.take(place), slots

    def _hold(self, slots: Places, compared: Floats) -> npt.NDArray[np.bool_]:
        """Return, for each slot, whether the numbers are in the intervals of its conjunction."""
        holds = (self._lows.take(slots, axis=0) <= compared) & (compared <= self._highs.take(slots, axis=0))
        return np.logical_and.reduce(holds, axis=1)  # type: ignore[no-any-return]


def _slots(bits: Bits, pages: Places) -> tuple[Places, Places]:
    """Return for each set bit in the words of these pages the index of its page, and its slot."""
    words = bits.ravel()
    some = words.nonzero()[0]
    number = np.unpackbits(words.take(some).view(np.uint8), bitorder="little").nonzero()[0]
    word = some.take(number >> 6)
    place = word // WORDS
    return place, (word + (pages.take(place) - place) * WORDS << 6) + (number & 63)
