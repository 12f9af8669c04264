"""Stores the number comparisons that a segment's bits leave undecided for its conjunctions.

Bits are exact, except where a code stands for several states of which a constraint allows some:
buckets of numbers. So most conjunctions need only their intervals compared. These are stored side
by side in arrays, since survivors are few and scattered: following the objects of a conjunction
would take the memory many times as long as the comparison takes the processor.

Everything else is *whole*: the filter is evaluated. This applies to opaque conditions, patterns,
strings that are not listed in the alphabet, several intervals, and numbers that are not floats.
"""

from __future__ import annotations

from array import array
from math import isinf

from gapless.filters.alphabet import Alphabet
from gapless.filters.constraints import Constraint
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER

EXACT = 2**53
"""Integers up to this number can be represented as floats."""

WHOLE = -1


class Checks:
    """The intervals of the conjunctions in one segment, by their numbers."""

    __slots__ = ("_alphabets", "_attributes", "_ends", "_highs", "_lows")

    def __init__(self, alphabets: dict[str, Alphabet]) -> None:
        self._alphabets = alphabets
        self._ends = array("l", (0,))
        """The end of each conjunction's intervals; the first ones begin at 0."""
        self._attributes = array("i")
        self._lows = array("d")
        self._highs = array("d")

    def append(self, member: Member) -> None:
        """Add the next conjunction. Its strings must be listed in the alphabets."""
        intervals = self._intervals(member)
        if intervals is None:
            intervals = [(WHOLE, 0.0, 0.0)]
        for attribute, low, high in intervals:
            self._attributes.append(attribute)
            self._lows.append(low)
            self._highs.append(high)
        self._ends.append(len(self._lows))

    def extend(self, others: Checks) -> None:
        """Append the conjunctions of another segment."""
        shift = len(self._lows)
        self._ends.extend([end + shift for end in others._ends[1:]])
        self._attributes += others._attributes
        self._lows += others._lows
        self._highs += others._highs

    def hold(self, number: int, member: Member, attributes: Attributes, names: list[str]) -> bool:
        """Return whether the conjunction matches an event that no column excludes."""
        begin, end = self._ends[number], self._ends[number + 1]
        for place in range(begin, end):
            attribute = self._attributes[place]
            if attribute == WHOLE:
                return member.filter.test(attributes)
            # No column excludes the event, so the attribute exists and is a number.
            if not self._lows[place] <= attributes[names[attribute]] <= self._highs[place]:  # type: ignore[operator]
                return False
        return True

    def _intervals(self, member: Member) -> list[tuple[int, float, float]] | None:
        """Return the comparisons that decide a conjunction, or None if its filter has to be evaluated."""
        if member.conjunction.opaque:
            return None
        intervals: list[tuple[int, float, float]] = []
        for name, constraint in member.conjunction.constraints.items():
            alphabet = self._alphabets[name]
            if not _is_exact(constraint, alphabet):
                return None
            if constraint.numbers not in (EVERY_NUMBER, NO_NUMBER):
                low, high = constraint.numbers[0]
                intervals.append((alphabet.place, low, high))
        return intervals


def _is_exact(constraint: Constraint, alphabet: Alphabet) -> bool:
    """Return whether the bits decide the constraint, except for at most one interval of numbers."""
    numbers, strings = constraint.numbers, constraint.strings
    if strings.patterned or not strings.values <= alphabet.strings.keys():
        return False
    if numbers in (EVERY_NUMBER, NO_NUMBER):
        return True
    if len(numbers) > 1 or constraint.absent or constraint.booleans or constraint.nan or strings.complement:
        return False
    return not strings.values and all(isinf(bound) or abs(bound) <= EXACT for bound in numbers[0])
