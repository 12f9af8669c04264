"""What was admitted between final positions, by journal and publisher: the authority on what history must contain.

Every wave tells one interval (see `retention.waves`). A broker that was out does not know some; it asks others.
Intervals are remembered for longer than their events: so whoever wants what is gone is told its numbers.
"""

from collections import deque
from collections.abc import Callable, Iterable

from gapless.protocols.gapless.messages import Interval, Ranges
from gapless.protocols.parts.ranges import add_ranges

__all__ = ["Index", "merged"]

ENTRIES_MAX = 50_000
"""How many ranges a broker remembers; beyond that it forgets the oldest intervals."""


class Index:
    """The intervals that one broker knows, ascending, apart from each other."""

    def __init__(self) -> None:
        self.kept: Callable[[Interval], None] = lambda interval: None
        self.forgotten: Callable[[Interval], None] = lambda interval: None
        """`kept` hears of each interval that is new here, `forgotten` of each that is not remembered any more."""
        self._intervals: deque[Interval] = deque()
        self._entries = 0

    def __len__(self) -> int:
        return len(self._intervals)

    def note(self, interval: Interval) -> None:
        """Another one, after all others. It may come again with each wave, until there is a next one."""
        if self._intervals and interval.until <= self._intervals[-1].until:
            return
        self._intervals.append(interval)
        self.kept(interval)
        self._entries += _entries(interval)
        while self._entries > ENTRIES_MAX and len(self._intervals) > 1:
            self._forget_oldest()

    def forget_after(self, position: int) -> None:
        """What follows a position is not known here any more."""
        while self._intervals and self._intervals[-1].until > position:
            interval = self._intervals.pop()
            self._entries -= _entries(interval)
            self.forgotten(interval)

    def _forget_oldest(self) -> None:
        interval = self._intervals.popleft()
        self._entries -= _entries(interval)
        self.forgotten(interval)

    def learn(self, intervals: Iterable[Interval]) -> None:
        """What others know, where it is missing here."""
        known = {interval.until: interval for interval in self._intervals}
        for interval in intervals:
            if interval.until not in known:
                known[interval.until] = interval
                self.kept(interval)
        self._intervals = deque(known[until] for until in sorted(known))
        self._entries = sum(_entries(interval) for interval in self._intervals)

    def between(self, since: int, until: int) -> list[Interval]:
        """What is known between two positions."""
        found: list[Interval] = []
        for interval in reversed(self._intervals):
            if interval.until <= since:
                break
            if interval.since < until:
                found.append(interval)
        return found[::-1]

    @property
    def last(self) -> int:
        """The last position that is known to be final."""
        return self._intervals[-1].until if self._intervals else 0

    def round_up(self, position: int) -> int:
        """The first final position that is not earlier, as far as it is known."""
        return next((i.until for i in self._intervals if i.since < position <= i.until), position)

    def round_down(self, position: int) -> int:
        """The last final position that is not later, as far as it is known."""
        return next((i.since for i in self._intervals if i.since <= position < i.until), position)

    def chain(self, since: int, until: int = 0) -> list[Interval]:
        """The intervals between two positions (until 0: up to the last), back to the first gap between them."""
        found: list[Interval] = []
        for interval in reversed(self._intervals):
            if until and interval.until > until and not found:
                continue
            if interval.until <= since or (found and interval.until != found[-1].since):
                break
            found.append(interval)
        return found[::-1]


def merged(intervals: Iterable[Interval]) -> dict[str, Ranges]:
    """What was admitted in all of them, by journal."""
    found: dict[str, Ranges] = {}
    for interval in intervals:
        for journal, ranges in interval.admitted.items():
            add_ranges(found.setdefault(journal, {}), ranges)
    return found


def _entries(interval: Interval) -> int:
    return 1 + sum(len(ranges) for ranges in interval.admitted.values())
