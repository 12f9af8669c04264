"""The constraints of many conjunctions on one attribute, as bit sets.

Each conjunction of a segment has a bit. For every code of the attribute (see `alphabet`) a column
holds two sets:

    failures   conjunctions whose constraint is violated in every state of this code
    doubts     conjunctions whose constraint allows some states of this code and not others

A conjunction without a constraint on the attribute is in neither, so it costs this column nothing.
Bit sets are Python integers: an OR of 16,384 bits takes about a quarter of a microsecond.
"""

from __future__ import annotations

from itertools import accumulate
from operator import xor
from typing import NamedTuple

from gapless.filters.alphabet import ABSENT, FALSE, FIRST_NUMBER, FIRST_STRING, NAN, OTHER_STRING, TRUE, Alphabet, runs
from gapless.filters.constraints import FALSE_ONLY, TRUE_ONLY, Constraint
from gapless.filters.number_sets import EVERY_NUMBER, Number, NumberSet
from gapless.filters.string_sets import StringSet


class Column:
    """The bit sets of one attribute by code."""

    __slots__ = ("doubts", "failures")

    def __init__(self, alphabet: Alphabet) -> None:
        self.failures = [0] * alphabet.size
        self.doubts = [0] * alphabet.size

    def give_meaning(self, code: int) -> None:
        """Let the code stand for a string that was unlisted until now."""
        if code == len(self.failures):
            self.failures.append(0)
            self.doubts.append(0)
        self.failures[code] = self.failures[OTHER_STRING]
        self.doubts[code] = self.doubts[OTHER_STRING]

    def add(self, bit: int, constraint: Constraint, alphabet: Alphabet) -> None:
        """Add the constraint of the conjunction with this bit (a power of two), whose strings are
        listed already.
        """
        failures = self.failures
        if not constraint.absent:
            failures[ABSENT] |= bit
        if not constraint.nan:
            failures[NAN] |= bit
        if not constraint.booleans & FALSE_ONLY:
            failures[FALSE] |= bit
        if not constraint.booleans & TRUE_ONLY:
            failures[TRUE] |= bit
        self._add_numbers(bit, constraint.numbers, alphabet)
        self._add_strings(bit, constraint.strings, alphabet)

    def _add_numbers(self, bit: int, numbers: NumberSet, alphabet: Alphabet) -> None:
        if numbers == EVERY_NUMBER:
            return
        failures, doubts = self.failures, self.doubts
        free = FIRST_NUMBER
        for first, after, doubtful in runs(numbers, alphabet.cuts):
            failures[free:first] = [bits | bit for bits in failures[free:first]]
            for code in doubtful:
                doubts[code] |= bit
            free = after
        end = alphabet.after_numbers
        failures[free:end] = [bits | bit for bits in failures[free:end]]

    def _add_strings(self, bit: int, strings: StringSet, alphabet: Alphabet) -> None:
        failures, doubts, listed = self.failures, self.doubts, alphabet.strings
        codes = [listed[value] for value in strings.values if value in listed]
        in_doubt = strings.patterned or len(codes) < len(strings.values)
        if strings.patterned:
            doubts[FIRST_STRING:] = [bits | bit for bits in doubts[FIRST_STRING:]]
        elif strings.complement:
            for code in codes:
                failures[code] |= bit
        else:
            failures[FIRST_STRING:] = [bits | bit for bits in failures[FIRST_STRING:]]
            for code in codes:
                failures[code] ^= bit
        if in_doubt:
            doubts[OTHER_STRING] |= bit
        elif not strings.complement:
            failures[OTHER_STRING] |= bit

    def absorb(self, other: Column, shift: int) -> None:
        """Add the bits of another column, shifted up by `shift`."""
        for mine, theirs in ((self.failures, other.failures), (self.doubts, other.doubts)):
            for code, bits in enumerate(theirs):
                if bits:
                    mine[code] |= bits << shift


class NumberCodes(NamedTuple):
    """The new bit sets of the numbers of one column."""

    failures: list[int]
    doubts: list[int]

    def put_into(self, column: Column) -> None:
        column.failures[FIRST_NUMBER:FIRST_STRING] = self.failures
        column.doubts[FIRST_NUMBER:FIRST_STRING] = self.doubts


class NumberBits:
    """Builds the bit sets of the numbers of one column for new cuts, conjunction by conjunction.

    Failures change little from one bucket to the next: recording the changes and summing them up
    (by exclusive or) takes time for each interval, not for each interval and bucket.
    """

    def __init__(self, width: int, cuts: list[Number]) -> None:
        """Create it for conjunctions with numbers below the width."""
        self._cuts = cuts
        self._changes = [bytearray(width // 8 + 1) for _ in range(len(cuts) + 2)]
        self._doubts = [bytearray(width // 8 + 1) for _ in range(len(cuts) + 1)]

    def add(self, number: int, numbers: NumberSet) -> None:
        """Add the set of the conjunction with this number; a set that allows every number is omitted."""
        byte, mask = number >> 3, 1 << (number & 7)
        changes, doubts = self._changes, self._doubts
        changes[0][byte] ^= mask
        for first, after, doubtful in runs(numbers, self._cuts):
            changes[first - FIRST_NUMBER][byte] ^= mask
            changes[after - FIRST_NUMBER][byte] ^= mask
            for code in doubtful:
                doubts[code - FIRST_NUMBER][byte] |= mask

    def finish(self) -> NumberCodes:
        """Return the bit sets, one for each code of a bucket."""
        buckets = len(self._doubts)
        unused = [0] * (FIRST_STRING - FIRST_NUMBER - buckets)
        changes = (int.from_bytes(change, "little") for change in self._changes[:buckets])
        doubts = (int.from_bytes(doubt, "little") for doubt in self._doubts)
        return NumberCodes([*accumulate(changes, xor), *unused], [*doubts, *unused])
