"""Stores the conjunctions of an index in segments, and in pages if there are very many.

A segment needs only Python, accepts all conjunctions, and is faster where it is short; pages
(`pages`) need numpy, and accept what their columns support. Without numpy all stay in segments.
numpy is imported only for this number of conjunctions: that is one step of some seventy
milliseconds, once.

New conjunctions go to segments, which is faster. They move to pages as events are matched: step by
step, one step for some events. So an index with many matches uses pages soon, and one that only
adds filters does not pay for them. Between two steps each conjunction is in one place.

Columns never change, and pages do not grow. When they are full, or most of the original
conjunctions are removed, new pages are created for the current ones, and all conjunctions move
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from gapless.filters.constraints import Constraint
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.segment import Segment
from gapless.filters.segments import Segments

if TYPE_CHECKING:
    from gapless.filters.page_column import PageColumn
    from gapless.filters.pages import Pages

PAGED_MIN = 32_768
"""The minimum number of conjunctions for which pages are used: as many as one segment holds."""

SPARE = 3
"""The multiple of the current number of conjunctions for which pages are created. With a third of each page empty, they
are full when the number has doubled."""

COLUMNS_MAX = 32
"""The maximum number of attributes in pages. Those with the most constraints are chosen."""

ROWS_MAX = 4096
"""Maximum number of rows of all columns. Each costs a bit for each slot."""

STRINGS_MAX = 128
"""Maximum number of listed strings of one attribute, for the same reason."""

SAMPLE_MAX = 2048
"""The number of conjunctions in the sample from which columns are created."""

LOOKED_AT = 256
"""The number of conjunctions that one step examines."""

TO_PAGES, TO_SEGMENTS = 1, 4
"""The cost of moving a conjunction to pages, or back to segments."""

MOVED = 16
"""The budget of one step for moving, which is about a millisecond."""

EVENTS_PER_STEP = 16
"""The number of events per step. A step takes longer than matching them if nothing is in pages yet."""

MANY = 100_000
"""For each multiple of this number of conjunctions in segments, one more step is taken per EVENTS_PER_STEP events."""

WAITING_MAX = 1024
"""The number of conjunctions in segments at which they are moved to pages together, if there is room."""


class Store:
    """All conjunctions of an index that are not found through rare values."""

    def __init__(self) -> None:
        self._segments = Segments()
        self._pages: list[Pages] = []
        """The pages in use. There are two while conjunctions move from the first to the second."""
        self._newest: Pages | None = None
        """The pages to which conjunctions are added."""
        self._made_for = 0
        """The number of conjunctions when pages were last created, including those that remained in segments."""
        self._left = 0
        self._task: Iterator[None] | None = None
        self._matched = 0
        """The number of events matched since the last step."""

    def add(self, member: Member) -> None:
        self._segments.add(member)
        self._segments.step()

    def remove(self, member: Member) -> None:
        self._kill(member)
        self._segments.step()

    def match(self, attributes: Attributes) -> list[int]:
        """Return the order numbers of the filters that an event matches."""
        found = self._segments.match(attributes)
        for pages in self._pages:
            found += pages.match(attributes)
        self._move(1)
        return found

    def match_many(self, batch: Sequence[Attributes], found: list[list[int]]) -> None:
        """Append the order numbers of the matching filters to each event's list."""
        self._segments.match_many(batch, found)
        for pages in self._pages:
            pages.match_many(batch, found)
        self._move(len(batch))

    def _enter(self, member: Member) -> int:
        """Move a conjunction to the newest pages, or to segments if these do not accept it. Return the cost."""
        if self._newest is not None and self._newest.takes(member):
            self._newest.add(member)
            return TO_PAGES
        self._segments.add(member)
        return TO_SEGMENTS

    def _kill(self, member: Member) -> None:
        for pages in self._pages:
            if member.segment is pages:
                pages.kill(member)
                return
        self._segments.remove(member)

    # ---- steps --------------------------------------------------------------------------------------------

    def _move(self, matched: int) -> None:
        """Take the steps that are due after this number of events."""
        self._matched += matched * (1 + self._segments.living_count // MANY)
        while self._matched >= EVENTS_PER_STEP:
            self._matched -= EVENTS_PER_STEP
            if self._task is None:
                self._task = self._next_task()
                if self._task is None:
                    self._matched = 0
                    return
            if next(self._task, self) is self:
                self._task = None

    def _next_task(self) -> Iterator[None] | None:
        waiting = self._segments.living_count
        pages = self._newest
        if pages is not None:
            count = pages.living_count + waiting
            if count < min(self._made_for, PAGED_MIN) // 4:
                return self._give_up_pages()
            is_full = not pages.has_room and pages.additions > self._made_for * 3 // 2
            is_stale = pages.additions > self._made_for * SPARE * 2
            if is_full or is_stale or count < self._made_for // 4:
                return self._make_pages()
            if pages.has_room and waiting >= self._left + max(WAITING_MAX, self._left // 4):
                return self._fill_pages()
        return self._make_pages() if waiting >= max(PAGED_MIN, 2 * self._left) else None

    def _make_pages(self) -> Iterator[None]:
        """Create pages for the current conjunctions, and move those that fit."""
        try:
            from gapless.filters.pages import SLOTS, Pages
        except ModuleNotFoundError:
            self._left = self._segments.living_count
            return
        yield
        columns = yield from self._columns()
        before = list(self._pages)
        self._made_for = self._segments.living_count + sum(pages.living_count for pages in before)
        if columns:
            self._newest = Pages(columns, SPARE * (1 + self._made_for // SLOTS))
            self._pages.append(self._newest)
            for pages in before:
                yield from self._empty(pages)
            yield from self._fill_pages()
        self._left = self._segments.living_count

    def _fill_pages(self) -> Iterator[None]:
        """Move all conjunctions that fit from segments to the newest pages."""
        for segment in self._segments.all:
            yield from self._leave(segment)
        while self._segments.is_draining:
            self._segments.step()
            yield
        self._left = self._segments.living_count

    def _give_up_pages(self) -> Iterator[None]:
        """Move all conjunctions back to segments."""
        self._newest = None
        self._left = 0
        for pages in list(self._pages):
            yield from self._empty(pages)

    def _empty(self, pages: Pages) -> Iterator[None]:
        """Move all conjunctions out of these pages."""
        moved = 0
        for number, member in enumerate(pages.members):
            if member is not None:
                pages.kill(member)
                moved += self._enter(member)
            if moved >= MOVED or not number % LOOKED_AT:
                moved = 0
                self._segments.step()
                yield
        self._pages.remove(pages)

    def _leave(self, segment: Segment) -> Iterator[None]:
        """Move the conjunctions of a segment to the newest pages, except those that do not fit."""
        assert self._newest is not None
        moved = 0
        for number, member in enumerate(segment.members):
            if member.segment is segment and self._newest.takes(member):
                self._segments.remove(member)
                moved += self._enter(member)
            if moved >= MOVED or not number % LOOKED_AT:
                moved = 0
                yield

    def _columns(self) -> Generator[None, None, list[PageColumn]]:
        """Return columns for a sample of all conjunctions, for the attributes with the most constraints."""
        from gapless.filters.page_column import PageColumn

        kept: list[Sequence[Member | None]] = [segment.members for segment in self._segments.all]
        kept += [pages.members for pages in self._pages]
        stride = 1 + sum(map(len, kept)) // SAMPLE_MAX
        asked: dict[str, list[Constraint]] = {}
        for number, member in enumerate(chain.from_iterable(members[::stride] for members in kept)):
            if member is not None and member.segment is not None:
                for name, constraint in member.conjunction.constraints.items():
                    asked.setdefault(name, []).append(constraint)
            if not number % LOOKED_AT:
                yield
        columns: list[PageColumn] = []
        height = 0
        for name in sorted(asked, key=lambda name: -len(asked[name]))[:COLUMNS_MAX]:
            named = Counter(value for constraint in asked[name] for value in constraint.strings.values)
            strings = [value for value, _ in named.most_common(STRINGS_MAX)]
            column = PageColumn(name, height, strings, asked[name])
            if column.end > ROWS_MAX:
                break
            columns.append(column)
            height = column.end
            yield
        return columns
