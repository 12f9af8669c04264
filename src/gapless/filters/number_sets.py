"""Sets of numbers, exact for all numbers that events can contain.

A number attribute is a 64-bit integer or a float other than NaN. These are finitely many values with a total order (an
integer and a float of the same value are one), so each has a successor and a predecessor, and every open bound can be
written as a closed one: `x > 10` is the interval from 10.000000000000002 to infinity. A set is then a sorted tuple of
closed intervals that neither overlap nor touch. That form is unique, which makes inclusion and emptiness exact even
where integers are finer than floats, beyond 2**53: no value is between 2**53 and 2**53 + 1.
"""

from __future__ import annotations

from bisect import bisect_left
from math import floor, inf, nextafter

from gapless.events import INTEGER_MAX, INTEGER_MIN

Number = int | float
Interval = tuple[Number, Number]
NumberSet = tuple[Interval, ...]

NO_NUMBER: NumberSet = ()
EVERY_NUMBER: NumberSet = ((-inf, inf),)

_FLOATS_FINER = 2**52
"""The magnitude below which there is always a float between two adjacent integers."""


def successor(value: Number) -> Number | None:
    """Return the least value above the given one, or None above infinity."""
    if value == inf:
        return None
    if -_FLOATS_FINER < value < _FLOATS_FINER:
        return nextafter(value, inf)
    above = float(value)
    if above <= value:
        above = nextafter(above, inf)
    if value < INTEGER_MIN:
        return above
    integer = floor(value) + 1
    return integer if integer <= INTEGER_MAX and integer < above else above


def predecessor(value: Number) -> Number | None:
    """Return the greatest value below the given one, or None below minus infinity.

    It mirrors `successor`: the only integer without a negative, -2**63, is a float as well.
    """
    above = successor(-value)
    return None if above is None else -above


def compared(symbol: str, constant: Number) -> NumberSet:
    """Return the set of numbers x for which `x symbol constant` is true."""
    if symbol == "=":
        return ((constant, constant),)
    if symbol == "<>":
        return complement(((constant, constant),))
    if symbol == ">=":
        return ((constant, inf),)
    if symbol == "<=":
        return ((-inf, constant),)
    if symbol == ">":
        low = successor(constant)
        return NO_NUMBER if low is None else ((low, inf),)
    assert symbol == "<"
    high = predecessor(constant)
    return NO_NUMBER if high is None else ((-inf, high),)


def of_values(values: frozenset[Number]) -> NumberSet:
    """Return the set of exactly these numbers."""
    return union(tuple((value, value) for value in sorted(values)), NO_NUMBER)


def complement(numbers: NumberSet) -> NumberSet:
    gaps: list[Interval] = []
    low: Number | None = -inf
    for start, end in numbers:
        assert low is not None
        if start > low:
            before = predecessor(start)
            assert before is not None
            gaps.append((low, before))
        low = successor(end)
    if low is not None:
        gaps.append((low, inf))
    return tuple(gaps)


def intersection(a: NumberSet, b: NumberSet) -> NumberSet:
    if a == EVERY_NUMBER:
        return b
    if b == EVERY_NUMBER:
        return a
    common: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            common.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def union(a: NumberSet, b: NumberSet) -> NumberSet:
    joined: list[Interval] = []
    for low, high in sorted((*a, *b)):
        if joined:
            next_free = successor(joined[-1][1])
            if next_free is None or low <= next_free:
                joined[-1] = (joined[-1][0], max(joined[-1][1], high))
                continue
        joined.append((low, high))
    return tuple(joined)


def steps(a: NumberSet, b: NumberSet) -> int:
    """Return the number of steps that `includes` and `disjoint` take. The set with fewer intervals is looked up in the
    other.
    """
    few, many = sorted((len(a), len(b)))
    return (few + 1) * many.bit_length()


def includes(a: NumberSet, b: NumberSet) -> bool:
    """Return whether every number of b is in a."""
    if a == EVERY_NUMBER:
        return True
    if len(a) < len(b):
        return disjoint(complement(a), b)
    for low, high in b:
        place = bisect_left(a, high, key=_end)
        if place == len(a) or a[place][0] > low:
            return False
    return True


def disjoint(a: NumberSet, b: NumberSet) -> bool:
    """Return whether no number is in both sets."""
    few, many = (a, b) if len(a) <= len(b) else (b, a)
    for low, high in few:
        place = bisect_left(many, low, key=_end)
        if place < len(many) and many[place][0] <= high:
            return False
    return True


def _end(interval: Interval) -> Number:
    return interval[1]


def contains(numbers: NumberSet, value: Number) -> bool:
    return any(low <= value <= high for low, high in numbers)
