"""Encodes the states of one attribute as rows of pages (see `pages`).

    ABSENT, NAN, FALSE, TRUE    one row each, as in an alphabet
    then                        strings: buckets of those that are not listed, each followed by the listed ones in it
    then                        buckets of numbers: bucket i from cuts[i - 1] up to, but without, cuts[i]

Strings and cuts never change: conjunctions that name other strings stay in segments. Cuts of numbers
lie within EXACT, where integers are floats: there a number is on the same side of a cut as the
nearest float, so that events are compared as floats.

Strings are compared by their *rank*: how many of the bounds in a sample of the filters they reach.
Ranks are ordered as the strings are, but several strings share one, so a conjunction whose range of
ranks contains an event's is evaluated.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf, isinf
from typing import Any

import numpy as np
import numpy.typing as npt

from gapless.filters.alphabet import (
    ABSENT,
    FALSE,
    NAN,
    TRUE,
    choose_cuts,
    ends,
    has_bounds,
    number_intervals,
    string_intervals,
)
from gapless.filters.arithmetic import number_of
from gapless.filters.constraints import FALSE_ONLY, TRUE_ONLY, Constraint
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER, Number
from gapless.filters.string_sets import StringSet

EXACT = 2**53 - 1
"""The largest integer such that all integers up to it are exact floats, and no larger integer is rounded to one of
them."""

FIRST_STRING = TRUE + 1

Rows = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Run = tuple[int, int]
"""A range of rows: the first row, and the end (exclusive)."""


class PageColumn:
    """The rows of one attribute in pages."""

    __slots__ = (
        "_buckets", "_cuts", "_cuts_array", "_first_number", "_listed", "_others", "_ranked", "_strings", "base", "end",
        "name",
    )  # fmt: skip

    def __init__(self, name: str, base: int, strings: Iterable[str], constraints: Iterable[Constraint]) -> None:
        """Create the rows for filters that name these strings and have these constraints. The first row is `base`."""
        self.name = name
        self.base = base
        bounds: list[str] = []
        points: list[Number] = []
        for constraint in constraints:
            if has_bounds(constraint.strings):
                bounds += ends(string_intervals(constraint.strings))
            if len(constraint.numbers) == 1:
                points += ends(number_intervals(constraint.numbers))
        self._ranked = sorted(set(bounds))
        """The bounds at which ranks begin."""
        cuts = choose_cuts(bounds)
        self._listed = sorted(set(strings))
        order = sorted([(cut, False) for cut in cuts] + [(value, True) for value in self._listed])
        self._buckets = [base + FIRST_STRING]
        """The row of each bucket of unlisted strings."""
        self._strings: dict[str, int] = {}
        for place, (value, is_listed) in enumerate(order, base + FIRST_STRING + 1):
            if is_listed:
                self._strings[value] = place
            else:
                self._buckets.append(place)
        self._others = [self._buckets[bisect_right(cuts, value)] for value in ["", *self._ranked]]
        """For each rank, the row of its bucket."""
        self._first_number = base + FIRST_STRING + 1 + len(order)
        self._cuts = [float(cut) for cut in choose_cuts(points) if -EXACT <= cut <= EXACT]
        self._cuts_array = np.array(self._cuts, dtype=np.float64)
        self.end = self._first_number + len(self._cuts) + 1

    def row(self, value: Any) -> int:
        """Return the row for an attribute's value."""
        kind = type(value)
        if kind is int or kind is float:
            return self._first_number + bisect_right(self._cuts, value) if value == value else self.base + NAN
        if kind is str:
            row = self._strings.get(value)
            return self._others[bisect_right(self._ranked, value)] if row is None else row
        return self.base + ((TRUE if value else FALSE) if kind is bool else ABSENT)

    @property
    def reader(self) -> tuple[dict[str, int], list[str], list[int], list[float], int]:
        """Return the data for fast lookups: the rows of listed strings, the bounds of ranks, the rows of other strings
        by rank, the cuts, and the row before the first cut.
        """
        return self._strings, self._ranked, self._others, self._cuts, self._first_number

    def number(self, value: Any) -> float:
        """Return the number that conjunctions compare with their intervals: the value of a number, or the rank of a
        string.
        """
        return bisect_right(self._ranked, value) if type(value) is str else as_float(value)

    def read(self, values: Sequence[Any], rows: Rows, numbers: Floats) -> None:
        """Store the rows of these values, and the numbers that conjunctions compare with their intervals."""
        kinds = set(map(type, values))
        if kinds == {str}:
            listed, others, ranked = self._strings, self._others, self._ranked
            ranks = [bisect_right(ranked, value) for value in values] if ranked else [0] * len(values)
            rows[:] = [listed.get(value, others[rank]) for value, rank in zip(values, ranks, strict=True)]
            numbers[:] = ranks
        elif kinds == {int} and note(values, numbers):
            rows[:] = self._cuts_array.searchsorted(numbers, "right") + self._first_number
        else:
            rows[:] = list(map(self.row, values))
            numbers[:] = list(map(self.number, values))

    def lists(self, constraint: Constraint) -> bool:
        """Return whether the rows represent the constraint completely, except for one interval of numbers within EXACT
        or a range of strings.
        """
        numbers, strings = constraint.numbers, constraint.strings
        if strings.patterned:
            return has_bounds(strings) and not (numbers or constraint.absent or constraint.booleans or constraint.nan)
        if not strings.values <= self._strings.keys():
            return False
        if numbers in (EVERY_NUMBER, NO_NUMBER):
            return True
        return len(numbers) == 1 and is_plain(constraint) and not strings.values

    def touched(self, constraint: Constraint) -> list[Run]:
        """Return the ascending runs of rows in which the constraint may be satisfied."""
        base, strings, numbers = self.base, constraint.strings, constraint.numbers
        states = (
            (ABSENT, constraint.absent),
            (NAN, constraint.nan),
            (FALSE, constraint.booleans & FALSE_ONLY),
            (TRUE, constraint.booleans & TRUE_ONLY),
        )
        found = [(base + state, base + state + 1) for state, allowed in states if allowed]
        if strings.patterned:
            found += self._range(strings)
        else:
            named = sorted(map(self._strings.__getitem__, strings.values))
            if strings.complement:
                borders = [base + FIRST_STRING - 1, *named, self._first_number]
                found += [(low + 1, high) for low, high in pairwise(borders) if low + 1 < high]
            else:
                found += [(row, row + 1) for row in named]
        if numbers:
            first, last = self._bucket(numbers[0][0]), self._bucket(numbers[-1][1])
            found.append((first, last + 1))
        return found

    def _range(self, strings: StringSet) -> list[Run]:
        """Return the rows of the strings between the bounds of a set; other strings may share them."""
        low, high = self.ranks(strings)
        if low > high:
            return []
        last = self._buckets.index(self._others[-1 if high == inf else int(high)])
        end = self._buckets[last + 1] if last + 1 < len(self._buckets) else self._first_number
        return [(self._others[int(low)], end)]

    def ranks(self, strings: StringSet) -> tuple[float, float]:
        """Return the lowest and the highest rank of the strings between the bounds of a set."""
        low, high = strings.bounds
        return bisect_right(self._ranked, low), inf if high is None else bisect_left(self._ranked, high)

    def cell(self, run: Run, cells: int) -> tuple[float, int, int]:
        """Return the cell for conjunctions with this run of rows. Conjunctions in one cell have similar rows.

        The first component is the fraction of events in the run, if strings are equally frequent,
        in their buckets, too, and numbers evenly distributed between the first cut and the last. Runs
        of numbers with an open end differ only by length.
        """
        first, end = run
        if first < self._first_number:
            if len(self._buckets) == 1 or first not in self._buckets:
                return (end - first) / max(1, len(self._strings)), first, end
            rows = self._first_number - self.base
            share = (end - first) / rows
            return share + 1 / cells, (first - self.base) * cells // rows, int(share * cells)
        low, high = self._position(first - 1), self._position(end - 1)
        if first == self._first_number:
            return high + 0.25 / cells, -1, int(high * cells * 2)
        if end == self.end:
            return 1 - low + 0.25 / cells, -2, int((1 - low) * cells * 2)
        return high - low + 1 / cells, int(low * cells), int((high - low) * cells)

    def _position(self, row: int) -> float:
        """Return the position of the cut after this row, as a fraction of the range from the first cut to the last."""
        cuts = self._cuts
        if not cuts:
            return 0.0
        place = min(max(row - self._first_number, 0), len(cuts) - 1)
        return (cuts[place] - cuts[0]) / (cuts[-1] - cuts[0] or 1.0)

    def _bucket(self, value: Number) -> int:
        return self._first_number + bisect_right(self._cuts, value)


def is_plain(constraint: Constraint) -> bool:
    """Return whether the constraint allows only numbers within EXACT."""
    if constraint.absent or constraint.booleans or constraint.nan or constraint.strings.complement:
        return False
    return all(isinf(bound) or abs(bound) <= EXACT for interval in constraint.numbers for bound in interval)


def as_float(value: Any) -> float:
    """Return the nearest float of a number, or 0 for other values, which are not compared."""
    kind = type(value)
    if kind is int:
        return value if -EXACT <= value <= EXACT else float(number_of(value))
    return value if kind is float else 0.0


def note(values: Sequence[float], numbers: Floats) -> bool:
    """Store the values as floats. Return False if one is too large."""
    try:
        numbers[:] = values
    except OverflowError:
        return False
    return True
