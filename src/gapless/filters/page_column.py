"""Encodes the states of one attribute as rows of pages (see `pages`).

    ABSENT, NAN, FALSE, TRUE, OTHER_STRING    one row each, as in an alphabet
    then                                      one row for each listed string
    then                                      buckets of numbers: bucket i from cuts[i - 1] up to, but without, cuts[i]

Strings and cuts never change: conjunctions with other strings stay in segments. Cuts lie within
EXACT, where integers are floats: there a number is on the same side of a cut as the nearest float,
so that events are compared as floats.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isinf
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.filters.alphabet import ABSENT, FALSE, NAN, OTHER_STRING, TRUE, choose_cuts
from gapless.filters.arithmetic import number_of
from gapless.filters.constraints import FALSE_ONLY, TRUE_ONLY, Constraint
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER, Number, NumberSet

EXACT = 2**53 - 1
"""Integers up to this one are floats, and no larger integer is rounded to one of them."""

FIRST_STRING = OTHER_STRING + 1

Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Run = tuple[int, int]
"""A first row, and the one after the last."""


class PageColumn:
    """The rows of one attribute."""

    __slots__ = ("_cuts", "_cuts_array", "_first_number", "_strings", "base", "end", "name")

    def __init__(self, name: str, base: int, strings: Iterable[str], numbers: Iterable[NumberSet]) -> None:
        """Create the rows for filters with these strings and numbers; the first row is `base`."""
        self.name = name
        self.base = base
        listed = sorted(set(strings))
        self._strings = {value: base + FIRST_STRING + place for place, value in enumerate(listed)}
        self._first_number = base + FIRST_STRING + len(listed)
        self._cuts = [float(cut) for cut in choose_cuts(numbers) if -EXACT <= cut <= EXACT]
        self._cuts_array = np.array(self._cuts, dtype=np.float64)
        self.end = self._first_number + len(self._cuts) + 1

    def row(self, value: Any) -> int:
        """Return the row of the state in which the attribute has this value."""
        kind = type(value)
        if kind is int or kind is float:
            return self._first_number + bisect_right(self._cuts, value) if value == value else self.base + NAN
        if kind is str:
            return self._strings.get(value, self.base + OTHER_STRING)
        return self.base + ((TRUE if value else FALSE) if kind is bool else ABSENT)

    @property
    def reader(self) -> tuple[dict[str, int], int, list[float], int]:
        """Return the data for fast lookups: rows of strings, the row of others, cuts, and the row
        before the first.
        """
        return self._strings, self.base + OTHER_STRING, self._cuts, self._first_number

    def read(self, values: Sequence[Any], rows: Rows, numbers: Floats) -> None:
        """Store the rows of these values, and the values themselves if they are numbers."""
        kinds = set(map(type, values))
        if kinds == {str}:
            listed, other = self._strings, self.base + OTHER_STRING
            rows[:] = [listed.get(value, other) for value in values]
        elif kinds == {int} and note(values, numbers):
            rows[:] = self._cuts_array.searchsorted(numbers, "right") + self._first_number
        else:
            rows[:] = list(map(self.row, values))
            numbers[:] = list(map(as_float, values))

    def lists(self, constraint: Constraint) -> bool:
        """Return whether rows represent it completely, except for one interval of numbers within EXACT."""
        numbers, strings = constraint.numbers, constraint.strings
        if strings.patterned or not strings.values <= self._strings.keys():
            return False
        if numbers in (EVERY_NUMBER, NO_NUMBER):
            return True
        return len(numbers) == 1 and is_plain(constraint) and not strings.values

    def touched(self, constraint: Constraint) -> list[Run]:
        """Return the ascending runs of rows in which it may be satisfied."""
        base, strings, numbers = self.base, constraint.strings, constraint.numbers
        states = (
            (ABSENT, constraint.absent),
            (NAN, constraint.nan),
            (FALSE, constraint.booleans & FALSE_ONLY),
            (TRUE, constraint.booleans & TRUE_ONLY),
            (OTHER_STRING, strings.complement),
        )
        found = [(base + state, base + state + 1) for state, allowed in states if allowed]
        named = sorted(map(self._strings.__getitem__, strings.values))
        if strings.complement:
            ends = [base + OTHER_STRING, *named, self._first_number]
            found += [(low + 1, high) for low, high in pairwise(ends)]
        else:
            found += [(row, row + 1) for row in named]
        if numbers:
            first, last = self._bucket(numbers[0][0]), self._bucket(numbers[-1][1])
            found.append((first, last + 1))
        return found

    def cell(self, run: Run, cells: int) -> tuple[float, int, int]:
        """Return the cell for conjunctions with this run: those in the same cell have about the
        same rows.

        The first component is the fraction of events in the run, if strings are equally frequent
        and numbers evenly distributed between the first cut and the last. Runs of numbers with an
        open end differ only by length.
        """
        first, end = run
        if first < self._first_number:
            return (end - first) / max(1, len(self._strings)), first, end
        low, high = self._position(first - 1), self._position(end - 1)
        if first == self._first_number:
            return high + 0.25 / cells, -1, int(high * cells * 2)
        if end == self.end:
            return 1 - low + 0.25 / cells, -2, int((1 - low) * cells * 2)
        return high - low + 1 / cells, int(low * cells), int((high - low) * cells)

    def _position(self, row: int) -> float:
        """Return the relative position of the cut after this row, between the first (0) and the last (1)."""
        cuts = self._cuts
        if not cuts:
            return 0.0
        place = min(max(row - self._first_number, 0), len(cuts) - 1)
        return (cuts[place] - cuts[0]) / (cuts[-1] - cuts[0] or 1.0)

    def _bucket(self, value: Number) -> int:
        return self._first_number + bisect_right(self._cuts, value)


def is_plain(constraint: Constraint) -> bool:
    """Return whether it consists of numbers within EXACT."""
    if constraint.absent or constraint.booleans or constraint.nan or constraint.strings.complement:
        return False
    return all(isinf(bound) or abs(bound) <= EXACT for interval in constraint.numbers for bound in interval)


def as_float(value: Any) -> float:
    """Return the nearest float of a number; 0 for other values, which are not compared."""
    kind = type(value)
    if kind is int:
        return value if -EXACT <= value <= EXACT else float(number_of(value))
    return value if kind is float else 0.0


def note(values: Sequence[float], numbers: Floats) -> bool:
    """Store these values as floats; return False if one is too large."""
    try:
        numbers[:] = values
    except OverflowError:
        return False
    return True
