"""Identifiers: the source gives an event a number for each pattern that it matches (paper, section 4.2).

A subscriber of one pattern receives the numbers 7, 8, 10 of a source and knows that it lacks 9, whatever other patterns
those events matched. The numbers of a pattern grow by one with each of its events. They begin with the count of all
events of the source rather than with 1, and no number of a pattern can be greater than that. So a forgotten counter
(there are at most `COUNTERS_MAX`) restarts above all numbers it had used, and identifiers are never reused.
"""

from collections.abc import Iterable

from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["COUNTERS_MAX", "Numbering"]

COUNTERS_MAX = 10_000
"""The number of patterns for which a source keeps a counter; the least recently used is forgotten."""


class Numbering:
    """The counters of one source."""

    def __init__(self) -> None:
        self._published = 0
        self._last: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._last)

    def number(self, patterns: Iterable[str]) -> dict[str, int]:
        """Return the numbers of the next event, which matches these patterns."""
        self._published += 1
        numbers = {}
        for pattern in patterns:
            last = self._last.pop(pattern, None)
            numbers[pattern] = self._last[pattern] = self._published if last is None else last + 1
        forget_oldest(self._last, max(COUNTERS_MAX, len(numbers)))
        return numbers
