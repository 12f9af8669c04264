"""Loss detection, and the missing events: the paper's `LostBuffer` (section 4.2).

For each source and pattern with subscribers here, the broker expects the next number; a greater one means that those in
between are lost. The first event sets the expectation: earlier losses are not detected, nor are losses without a later
event. A missing event leaves the buffer when it arrives, when the time limit is over, or when the buffer is full and it
is the oldest.
"""

from collections.abc import Iterable

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.epidemic.messages import Numbers, Stamped

__all__ = ["STREAMS_MAX", "Losses"]

STREAMS_MAX = 100_000
"""The number of pairs of source and pattern with an expected number; beyond it, the oldest pair is forgotten."""


class Losses:
    """The numbers that a broker expects, and the events it lacks."""

    def __init__(self, most: int, give_up_us: int) -> None:
        self.detected = 0
        self.recovered = 0
        self.given_up = 0
        self._most = most
        self._give_up_us = give_up_us
        self._expected: dict[tuple[str, str], int] = {}
        self._since: dict[tuple[str, str, int], int] = {}
        """The time at which each event was found missing, by source, pattern and number; oldest first."""
        self._numbers: dict[tuple[str, str], dict[int, None]] = {}
        """The numbers of missing events, by source and pattern."""
        self._by_pattern: dict[str, dict[str, None]] = {}
        """For each pattern with missing events, their sources."""
        self._by_source: dict[str, dict[str, None]] = {}
        """For each source with missing events, their patterns."""

    def __len__(self) -> int:
        return len(self._since)

    def note(self, stamped: Stamped, patterns: Iterable[str], now: int) -> None:
        """Record an event that matches these patterns of clients of this broker."""
        source = stamped.source
        for pattern in patterns:
            number = stamped.numbers.get(pattern)
            if number is None:
                continue  # the source did not know the pattern yet
            expected = self._expected.get((source, pattern))
            if expected is None:
                self._expect(source, pattern, number + 1)
            elif number >= expected:
                self._expected[source, pattern] = number + 1
                if number > expected:
                    self._miss(source, pattern, range(expected, number), now)
        for pattern, number in stamped.numbers.items():
            if (source, pattern, number) in self._since:
                self._remove(source, pattern, number)
                self.recovered += 1

    def forget(self, pattern: str) -> None:
        """Forget a pattern that clients no longer want."""
        for source in list(self._by_pattern.get(pattern, ())):
            for number in list(self._numbers[source, pattern]):
                self._remove(source, pattern, number)
        for stream in [stream for stream in self._expected if stream[1] == pattern]:
            del self._expected[stream]

    def give_up(self, now: int) -> None:
        """Give up events that have been missing for too long."""
        while self._since:
            oldest, since = next(iter(self._since.items()))
            if since + self._give_up_us > now:
                return
            self._remove(*oldest)
            self.given_up += 1

    def patterns(self) -> Iterable[str]:
        """Return the patterns with missing events."""
        return self._by_pattern

    def sources(self) -> Iterable[str]:
        """Return the sources with missing events."""
        return self._by_source

    def of_pattern(self, pattern: str) -> Numbers:
        """Return the missing numbers of the pattern, by source."""
        return {source: tuple(self._numbers[source, pattern]) for source in self._by_pattern[pattern]}

    def of_source(self, source: str) -> Numbers:
        """Return the missing numbers of the source, by pattern."""
        return {pattern: tuple(self._numbers[source, pattern]) for pattern in self._by_source[source]}

    def _expect(self, source: str, pattern: str, number: int) -> None:
        self._expected[source, pattern] = number
        forget_oldest(self._expected, STREAMS_MAX)

    def _miss(self, source: str, pattern: str, numbers: range, now: int) -> None:
        self.detected += len(numbers)
        self.given_up += len(numbers[: -self._most])
        for number in numbers[-self._most :]:
            self._since[source, pattern, number] = now
            self._numbers.setdefault((source, pattern), {})[number] = None
        self._by_pattern.setdefault(pattern, {})[source] = None
        self._by_source.setdefault(source, {})[pattern] = None
        while len(self._since) > self._most:
            self._remove(*next(iter(self._since)))
            self.given_up += 1

    def _remove(self, source: str, pattern: str, number: int) -> None:
        del self._since[source, pattern, number]
        numbers = self._numbers[source, pattern]
        del numbers[number]
        if not numbers:
            del self._numbers[source, pattern]
            _discard(self._by_pattern, pattern, source)
            _discard(self._by_source, source, pattern)


def _discard(groups: dict[str, dict[str, None]], key: str, entry: str) -> None:
    group = groups[key]
    del group[entry]
    if not group:
        del groups[key]
