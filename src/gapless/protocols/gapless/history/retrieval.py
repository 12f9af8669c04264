"""Reading what lies between two final positions: from those who hold it, merged by stamp.

What each journal got is known before anything is read (`index`). So every answer that holds all of that is right, and
it does not matter who gives it. The broker whose journal it is is asked first, then those around it, among which are
its former backups. What one of them lacks, the next is asked for. The reader is told what nobody has, before it gets
anything that may be an effect of that.

History is read in stretches of whole intervals, each sorted by stamp, publisher and number. Effects have larger stamps
than their causes. No stretch has a number twice. The smallest story: p:1 and p:2 are taken for lost, and have
tombstones in a later interval. Their broker comes back, and has p:2 alone. If both intervals were one stretch, the
tombstone of p:1 would be taken for p:1, and p:2 would come before it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from gapless.events import Event
from gapless.protocols.gapless.history.index import merged
from gapless.protocols.gapless.messages import Fetch, Fetched, Interval, Ranges
from gapless.protocols.parts.ranges import add_ranges, count, without

__all__ = ["Retrieval", "Source"]

STRETCH = 4_096
"""So many events may be looked at in one stretch, or one interval."""
PATIENCE = 3
"""After so many turns of the clock without an answer others are asked; then, after twice as many, all again."""
PATIENCE_MAX = 40
SILENCE_MAX = 85
"""After so many turns without a word from any holder they are asked no more, unless they may return. They are dead, and
too far away to be known as out. Who is there and has a slow disk says so."""


class Source:
    """What one journal got in a stretch, as it comes in."""

    def __init__(self, journal: str, since: int, until: int, missing: Ranges, holders: Sequence[str]) -> None:
        self.journal = journal
        self.since = since
        """All up to this stamp has come."""
        self.page_since = since
        """The same, before the last page came."""
        self.until = until
        self.missing = missing
        """What has not come."""
        self.events: deque[Event] = deque()
        self.holders = list(holders)
        """Who may have it: all but those who said that they do not."""
        self.is_wide = False
        """Whether all of them are to be asked."""
        self._asked: dict[str, None] = {}
        """Who was asked for the next page."""
        self._waited = 0
        self._patience = PATIENCE
        self._silence = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes from here."""
        return not self.missing

    def whom_to_ask(self) -> list[str]:
        """The first holder; if that one does not have it, or does not answer, all others at once."""
        fresh = [name for name in self.holders if name not in self._asked]
        if not self.is_wide:
            fresh = [] if self._asked else fresh[:1]
        self._asked.update(dict.fromkeys(fresh))
        return fresh

    def waits_for(self) -> list[str]:
        """Who was asked and did not answer."""
        return [name for name in self.holders if name in self._asked] if not self.is_over else []

    def wait(self, may_return: Callable[[str], bool]) -> None:
        """Time passes: after a while others are asked, then all again. Late answers count, too.

        The smallest story of those who may return: p:1 is on three disks, and their brokers are killed. All others wait
        for them. When they are back, who reads history gets p:1.
        """
        self._waited += 1
        self._silence += 1
        if self._silence >= SILENCE_MAX:
            self.holders = [name for name in self.holders if may_return(name)]
        if self._waited < self._patience:
            return
        self._waited = 0
        self._patience = min(2 * self._patience, PATIENCE_MAX)
        if self.is_wide:
            self._asked = {}
        self.is_wide = True

    def heard(self) -> None:
        """A holder has said that it takes a while.

        The smallest story: p:1 is on one disk alone that is there, and other programs keep that disk busy. Who reads
        history is not told that p:1 is lost.
        """
        self._silence = 0

    def fits(self, fetch: Fetch) -> bool:
        """Whether this is what was asked for, and has not come yet."""
        return not self.is_over and (fetch.journal, fetch.since) == (self.journal, self.since)

    def refused(self, holder: str) -> None:
        """That one cannot help."""
        self.is_wide = self.is_wide or holder in self._asked
        self.holders = [name for name in self.holders if name != holder]

    def give_back(self) -> Ranges:
        """Nobody is left to ask for what is missing."""
        missing, self.missing = self.missing, {}
        return missing

    def take(self, holder: str, page: Fetched) -> Ranges:
        """A page came. Returns what has to come from others, if its sender holds a part only."""
        lacking = without(self.missing, page.held)
        self.refused(holder)
        if lacking == self.missing:
            return {}
        self.holders.insert(0, holder)
        self._asked, self.is_wide = {}, False
        self._waited, self._silence, self._patience = 0, 0, PATIENCE
        self.missing = without(self.missing, lacking)
        self.events += _those_in(self.missing, page.events)
        self.missing = without(self.missing, page.passed)
        self.page_since, self.since = self.since, page.upto
        return lacking


class Retrieval:
    """One reading of history, from a position to another, for one filter, in one journal or in all."""

    def __init__(
        self, text: str, since: int, until: int, intervals: Sequence[Interval], last: int, journal: str = ""
    ) -> None:
        """`intervals` is what is known between the two; `last` the last position that is known to be final."""
        self.text = text
        self.until = min(until, max(since, last))
        """Where it ends. That is sooner than was asked for, if it is not known yet what was admitted up to there."""
        self.gaps = _gaps(since, self.until, intervals)
        """Positions between which nobody knows what was admitted."""
        self.position = since
        """All up to here was taken, or told to be lost."""
        self.lost: Ranges = {}
        """What nobody has: whoever reads must be told."""
        self.sources: list[Source] = []
        self._journal = journal
        self._begin = since
        self._end = since
        """Of the stretch."""
        self._intervals = deque(interval for interval in intervals if interval.until > since)
        self._looked_at: list[Interval] = []
        """What it is made of, and those before it of which something is lost that nobody was told."""

    @property
    def is_over(self) -> bool:
        """Whether everything was taken."""
        return not self._intervals and not self.sources and self.position >= self.until

    def waits_for(self) -> list[str]:
        """The brokers that were asked and did not answer yet."""
        return sorted({name for source in self.sources for name in source.waits_for()})

    def next_stretch(self, holders: Callable[[str], Sequence[str]]) -> list[Source]:
        """If the last stretch was taken: who has to be asked for the next."""
        if self.sources or self.is_over:
            return []
        stretch: list[Interval] = []
        total = 0
        seen: Ranges = {}
        while self._intervals and self._end < self.until:
            admitted = self._intervals[0].admitted.values()
            total += sum(map(count, admitted))
            if stretch and (total > STRETCH or any(without(ranges, seen) != ranges for ranges in admitted)):
                break
            for ranges in admitted:
                add_ranges(seen, ranges)
            stretch.append(self._intervals.popleft())
            self._end = stretch[-1].until
        self._looked_at = [*(self._looked_at if self.lost else []), *stretch]
        if not stretch:
            self._intervals.clear()
            self.position = self.until
            return []
        since = stretch[0].since
        self.sources = [
            Source(journal, since, self._end, ranges, holders(journal))
            for journal, ranges in merged(stretch).items()
            if journal == self._journal or not self._journal
        ]
        if not self.sources:
            self._finish_stretch()
        return list(self.sources)

    def find_beginning(self) -> int | None:
        """The first position from which on nothing is missing in the first stretch; None while answers are missing.

        Of what is missing only the numbers are known. So it begins behind the last number that is missing of any
        publisher: that was admitted before the next number that is there, and within the stretch if there is none.
        """
        if any(not source.is_over for source in self.sources):
            return None
        missing = {publisher: ranges[-1][1] for publisher, ranges in self.lost.items()}
        before_next = dict.fromkeys(missing, self._end)
        for source in self.sources:
            for event in source.events:
                publisher = event.publisher
                if publisher in missing and event.seq > missing[publisher]:
                    before_next[publisher] = min(before_next[publisher], event.stamp - 1)
        self.lost = {}
        self._begin = self.position = min(max([self._begin, *before_next.values()]), max(self._begin, self.until))
        return self._begin

    def divide(self, source: Source, lacking: Ranges) -> Source | None:
        """What one holder lacks is another source; if there is nobody left to ask, it is lost."""
        holders = source.holders[1:]
        if holders:
            other = Source(source.journal, source.page_since, source.until, lacking, holders)
            other.is_wide = True
            self.sources.append(other)
            return other
        add_ranges(self.lost, lacking)
        return None

    def take_lost(self) -> list[tuple[int, Ranges]]:
        """What nobody has, each with a position up to which it was admitted: whoever reads it is told now."""
        lost, self.lost = self.lost, {}
        found: list[tuple[int, Ranges]] = []
        for interval in self._looked_at:
            rest = lost
            for admitted in interval.admitted.values():
                rest = without(rest, admitted)
            found.append((interval.until, without(lost, rest)))
            lost = rest
        return [(until, ranges) for until, ranges in [*found, (self._end, lost)] if ranges]

    def take(self, most: int) -> list[Event]:
        """The next events, in order; none while an answer is missing that may contain an earlier one."""
        found: list[Event] = []
        safe = min((source.since for source in self.sources if not source.is_over), default=self._end)
        begin, until, last = self._begin, self.until, 0
        for event in self._in_order(safe):
            last = event.stamp
            if begin < last <= until:
                found.append(event)
                if len(found) >= most:
                    break
        self.position = max(self.position, min(last, until) - 1)
        if self.sources and all(source.is_over and not source.events for source in self.sources):
            self._finish_stretch()
        return found

    def _finish_stretch(self) -> None:
        self.sources = []
        self.position = min(self._end, self.until)

    def _in_order(self, safe: int) -> Iterator[Event]:
        """The next events up to a stamp, each taken out as it comes."""
        full = [source.events for source in self.sources if source.events]
        if len(full) == 1:
            [events] = full
            while events and events[0].stamp <= safe:
                yield events.popleft()
            return
        heads = [(_place(events[0]), n) for n, events in enumerate(full)]
        heapify(heads)
        while heads and heads[0][0][0] <= safe:
            number = heads[0][1]
            events = full[number]
            yield events.popleft()
            if events:
                heapreplace(heads, (_place(events[0]), number))
            else:
                heappop(heads)


def _gaps(since: int, until: int, intervals: Sequence[Interval]) -> list[tuple[int, int]]:
    ends = [since, *(interval.until for interval in intervals)]
    begins = [*(interval.since for interval in intervals), until]
    return [(end, begin) for end, begin in zip(ends, begins, strict=True) if end < begin]


def _place(event: Event) -> tuple[int, str, int]:
    return event.stamp, event.publisher, event.seq


def _those_in(ranges: Ranges, events: Sequence[Event]) -> list[Event]:
    """The events whose numbers are in the ranges, of which most publishers have one."""
    nothing = (1, 0)
    whole = {publisher: known[0] for publisher, known in ranges.items() if len(known) == 1}
    if len(whole) < len(ranges):
        return [e for e in events if any(first <= e.seq <= last for first, last in ranges.get(e.publisher, ()))]
    found = []
    for event in events:
        first, last = whole.get(event.publisher, nothing)
        if first <= event.seq <= last:
            found.append(event)
    return found
