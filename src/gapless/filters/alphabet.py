"""Numbers the states of one attribute. All segments of an index use these *codes*.

An event is encoded once, one code for each attribute; after that, matching only looks up bit sets
by code.

    ABSENT, NAN, FALSE, TRUE        one state each
    FIRST_NUMBER …                  buckets of numbers: bucket i from cuts[i - 1] up to, but without, cuts[i]
    OTHER_STRING …                  buckets of strings that are not listed, in the same way
    FIRST_STRING …                  listed strings, one code each

Cuts are chosen among the bounds of the intervals in filters, at even ranks: frequent bounds become
cuts, and the others are distributed evenly over the buckets. The bounds of strings are those of
`<`, `>` and BETWEEN, and the beginnings of LIKE patterns. Strings are listed when a filter in the
index names them, up to a bound. The code of a string that is no longer used is reused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from math import inf
from typing import Any, NamedTuple, TypeAlias, TypeVar

from gapless.events import INTEGER_MAX, INTEGER_MIN
from gapless.filters.arithmetic import number_of
from gapless.filters.number_sets import Number, NumberSet, successor
from gapless.filters.string_sets import StringSet

CUTS_MAX = 128
"""Maximum number of cuts of one attribute. Each costs up to two bits per conjunction. With 128, few conjunctions remain
undecided."""

STRINGS_MAX = 1024
"""Maximum number of listed strings of one attribute. Each costs a bit per conjunction."""

ABSENT, NAN, FALSE, TRUE, FIRST_NUMBER = range(5)
OTHER_STRING = FIRST_NUMBER + CUTS_MAX + 1
FIRST_STRING = OTHER_STRING + CUTS_MAX + 1

Run: TypeAlias = tuple[int, int, tuple[int, ...]]
"""A range of buckets that a set overlaps: the first bucket, the one after the last, and the buckets covered only
partly."""

V = TypeVar("V", int, float, str, Number)
Interval: TypeAlias = tuple[V | None, V | None]
"""A range of values from the first up to, but without, the second. None stands for an open end."""


class Cuts(NamedTuple):
    """The boundaries between the buckets of one attribute, in ascending order."""

    numbers: list[Number]
    strings: list[str]


class Alphabet:
    """The numbering of one attribute's states."""

    __slots__ = (
        "_additions",
        "_free",
        "_named",
        "_when_cut",
        "cuts",
        "intervals",
        "place",
        "size",
        "string_cuts",
        "strings",
    )

    def __init__(self, place: int = 0) -> None:
        """Create an empty alphabet. `place` is the index of its attribute."""
        self.place = place
        self.cuts: list[Number] = []
        self.string_cuts: list[str] = []
        self.strings: dict[str, int] = {}
        self.size = FIRST_STRING
        self.intervals = 0
        """The numbers of sets with bounds: the current ones, those added since the cuts were chosen, and those at that
        time."""
        self._additions = 0
        self._when_cut = 0
        self._named: dict[str, int] = {}
        self._free: list[int] = []

    def code(self, value: Any) -> int:
        """Return the code of an attribute's value."""
        kind = type(value)
        if kind is str:
            code = self.strings.get(value)
            return self.bucket(value) if code is None else code
        if kind is int or kind is float:
            return FIRST_NUMBER + bisect_right(self.cuts, number_of(value)) if value == value else NAN
        if kind is bool:
            return TRUE if value else FALSE
        return ABSENT

    def codes(self, values: Iterable[Any]) -> list[int]:
        """Return the codes of several values."""
        strings, cuts, string_cuts = self.strings, self.cuts, self.string_cuts
        result: list[int] = []
        for value in values:
            kind = type(value)
            if kind is str:
                code = strings.get(value)
                result.append(OTHER_STRING + bisect_right(string_cuts, value) if code is None else code)
            elif (kind is int and INTEGER_MIN <= value <= INTEGER_MAX) or (kind is float and value == value):
                result.append(FIRST_NUMBER + bisect_right(cuts, value))
            else:
                result.append(self.code(value))
        return result

    def bucket(self, value: str) -> int:
        """Return the code of the bucket of a string that is not listed."""
        return OTHER_STRING + bisect_right(self.string_cuts, value)

    def name(self, values: Iterable[str]) -> list[str]:
        """Add the strings of a filter to the list as far as there is room. Return those that were not listed before."""
        fresh: list[str] = []
        for value in sorted(values):
            self._named[value] = self._named.get(value, 0) + 1
            if value not in self.strings and len(self.strings) < STRINGS_MAX:
                if not self._free:
                    self._free.append(self.size)
                    self.size += 1
                self.strings[value] = self._free.pop()
                fresh.append(value)
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

    def record_addition(self) -> None:
        """Count an added set that has bounds."""
        self.intervals += 1
        self._additions += 1

    def record_removal(self) -> None:
        """Count a removed set that has bounds."""
        self.intervals -= 1

    @property
    def growth(self) -> float:
        """Return the number of sets with bounds added since the cuts were chosen, relative to the number at
        that time.
        """
        return self._additions / max(8, self._when_cut)

    def note_choice(self) -> None:
        """Record that the cuts are chosen now."""
        self._additions, self._when_cut = 0, self.intervals


def choose_cuts(points: list[V]) -> list[V]:
    """Return cuts at even ranks of the sorted bounds."""
    distinct = sorted(set(points))
    if len(distinct) > CUTS_MAX:
        points.sort()
        ranks = ((2 * i + 1) * len(points) // (2 * CUTS_MAX) for i in range(CUTS_MAX))
        distinct = sorted({points[rank] for rank in ranks})
    return distinct


def runs(intervals: Iterable[Interval[V]], cuts: list[V], first_code: int) -> list[Run]:
    """Return the disjoint, ascending runs of buckets that the given intervals overlap. The first bucket has the code
    `first_code`.
    """
    found: list[Run] = []
    for low, end in intervals:
        first = 0 if low is None else bisect_right(cuts, low)
        last = len(cuts) if end is None else bisect_left(cuts, end)
        starts_inside = low is not None and (first == 0 or cuts[first - 1] != low)
        ends_inside = end is not None and (last == len(cuts) or cuts[last] != end)
        doubts = ((first_code + first,) if starts_inside else ()) + ((first_code + last,) if ends_inside else ())
        run = (first_code + first, first_code + last + 1, doubts)
        if found and found[-1][1] > run[0]:
            before = found.pop()
            run = (before[0], run[1], before[2] + doubts)
        found.append(run)
    return found


def number_intervals(numbers: NumberSet) -> list[Interval[Number]]:
    """Return a set of numbers as intervals with exclusive ends."""
    return [(None if low == -inf else low, successor(high)) for low, high in numbers]


def string_intervals(strings: StringSet) -> list[Interval[str]]:
    """Return intervals that contain all strings of an infinite set."""
    low, high = strings.bounds
    return [(low or None, high)] if high is None or low < high else []


def has_bounds(strings: StringSet) -> bool:
    """Return whether the set has a lower or an upper bound."""
    return strings.complement and strings.patterned and strings.bounds != ("", None)


def ends(intervals: Iterable[Interval[V]]) -> list[V]:
    """Return the values at which the intervals begin and end."""
    return [end for interval in intervals for end in interval if end is not None]
