"""Stores the constraints of many conjunctions on one attribute as bit sets.

Each conjunction of a segment has a bit. For every code of the attribute (see `alphabet`) a column
holds two sets:

    failures   conjunctions whose constraint is violated in every state of this code
    doubts     conjunctions whose constraint allows some states of this code and not others

A conjunction without a constraint on the attribute is in neither, so it costs this column nothing.
Bit sets are Python integers: an OR of 16,384 bits takes about a quarter of a microsecond.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import xor
from typing import NamedTuple

from gapless.filters.alphabet import (
    ABSENT,
    CUTS_MAX,
    FALSE,
    FIRST_NUMBER,
    FIRST_STRING,
    NAN,
    OTHER_STRING,
    TRUE,
    Alphabet,
    Cuts,
    Run,
    number_intervals,
    runs,
    string_intervals,
)
from gapless.filters.constraints import FALSE_ONLY, TRUE_ONLY, Constraint
from gapless.filters.number_sets import EVERY_NUMBER, Number, NumberSet
from gapless.filters.string_sets import EVERY_STRING, NEXT, StringSet


class Column:
    """The bit sets of one attribute, by code."""

    __slots__ = ("doubts", "failures")

    def __init__(self, alphabet: Alphabet) -> None:
        self.failures = [0] * alphabet.size
        self.doubts = [0] * alphabet.size

    def give_meaning(self, code: int, bucket: int) -> None:
        """Use the code for a string that was unlisted until now and belonged to this bucket."""
        if code == len(self.failures):
            self.failures.append(0)
            self.doubts.append(0)
        self.failures[code] = self.failures[bucket]
        self.doubts[code] = self.doubts[bucket]

    def add(self, bit: int, constraint: Constraint, alphabet: Alphabet) -> None:
        """Add the constraint of the conjunction with this bit (a power of two). Its strings must be listed."""
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
        if numbers != EVERY_NUMBER:
            self._add_runs(bit, number_runs(numbers, alphabet.cuts), FIRST_NUMBER, len(alphabet.cuts) + 1)

    def _add_strings(self, bit: int, strings: StringSet, alphabet: Alphabet) -> None:
        if strings != EVERY_STRING:
            found = string_runs(strings, alphabet.string_cuts, alphabet.strings)
            self._add_runs(bit, found, OTHER_STRING, len(alphabet.string_cuts) + 1)
            self._add_listed(bit, strings, alphabet.strings)

    def _add_runs(self, bit: int, found: list[Run], first: int, count: int) -> None:
        failures, doubts = self.failures, self.doubts
        free, end = first, first + count
        for start, after, doubtful in found:
            failures[free:start] = [bits | bit for bits in failures[free:start]]
            for code in doubtful:
                doubts[code] |= bit
            free = after
        failures[free:end] = [bits | bit for bits in failures[free:end]]

    def _add_listed(self, bit: int, strings: StringSet, listed: dict[str, int]) -> None:
        failures, doubts = self.failures, self.doubts
        if not strings.complement:
            failures[FIRST_STRING:] = [bits | bit for bits in failures[FIRST_STRING:]]
            for value in strings.values:
                if value in listed:
                    failures[listed[value]] ^= bit
            return
        for value in strings.values:
            if value in listed:
                failures[listed[value]] |= bit
        if strings.patterned:
            low, high = strings.bounds
            is_vague = bool(strings.likes or strings.unlikes)
            for value, code in listed.items():
                if value < low or (high is not None and value >= high):
                    failures[code] |= bit
                elif is_vague:
                    doubts[code] |= bit

    def absorb(self, other: Column, shift: int) -> None:
        """Add the bits of another column, shifted up by `shift`."""
        for mine, theirs in ((self.failures, other.failures), (self.doubts, other.doubts)):
            for code, bits in enumerate(theirs):
                if bits:
                    mine[code] |= bits << shift


def number_runs(numbers: NumberSet, cuts: list[Number]) -> list[Run]:
    """Return the runs of buckets of numbers that the set overlaps."""
    return runs(number_intervals(numbers), cuts, FIRST_NUMBER)


def string_runs(strings: StringSet, cuts: list[str], listed: Mapping[str, int]) -> list[Run]:
    """Return the runs of buckets of unlisted strings that the set overlaps."""
    named: list[Run] = []
    if strings.values and (unlisted := [value for value in strings.values if value not in listed]):
        named = runs([(value, value + NEXT) for value in sorted(unlisted)], cuts, OTHER_STRING)
    if not strings.complement:
        return named
    excluded = tuple(code for first, after, _ in named for code in range(first, after))
    [(first, after, doubts)] = runs(string_intervals(strings), cuts, OTHER_STRING) or [(OTHER_STRING, OTHER_STRING, ())]
    is_vague = strings.likes or strings.unlikes
    return [(first, after, tuple(range(first, after)) if is_vague else doubts + excluded)]


class BucketCodes(NamedTuple):
    """The bit sets of one column's buckets, built for new cuts."""

    failures: list[int]
    doubts: list[int]

    def put_into(self, column: Column) -> None:
        column.failures[FIRST_NUMBER:FIRST_STRING] = self.failures
        column.doubts[FIRST_NUMBER:FIRST_STRING] = self.doubts


class ColumnBits:
    """Builds the bit sets of one column's buckets for new cuts, one conjunction at a time."""

    def __init__(self, width: int, cuts: Cuts, listed: Mapping[str, int]) -> None:
        """Start building for conjunctions with numbers below `width`."""
        self._cuts = cuts
        self._listed = listed
        self._numbers = BucketBits(width, FIRST_NUMBER, len(cuts.numbers) + 1)
        self._strings = BucketBits(width, OTHER_STRING, len(cuts.strings) + 1)

    def add(self, number: int, constraint: Constraint) -> int:
        """Add the constraint of the conjunction with this number. Return the number of steps taken."""
        steps = 1
        if constraint.numbers != EVERY_NUMBER:
            self._numbers.add(number, number_runs(constraint.numbers, self._cuts.numbers))
            steps += 2 + len(constraint.numbers)
        if constraint.strings != EVERY_STRING:
            self._strings.add(number, string_runs(constraint.strings, self._cuts.strings, self._listed))
            steps += 2 + len(constraint.strings.values)
        return steps

    def finish(self) -> BucketCodes:
        """Return the finished bit sets, one for each code of a bucket."""
        numbers, strings = self._numbers.finish(), self._strings.finish()
        return BucketCodes([*numbers[0], *strings[0]], [*numbers[1], *strings[1]])


class BucketBits:
    """Builds the bit sets of some buckets.

    Failures change little from one bucket to the next: recording the changes and summing them up
    (by exclusive or) takes time for each interval, not for each interval and bucket.
    """

    def __init__(self, width: int, first: int, count: int) -> None:
        """Start building for `count` buckets, beginning with the code `first`."""
        self._first = first
        self._changes = [bytearray(width // 8 + 1) for _ in range(count + 1)]
        self._doubts = [bytearray(width // 8 + 1) for _ in range(count)]

    def add(self, number: int, found: list[Run]) -> None:
        """Add the set of the conjunction with this number. A set that allows everything is omitted."""
        byte, mask = number >> 3, 1 << (number & 7)
        changes, doubts = self._changes, self._doubts
        changes[0][byte] ^= mask
        for first, after, doubtful in found:
            changes[first - self._first][byte] ^= mask
            changes[after - self._first][byte] ^= mask
            for code in doubtful:
                doubts[code - self._first][byte] |= mask

    def finish(self) -> tuple[list[int], list[int]]:
        """Return the failures and the doubts of each bucket, with zeros for unused buckets."""
        buckets = len(self._doubts)
        unused = [0] * (CUTS_MAX + 1 - buckets)
        changes = (int.from_bytes(change, "little") for change in self._changes[:buckets])
        doubts = (int.from_bytes(doubt, "little") for doubt in self._doubts)
        return [*accumulate(changes, xor), *unused], [*doubts, *unused]
