"""Encodes the states of one attribute as small numbers, its *codes*, the same for all segments of
an index.

An event is encoded once, one code for each attribute; after that, matching only looks up bit sets
by code.

    ABSENT, NAN, FALSE, TRUE        one state each
    OTHER_STRING                    every string that is not listed
    FIRST_NUMBER …                  buckets of numbers: bucket i from cuts[i - 1] up to, but without, cuts[i]
    FIRST_STRING …                  listed strings, one code each

Cuts are chosen among the bounds of the intervals in filters, at even ranks: frequent bounds become
cuts, and the others are distributed evenly over the buckets. Strings are listed when a filter in
the index names them, up to a bound. The code of a string that is no longer used is reused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf
from typing import Any

from gapless.events import INTEGER_MAX, INTEGER_MIN
from gapless.filters.arithmetic import number_of
from gapless.filters.number_sets import Number, NumberSet, successor

CUTS_MAX = 128
"""Maximum number of cuts of one attribute. Each costs up to two bits per conjunction; with 128, few
survivors are in doubt.
"""

STRINGS_MAX = 1024
"""Maximum number of listed strings of one attribute. Each costs a bit per conjunction."""

ABSENT, NAN, FALSE, TRUE, OTHER_STRING = range(5)
FIRST_NUMBER = 5
FIRST_STRING = FIRST_NUMBER + CUTS_MAX + 1

Run = tuple[int, int, tuple[int, ...]]
"""Codes that a set of numbers overlaps: the first, the one after the last, and those that it covers
only partly.
"""


class Alphabet:
    """The codes of one attribute."""

    __slots__ = ("_came", "_free", "_named", "_when_cut", "cuts", "intervals", "place", "size", "strings")

    def __init__(self, place: int = 0) -> None:
        """Create an empty alphabet; the place is the index of its attribute."""
        self.place = place
        self.cuts: list[Number] = []
        self.strings: dict[str, int] = {}
        self.size = FIRST_STRING
        self.intervals = 0
        """Numbers of sets of numbers: current ones, those added since the cuts were chosen, and
        those at that time.
        """
        self._came = 0
        self._when_cut = 0
        self._named: dict[str, int] = {}
        self._free: list[int] = []

    def code(self, value: Any) -> int:
        """Return the code of the state in which the attribute has this value."""
        kind = type(value)
        if kind is str:
            return self.strings.get(value, OTHER_STRING)
        if kind is int or kind is float:
            return FIRST_NUMBER + bisect_right(self.cuts, number_of(value)) if value == value else NAN
        if kind is bool:
            return TRUE if value else FALSE
        return ABSENT

    def codes(self, values: Iterable[Any]) -> list[int]:
        """Return the codes of many values."""
        strings, cuts = self.strings, self.cuts
        result: list[int] = []
        for value in values:
            kind = type(value)
            if kind is str:
                result.append(strings.get(value, OTHER_STRING))
            elif (kind is int and INTEGER_MIN <= value <= INTEGER_MAX) or (kind is float and value == value):
                result.append(FIRST_NUMBER + bisect_right(cuts, value))
            else:
                result.append(self.code(value))
        return result

    def name(self, values: Iterable[str]) -> list[int]:
        """List these strings of a filter if there is room; return the codes with a new meaning."""
        fresh: list[int] = []
        for value in sorted(values):
            self._named[value] = self._named.get(value, 0) + 1
            if value not in self.strings and len(self.strings) < STRINGS_MAX:
                if not self._free:
                    self._free.append(self.size)
                    self.size += 1
                code = self._free.pop()
                self.strings[value] = code
                fresh.append(code)
        return fresh

    def forget(self, values: Iterable[str]) -> None:
        """Release the strings of a removed filter."""
        for value in sorted(values):
            self._named[value] -= 1
            if not self._named[value]:
                del self._named[value]
                code = self.strings.pop(value, None)
                if code is not None:
                    self._free.append(code)

    def come(self) -> None:
        """Count an added set of numbers."""
        self.intervals += 1
        self._came += 1

    def go(self) -> None:
        """Count a removed set of numbers."""
        self.intervals -= 1

    @property
    def growth(self) -> float:
        """Return how many sets of numbers were added per set at the time when cuts were chosen."""
        return self._came / max(8, self._when_cut)

    def note_choice(self) -> None:
        """Record that cuts are chosen now."""
        self._came, self._when_cut = 0, self.intervals

    @property
    def after_numbers(self) -> int:
        """Return the code after the last bucket."""
        return FIRST_NUMBER + len(self.cuts) + 1


def choose_cuts(number_sets: Iterable[NumberSet]) -> list[Number]:
    """Return suitable cuts for these sets."""
    points = [point for numbers in number_sets for point in _bounds(numbers)]
    distinct = sorted(set(points))
    if len(distinct) > CUTS_MAX:
        points.sort()
        ranks = ((2 * i + 1) * len(points) // (2 * CUTS_MAX) for i in range(CUTS_MAX))
        distinct = sorted({points[rank] for rank in ranks})
    return distinct


def runs(numbers: NumberSet, cuts: list[Number]) -> list[Run]:
    """Return the disjoint, ascending runs of codes that the set overlaps."""
    found: list[Run] = []
    for low, high in numbers:
        end = None if high == inf else successor(high)
        first = bisect_right(cuts, low)
        last = len(cuts) if end is None else bisect_left(cuts, end)
        starts_inside = low != -inf and (first == 0 or cuts[first - 1] != low)
        ends_inside = end is not None and (last == len(cuts) or cuts[last] != end)
        doubts = ((FIRST_NUMBER + first,) if starts_inside else ()) + ((FIRST_NUMBER + last,) if ends_inside else ())
        run = (FIRST_NUMBER + first, FIRST_NUMBER + last + 1, doubts)
        if found and found[-1][1] > run[0]:
            before = found.pop()
            run = (before[0], run[1], before[2] + doubts)
        found.append(run)
    return found


def _bounds(numbers: NumberSet) -> list[Number]:
    """Return where membership changes: the first number of each interval, and the first after it."""
    bounds: list[Number] = []
    for low, high in numbers:
        if low != -inf:
            bounds.append(low)
        end = successor(high)
        if end is not None:
            bounds.append(end)
    return bounds
