"""A numbered set of conjunctions that is matched as a whole, with one column of bit sets for each attribute.

Conjunction number i is bit i. Matching an event ORs, over the attributes, the failures of the state each is in; what is
left over has survived every column. Survivors that some column had in doubt, or that have opaque conditions, are
reported apart: they match only if their filter says so. So the answer is exact while the bit sets may be coarse.

Absent attributes are states like any other. Which attributes an event lacks depends only on its *shape*, the names it
has, and events of few shapes are the rule; so the failures of all absent attributes are kept ready by shape.

Bits are only ever set. Removing marks a bit as dead, and `FilterIndex` moves the living out of a segment that is half
dead.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from gapless.filters.bits import positions
from gapless.filters.column import Column
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Member
from gapless.filters.number_sets import EVERY_NUMBER, NumberSet

SHAPES_MAX = 256
"""Shapes of recent events that are kept ready."""

CUTTING_MAX = 20_000
"""Intervals that one `absorb` cuts anew, at least one column: it bounds the pause to some tens of milliseconds."""

_Plan = tuple[int, int, list[tuple[str, Column]]]


class Segment:
    """Conjunctions with consecutive numbers; each carries the order of the filter it belongs to."""

    def __init__(self, elder: Segment | None = None) -> None:
        """An empty segment, or one that `elder` will absorb."""
        self.orders: list[int] = []
        self.members: list[Member] = []
        self.dead = 0
        self.dead_count = 0
        self._opaque = 0
        self._drained = 0
        self._columns: dict[str, Column] = {}
        self._elder = elder
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def __len__(self) -> int:
        return len(self.orders)

    @property
    def living_count(self) -> int:
        return len(self.orders) - self.dead_count

    def add(self, member: Member) -> None:
        """Enter a conjunction. The cost depends on its constraints and on the length of the segment."""
        conjunction = member.conjunction
        member.segment, member.number = self, len(self.orders)
        bit = 1 << member.number
        self.orders.append(member.order)
        self.members.append(member)
        for name, constraint in conjunction.constraints.items():
            self._column(name).add(bit, constraint)
        if conjunction.opaque:
            self._opaque |= bit
        self._plans.clear()

    def kill(self, member: Member) -> None:
        """Take a conjunction out of every answer."""
        assert member.segment is self
        member.segment = None
        self.dead |= 1 << member.number
        self.dead_count += 1

    def living(self) -> list[Member]:
        return [member for member in self.members if member.segment is self]

    def some_living(self, count: int) -> list[Member]:
        """The first few of the living. Meant for emptying the segment: it never looks twice at those it passed."""
        while self._drained < len(self.members) and self.members[self._drained].segment is not self:
            self._drained += 1
        found = self.members[self._drained : self._drained + count]
        return [member for member in found if member.segment is self]

    def absorb(self, younger: Segment) -> None:
        """Append all conjunctions of a younger segment."""
        assert younger._elder is self
        shift = len(self.orders)
        for name, column in younger._columns.items():
            mine = self._columns.get(name)
            if mine is None:
                mine = self._columns[name] = Column()
            mine.absorb(column, shift)
        for member in younger.members:
            if member.segment is younger:
                member.segment, member.number = self, member.number + shift
        self.orders += younger.orders
        self.members += younger.members
        self.dead |= younger.dead << shift
        self.dead_count += younger.dead_count
        self._opaque |= younger._opaque << shift
        self.cut_columns()
        self._plans.clear()

    def match(self, attributes: Attributes) -> tuple[list[int], list[int]]:
        """Orders of the filters that surely match, and of those that match if their filter says so."""
        everyone, failures, columns = self._plan(attributes)
        doubts: list[int] = []
        failures = self._failures(columns, attributes, failures | self.dead, doubts)
        return self._survivors(everyone ^ failures, doubts)

    def match_many(self, batch: Sequence[Attributes]) -> list[tuple[list[int], list[int]]]:
        return [self.match(attributes) for attributes in batch]

    def _failures(
        self, columns: list[tuple[str, Column]], attributes: Attributes, failures: int, doubts: list[int]
    ) -> int:
        """Add the failures in these columns; notes the doubts."""
        for name, column in columns:
            value = attributes[name]
            kind = type(value)
            if kind is str:
                known = column.known_strings.get(value)  # type: ignore[arg-type]
                failures |= column.failures_of_string(value) if known is None else known  # type: ignore[arg-type]
                if column.string_doubts:
                    doubts.append(column.string_doubts)
            elif kind is int or kind is float:
                if value != value:
                    failures |= column.nan_failures
                    continue
                bucket = bisect_right(column.cuts, value)
                failures |= column.number_failures[bucket]
                doubtful = column.number_doubts[bucket]
                if doubtful:
                    doubts.append(doubtful)
            elif kind is bool:
                failures |= column.true_failures if value else column.false_failures
            else:
                failures |= column.absent_failures
        return failures

    def _survivors(self, survivors: int, doubts: list[int]) -> tuple[list[int], list[int]]:
        if not survivors:
            return [], []
        doubtful = survivors & self._opaque
        for column_doubts in doubts:
            common = survivors & column_doubts
            if common:
                doubtful |= common
        orders = self.orders
        sure = [orders[number] for number in positions(survivors ^ doubtful)]
        return sure, [orders[number] for number in positions(doubtful)]

    def _plan(self, attributes: Attributes) -> _Plan:
        """All bits, failures of the attributes that an event of this shape lacks, and the columns of those it has."""
        shape = tuple(attributes)
        plan = self._plans.get(shape)
        if plan is None:
            failures = 0
            for name, column in self._columns.items():
                if name not in attributes:
                    failures |= column.absent_failures
            everyone = (1 << len(self.orders)) - 1
            plan = everyone, failures, [(name, self._columns[name]) for name in shape if name in self._columns]
            if len(self._plans) >= SHAPES_MAX:
                self._plans.clear()
            self._plans[shape] = plan
        return plan

    def _column(self, name: str) -> Column:
        column = self._columns.get(name)
        if column is None:
            elder = self._elder._columns.get(name) if self._elder else None
            column = self._columns[name] = Column(elder)
        return column

    def cut_columns(self) -> None:
        """Choose the cuts of columns anew that have doubled since."""
        if max((column.growth for column in self._columns.values()), default=0) < 2:
            return
        # All members are gone through once, so columns that will soon have doubled go along.
        chosen: dict[str, list[tuple[int, NumberSet]]] = {}
        intervals = 0
        for name, column in sorted(self._columns.items(), key=lambda item: -item[1].growth):
            if column.growth >= 1.5 and intervals < CUTTING_MAX:
                chosen[name] = []
                intervals += column.intervals
        for number, member in enumerate(self.members):
            for name, constraint in member.conjunction.constraints.items():
                if name in chosen and constraint.numbers != EVERY_NUMBER:
                    chosen[name].append((number, constraint.numbers))
        for name, number_sets in chosen.items():
            self._columns[name].cut(number_sets, len(self.orders))
