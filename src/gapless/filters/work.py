"""How much work a question about filters may take, counted in steps, not in time.

A step is one thing looked at: a condition, an interval, a string of a set, a token of an automaton's pattern. Each
takes well below a microsecond, wherever it is. The caller of a question brings an allowance. Every part that answers
spends from it, and when it is used up, `OutOfWork` ends the question: the asker gives the safe answer. So a filter made
to hurt costs its allowance and no more, the same on every machine, and the answer never depends on a clock.
"""

from __future__ import annotations


class OutOfWork(Exception):  # noqa: N818 - no error: it is caught where the allowance was given
    """The allowance is used up."""


class Work:
    """An allowance of steps."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Pay for what comes next; `OutOfWork` if that is more than there is left."""
        self.left -= steps
        if self.left < 0:
            raise OutOfWork
