"""A numbered set of conjunctions that is matched as a whole, with one column of bit sets for each
attribute.

Conjunction number i is bit i. Matching an event ORs, over its attributes, the failures for the code
of each; the remaining conjunctions have survived every column. Survivors that some column has in
doubt, or that have opaque conditions, are evaluated (`checks`), or all of them if they are few. So
the answer is exact although codes are coarse.

Bits are only ever set. Removing marks a bit as dead, and `segments` moves the live ones out of a
segment that is half dead. Operations on many bit sets or members (absorbing another segment, new
cuts) are done in small steps, and answers are correct after each of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Iterator, Sequence
from functools import reduce
from operator import getitem, or_
from typing import NamedTuple

from gapless.filters.alphabet import ABSENT, Alphabet, Cuts
from gapless.filters.checks import Checks
from gapless.filters.column import BucketCodes, Column, ColumnBits
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member

Codes = Sequence[int]

FEW = 16
"""The maximum number of undecided conjunctions for which evaluating them is faster than combining the sets of
doubts."""

CUT_PER_STEP = 1024
"""The number of conjunctions and intervals that one step processes, in about a millisecond."""


class Plan(NamedTuple):
    """The data that events with the same names share: failures for absent names, and bit sets by code for the
    others.
    """

    places: list[int] | None
    """The indices of the segment's attributes among the names, or None if these are all."""
    absent: int
    failures: list[list[int]]
    doubts: list[list[int]]


class Segment:
    """Numbered conjunctions, each with the order number of its filter, that are matched together."""

    def __init__(self, alphabets: dict[str, Alphabet], names: list[str]) -> None:
        """Create an empty segment. The alphabets and names belong to the whole index."""
        self.members: list[Member] = []
        self._orders = array("q")
        self.dead_count = 0
        self._alphabets = alphabets
        self._names = names
        self._checks = Checks(alphabets)
        self._columns: dict[str, Column] = {}
        self._everyone = 0
        self._dead = 0
        self._opaque = 0
        self._drained = 0
        self._plans: dict[tuple[str, ...], Plan] = {}

    def __len__(self) -> int:
        return len(self.members)

    @property
    def living_count(self) -> int:
        return len(self.members) - self.dead_count

    @property
    def is_half_dead(self) -> bool:
        return self.dead_count * 2 > len(self.members)

    def add(self, member: Member) -> None:
        """Add a conjunction. The cost depends on its constraints and on the length of the segment."""
        member.segment, member.number = self, len(self.members)
        bit = 1 << member.number
        self.members.append(member)
        self._orders.append(member.order)
        self._checks.append(member)
        self._everyone |= bit
        for name, constraint in member.conjunction.constraints.items():
            self._column(name).add(bit, constraint, self._alphabets[name])
        if member.conjunction.opaque:
            self._opaque |= bit
        self._plans.clear()

    def kill(self, member: Member) -> None:
        """Mark a conjunction as dead, so that it matches nothing."""
        assert member.segment is self
        member.segment = None
        self._dead |= 1 << member.number
        self.dead_count += 1

    def living(self) -> list[Member]:
        return [member for member in self.members if member.segment is self]

    def some_living(self, count: int) -> list[Member]:
        """Return up to `count` live conjunctions, which the caller moves elsewhere."""
        end = min(len(self.members), self._drained + CUT_PER_STEP)
        while self._drained < end and self.members[self._drained].segment is not self:
            self._drained += 1
        found = self.members[self._drained : self._drained + count]
        return [member for member in found if member.segment is self]

    def absorb(self, younger: Segment) -> Iterator[None]:
        """Append all conjunctions of a younger segment, step by step.

        Until the last step the younger one answers for them: here they have bits, but do not count
        yet.
        """
        shift = len(self.members)
        for name, column in younger._columns.items():
            self._column(name).absorb(column, shift)
            yield
        for member in younger.members:
            if member.segment is younger:
                member.segment, member.number = self, member.number + shift
        self.members += younger.members
        self._orders += younger._orders
        self._checks.extend(younger._checks)
        self.dead_count += younger.dead_count
        self._everyone |= younger._everyone << shift
        self._dead |= younger._dead << shift
        self._opaque |= younger._opaque << shift
        self._plans.clear()

    def give_meaning(self, name: str, values: Sequence[str]) -> None:
        """Use codes for strings of an attribute that were not listed until now."""
        column, alphabet = self._columns.get(name), self._alphabets[name]
        if column is not None:
            for value in values:
                column.give_meaning(alphabet.strings[value], alphabet.bucket(value))

    def bucket_bits(self, name: str, cuts: Cuts) -> Generator[None, None, BucketCodes | None]:
        """Build an attribute's bit sets of buckets for new cuts, step by step. Return None if no conjunction constrains
        it.
        """
        if name not in self._columns:
            return None
        bits = ColumnBits(len(self.members), cuts, self._alphabets[name].strings)
        done = 0
        for number, member in enumerate(self.members):
            constraint = member.conjunction.constraints.get(name)
            done += 1 if constraint is None else bits.add(number, constraint)
            if done >= CUT_PER_STEP:
                done = 0
                yield
        if len(self.members) > CUT_PER_STEP:
            yield
        return bits.finish()

    def put_in(self, name: str, bits: BucketCodes | None) -> None:
        """Use these bit sets of an attribute's buckets, which were built for its new cuts."""
        if bits is not None:
            bits.put_into(self._columns[name])

    def plan(self, names: tuple[str, ...]) -> Plan:
        """Return the plan for events that have these of the index's attributes."""
        plan = self._plans.get(names)
        if plan is None:
            places = [place for place, name in enumerate(names) if name in self._columns]
            present = [names[place] for place in places]
            missing = [column.failures[ABSENT] for name, column in self._columns.items() if name not in names]
            failures = [self._columns[name].failures for name in present]
            doubts = [self._columns[name].doubts for name in present]
            plan = self._plans[names] = Plan(
                places if len(places) < len(names) else None, reduce(or_, missing, 0), failures, doubts
            )
        return plan

    def forget_plans(self) -> None:
        self._plans.clear()

    def match(self, plan: Plan, codes: Codes, attributes: Attributes) -> list[int]:
        """Return the order numbers of the filters that an event matches, given the codes of the plan's names."""
        failed = reduce(or_, map(getitem, plan.failures, codes), plan.absent | self._dead)
        # Mask out conjunctions that are being absorbed. No `~`: it would create a negative number, and
        # operations on these take three times as long.
        everyone = self._everyone
        survivors = left = everyone ^ (everyone & failed)
        found: list[int] = []
        looked_at = 0
        while left:
            if looked_at == FEW:
                return self._match_many_survivors(survivors, plan, codes, attributes)
            looked_at += 1
            number = left.bit_length() - 1
            left ^= 1 << number
            if self._checks.hold(number, self.members[number], attributes, self._names):
                found.append(self._orders[number])
        return found

    def _match_many_survivors(self, survivors: int, plan: Plan, codes: Codes, attributes: Attributes) -> list[int]:
        """Return the order numbers of the matching conjunctions, evaluating only the undecided ones."""
        doubtful = survivors & reduce(or_, filter(None, map(getitem, plan.doubts, codes)), self._opaque)
        orders, members, hold, names = self._orders, self.members, self._checks.hold, self._names
        found = [orders[number] for number in _numbers(survivors ^ doubtful)]
        found += [orders[number] for number in _numbers(doubtful) if hold(number, members[number], attributes, names)]
        return found

    def _column(self, name: str) -> Column:
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = Column(self._alphabets[name])
        return column


def _numbers(bits: int) -> Iterator[int]:
    """Yield the indices of the set bits, the highest first. Up to the length of a segment, this is faster than
    splitting the integer.
    """
    while bits:
        number = bits.bit_length() - 1
        yield number
        bits ^= 1 << number
