"""The constraints of many conjunctions on one attribute, as bit sets.

Each conjunction of a segment has a bit. For every state the attribute can be in, a column gives two sets:

    failures   conjunctions whose constraint this state surely violates
    doubts     conjunctions for which the column cannot tell; whoever survives is evaluated

A conjunction that asks nothing of the attribute is in neither, so it costs this column nothing.

Numbers: sorted *cuts* divide the line into buckets, and each bucket has its two sets. An interval fails in the buckets
it does not touch, and is in doubt in those it covers in part. Cuts are chosen among the bounds of the intervals
themselves, at even ranks, so frequent bounds become cuts and leave no doubt, and the others fall about evenly into
the buckets. Strings: a finite set is a failure for every string except its own, which are listed by value; excluded
strings are listed likewise; patterns are in doubt for every string.

Bit sets are Python integers: an OR of a hundred thousand bits takes about a microsecond.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from math import inf

from gapless.filters.constraints import FALSE_ONLY, TRUE_ONLY, Constraint
from gapless.filters.number_sets import EVERY_NUMBER, Number, NumberSet, successor
from gapless.filters.string_sets import StringSet

CUTS_MAX = 32
"""Cuts of one column. Each costs two bits for each conjunction of the segment; few survivors are in doubt at 32."""

STRINGS_MAX = 4096
"""Distinct strings that one column lists. Each costs a bit for each conjunction; further strings are in doubt."""

KNOWN_STRINGS_MAX = 256
"""Strings of recent events whose failures are kept ready."""


class Column:
    """Bit sets for one attribute. Fields are read directly by the segment's matching loop."""

    __slots__ = (
        "absent_failures",
        "accepted",
        "cuts",
        "elder",
        "excluded",
        "false_failures",
        "intervals",
        "intervals_when_cut",
        "known_strings",
        "nan_failures",
        "number_doubts",
        "number_failures",
        "string_doubts",
        "string_failures",
        "true_failures",
    )

    def __init__(self, elder: Column | None = None) -> None:
        """An empty column, or one that `elder` will absorb: it has the same cuts and shares its bound on strings."""
        cuts: list[Number] = elder.cuts if elder else []
        self.elder = elder
        self.cuts: list[Number] = cuts
        self.number_failures = [0] * (len(cuts) + 1)
        self.number_doubts = [0] * (len(cuts) + 1)
        self.absent_failures = 0
        self.nan_failures = 0
        self.false_failures = 0
        self.true_failures = 0
        self.string_failures = 0
        self.string_doubts = 0
        self.accepted: dict[str, int] = {}
        self.excluded: dict[str, int] = {}
        self.known_strings: dict[str, int] = {}
        self.intervals = 0
        self.intervals_when_cut = 0

    def add(self, bit: int, constraint: Constraint) -> None:
        """Enter the constraint of the conjunction with this bit (a power of two)."""
        if not constraint.absent:
            self.absent_failures |= bit
        if not constraint.nan:
            self.nan_failures |= bit
        if not constraint.booleans & FALSE_ONLY:
            self.false_failures |= bit
        if not constraint.booleans & TRUE_ONLY:
            self.true_failures |= bit
        self._add_numbers(bit, constraint.numbers)
        self._add_strings(bit, constraint.strings)

    def failures_of_string(self, value: str) -> int:
        """The conjunctions that fail if the attribute is this string."""
        failures = (self.string_failures ^ self.accepted.get(value, 0)) | self.excluded.get(value, 0)
        if len(self.known_strings) >= KNOWN_STRINGS_MAX:
            self.known_strings.clear()
        self.known_strings[value] = failures
        return failures

    def absorb(self, other: Column, shift: int) -> None:
        """Take over the bits of a column with the same cuts, moved up by `shift`."""
        assert self.cuts == other.cuts
        self.absent_failures |= other.absent_failures << shift
        self.nan_failures |= other.nan_failures << shift
        self.false_failures |= other.false_failures << shift
        self.true_failures |= other.true_failures << shift
        self.string_failures |= other.string_failures << shift
        self.string_doubts |= other.string_doubts << shift
        _absorb_list(self.number_failures, other.number_failures, shift)
        _absorb_list(self.number_doubts, other.number_doubts, shift)
        for mine, theirs in ((self.accepted, other.accepted), (self.excluded, other.excluded)):
            for value, bits in theirs.items():
                mine[value] = mine.get(value, 0) | bits << shift
        self.known_strings.clear()
        self.intervals += other.intervals

    @property
    def growth(self) -> float:
        """How many intervals there are for each that there was when the cuts were chosen."""
        return self.intervals / max(4, self.intervals_when_cut)

    def cut(self, members: Sequence[tuple[int, NumberSet]], width: int) -> None:
        """Choose cuts for these number sets, each with its bit position, and make the bit sets of numbers anew."""
        self.cuts = chosen_cuts(point for _, numbers in members for point in _points(numbers))
        self.intervals = self.intervals_when_cut = sum(bool(numbers) for _, numbers in members)
        buckets = len(self.cuts) + 1
        # Bits that change from one bucket to the next; the sets are then running sums (exclusive ors) of these.
        failing = [bytearray(width // 8 + 1) for _ in range(buckets + 1)]
        doubtful = [bytearray(width // 8 + 1) for _ in range(buckets + 1)]
        for position, numbers in members:
            byte, mask = position >> 3, 1 << (position & 7)
            failing[0][byte] ^= mask
            for first, after, doubts in self._touched(numbers):
                failing[first][byte] ^= mask
                failing[after][byte] ^= mask
                for bucket in doubts:
                    doubtful[bucket][byte] |= mask
        self.number_failures, running = [], 0
        for changes in failing[:-1]:
            running ^= int.from_bytes(changes, "little")
            self.number_failures.append(running)
        self.number_doubts = [int.from_bytes(bits, "little") for bits in doubtful[:-1]]

    def _add_numbers(self, bit: int, numbers: NumberSet) -> None:
        if numbers == EVERY_NUMBER:
            return
        if not numbers:
            self.number_failures = [bits | bit for bits in self.number_failures]
            return
        self.intervals += 1
        failures, doubts = self.number_failures, self.number_doubts
        free = 0
        for first, after, doubtful in self._touched(numbers):
            failures[free:first] = [bits | bit for bits in failures[free:first]]
            for bucket in doubtful:
                doubts[bucket] |= bit
            free = after
        failures[free:] = [bits | bit for bits in failures[free:]]

    def _touched(self, numbers: NumberSet) -> list[tuple[int, int, list[int]]]:
        """Runs of buckets that the set touches: the first, the one after the last, and those covered in part.

        Runs are disjoint and ascending.
        """
        cuts = self.cuts
        runs: list[tuple[int, int, list[int]]] = []
        for low, high in numbers:
            first = bisect_right(cuts, low)
            end = None if high == inf else successor(high)
            last = len(cuts) if end is None else bisect_left(cuts, end)
            doubts = []
            if low != -inf and (first == 0 or cuts[first - 1] != low):
                doubts.append(first)
            if end is not None and (last == len(cuts) or cuts[last] != end) and last not in doubts:
                doubts.append(last)
            if runs and runs[-1][1] > first:
                earlier_first, _, earlier_doubts = runs.pop()
                first, doubts = earlier_first, sorted({*earlier_doubts, *doubts})
            runs.append((first, last + 1, doubts))
        return runs

    def _add_strings(self, bit: int, strings: StringSet) -> None:
        if strings.patterned or not self._has_room(strings):
            self.string_doubts |= bit
            return
        listed = self.excluded if strings.complement else self.accepted
        if not strings.complement:
            self.string_failures |= bit
        for value in strings.values:
            listed[value] = listed.get(value, 0) | bit
        self.known_strings.clear()

    def _has_room(self, strings: StringSet) -> bool:
        columns = (self, self.elder) if self.elder else (self,)
        listed = [column.excluded if strings.complement else column.accepted for column in columns]
        if not strings.values:
            return True
        new = sum(all(value not in values for values in listed) for value in strings.values)
        return new == 0 or new + sum(len(column.accepted) + len(column.excluded) for column in columns) <= STRINGS_MAX


def chosen_cuts(points: Iterable[Number]) -> list[Number]:
    """At most CUTS_MAX of the points, at even ranks; all of them if they are few."""
    ordered = sorted(points)
    distinct = sorted(set(ordered))
    if len(distinct) <= CUTS_MAX:
        return distinct
    return sorted({ordered[(2 * i + 1) * len(ordered) // (2 * CUTS_MAX)] for i in range(CUTS_MAX)})


def _points(numbers: NumberSet) -> list[Number]:
    """Where membership changes along the line: the first number of each interval, and the first after it."""
    points: list[Number] = []
    for low, high in numbers:
        if low != -inf:
            points.append(low)
        end = successor(high)
        if end is not None:
            points.append(end)
    return points


def _absorb_list(mine: list[int], theirs: list[int], shift: int) -> None:
    for i, bits in enumerate(theirs):
        if bits:
            mine[i] |= bits << shift
