"""Long strings against many patterns, looked at in pieces before an event is matched.

One pattern on a string of 64 KiB takes less than 0.1 s, but a thousand patterns take a thousand times as long, and a
match cannot be interrupted. So whoever has time in pieces only asks beforehand, again and again, until all that a match
would look for is known: each time as many patterns are looked for as an allowance of steps pays for, at least one. The
match that follows finds the answers here.

Whoever matches an event that nobody has foreseen looks for everything at once, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from gapless.filters.work import OutOfWork

T = TypeVar("T")

LONG = 1024
"""Characters of a string from which on a pattern is worth being remembered."""

TEXTS_MAX = 256
"""Strings of which answers are kept: 16 MiB, if all are as long as they can be."""

STEPS = 6_000_000
"""An allowance: some milliseconds. A step is a character of a string, times what a pattern costs there."""


class StringPrecomputation:
    """What one index knows of long strings."""

    __slots__ = ("_known", "_left")

    def __init__(self) -> None:
        self._known: dict[str, dict[int, bool]] = {}
        """By string and number of the pattern."""
        self._left: int | None = None
        """Steps that may still be taken; None if somebody matches, and does not foresee."""

    def match(self, question: Callable[[], T]) -> T:
        """The answer, by what is known and what is looked for now."""
        global _at_work
        before, _at_work = _at_work, self
        try:
            return question()
        finally:
            _at_work = before

    def look_ahead(self, question: Callable[[], object]) -> int:
        """Take an allowance of steps, or as many as one pattern needs. How many were taken; 0 if all is known now."""
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
        """Whether the pattern of this number, which costs so much for each character, matches the string."""
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
    """The same, of the index that is at work."""
    return look(text) if _at_work is None else _at_work.ask(number, cost, text, look)
