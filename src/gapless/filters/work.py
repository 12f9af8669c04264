"""Bounds the work that a question about filters takes, counted in steps instead of time.

A step examines one thing: a condition, an interval, a string of a set, a token of an automaton's
pattern. Each takes well below a microsecond. The caller supplies an allowance. Every function
spends from it, and when it is used up, `OutOfWork` ends the question, and the caller uses the safe
answer. So a malicious filter costs at most its allowance, on every machine, and the answer never
depends on a clock.
"""

from __future__ import annotations


class OutOfWork(Exception):  # noqa: N818 - no error: it is caught where the allowance was given
    """Raised when an allowance is used up."""


class Work:
    """An allowance of steps."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Subtract steps from the allowance. Raise `OutOfWork` if it does not have that many left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfWork
