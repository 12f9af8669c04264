"""Tests long strings against many patterns in steps, before an event is matched.

One pattern on a string of 64 KiB takes less than 0.1 s, but a thousand patterns take a thousand
times as long, and a match cannot be interrupted. So a caller that must not block asks repeatedly
before the match, until all results are known: each call tests as many patterns as an allowance of
steps pays for, at least one. The match then finds the results here.

Without this preparation, a match tests all patterns at once, and caches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gapless.filters.work import OutOfWork

T = TypeVar("T")

LONG = 1024
"""The minimum length of strings whose results are cached."""

TEXTS_MAX = 256
"""The number of strings whose results are cached; they take 16 MiB if all have the maximum length."""

STEPS = 6_000_000
"""The number of steps of one call, which take some milliseconds. A step is a character of a string, times the cost of a
pattern."""


class StringPrecomputation:
    """The results of one index's patterns for long strings."""

    __slots__ = ("_known", "_left")

    def __init__(self) -> None:
        self._known: dict[str, dict[int, bool]] = {}
        """For each string, the results by number of the pattern."""
        self._left: int | None = None
        """The remaining steps; None during a match without precomputation."""

    def match(self, question: Callable[[], T]) -> T:
        """Call `question`, which uses known results and computes the missing ones directly."""
        global _at_work
        before, _at_work = _at_work, self
        try:
            return question()
        finally:
            _at_work = before

    def look_ahead(self, question: Callable[[], object]) -> int:
        """Compute further results within an allowance of steps, or the results of one pattern. Return the number of
        steps taken, or 0 if all results are known."""
        self._left = STEPS
        try:
            self.match(question)
        except OutOfWork:
            return STEPS - self._left
        finally:
            self._left = None
            while len(self._known) > TEXTS_MAX:
                del self._known[next(iter(self._known))]
        return 0

    def ask(self, number: int, cost: int, text: str, look: Callable[[str], bool]) -> bool:
        """Return whether the string matches a pattern with this number and cost per character."""
        known = self._known.get(text)
        found = None if known is None else known.get(number)
        if found is not None:
            return found
        if self._left is None:
            return look(text)
        if self._left <= 0:
            raise OutOfWork
        self._left -= cost * len(text)
        found = look(text)
        self._known.setdefault(text, {})[number] = found
        return found


_at_work: StringPrecomputation | None = None


def ask(number: int, cost: int, text: str, look: Callable[[str], bool]) -> bool:
    """Return whether the string matches a pattern, using the results of the index in use."""
    return look(text) if _at_work is None else _at_work.ask(number, cost, text, look)
