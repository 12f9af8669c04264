"""Finds conjunctions through a required value that few other conjunctions require.

A conjunction that requires `topic = 'x'` can match only events with topic 'x'. If few conjunctions
require that value, a hash table finds them at once and each is evaluated; a column of bit sets
for that value would need a bit for each conjunction of the whole index. So a hundred thousand
subscriptions to as many topics are cheap.

A value that more than RARE_MAX conjunctions require is *common*, and its conjunctions move to bit
sets. If a conjunction requires values of several attributes, the least required one is used. The
number of common values of an attribute is bounded, since each costs bits; further values stay
in the table, whose lists grow.
"""

from __future__ import annotations

from gapless.filters.arithmetic import number_of
from gapless.filters.constraints import Constraint
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Demand, Key, Member
from gapless.filters.normal_form import Conjunction

RARE_MAX = 4
"""The maximum number of conjunctions per value for which evaluating them costs no more than a column of bit sets."""

COMMON_MAX = 512
"""The maximum number of common values of one attribute. Each costs a bit for every conjunction, 6 MB in all at a
hundred thousand conjunctions. It is less than the number of strings that an alphabet lists, so each common value has a
code of its own."""

VALUES_MAX = 8
"""The maximum number of values in one requirement, as in `IN`. The conjunction is listed under each."""


class RareValues:
    """A hash table of conjunctions by required value, and the number of conjunctions that require each value, wherever
    they are stored.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Key], int] = {}
        self._common: dict[str, set[Key]] = {}
        self._reached: dict[str, dict[Key, list[Member]]] = {}

    def count(self, demands: list[Demand]) -> list[Member]:
        """Count the requirements of a new conjunction. Return the conjunctions that must move because a value became
        common.
        """
        moving: list[Member] = []
        for name, values in demands:
            common = self._common.setdefault(name, set())
            for value in values:
                count = self._counts[name, value] = self._counts.get((name, value), 0) + 1
                if count > RARE_MAX and value not in common and len(common) < COMMON_MAX:
                    common.add(value)
                    reached = list(self._reached.get(name, {}).get(value, ()))
                    moving += reached
                    for member in reached:
                        self.remove(member)
        return moving

    def discount(self, demands: list[Demand]) -> None:
        """Stop counting the requirements of a removed conjunction."""
        for name, values in demands:
            for value in values:
                count = self._counts[name, value] - 1
                if count:
                    self._counts[name, value] = count
                else:
                    del self._counts[name, value]
                    self._common[name].discard(value)

    def add(self, member: Member, demands: list[Demand]) -> bool:
        """List the conjunction under its least required values. Return False if all of them are common, or there are
        none.
        """
        best: Demand | None = None
        fewest = 0
        for demand in demands:
            name, values = demand
            if not self._common[name].isdisjoint(values):
                continue
            count = max(self._counts[name, value] for value in values)
            if best is None or count < fewest:
                best, fewest = demand, count
        if best is None:
            return False
        member.demand = best
        lists = self._reached.setdefault(best[0], {})
        for value in best[1]:
            lists.setdefault(value, []).append(member)
        return True

    def remove(self, member: Member) -> None:
        assert member.demand is not None
        name, values = member.demand
        member.demand = None
        lists = self._reached[name]
        for value in values:
            lists[value].remove(member)
            if not lists[value]:
                del lists[value]
        if not lists:
            del self._reached[name]

    def match(self, attributes: Attributes) -> list[int]:
        """Return the order numbers of the filters that match, found through the event's values."""
        found: list[int] = []
        reached = self._reached
        for name in attributes if len(attributes) < len(reached) else reached:
            lists, value = reached.get(name), attributes.get(name)
            kind = type(value)
            if lists is not None and (kind is str or kind is int or kind is float):
                key = number_of(value) if kind is int else value  # type: ignore[arg-type]
                for member in lists.get(key, ()):  # type: ignore[arg-type]
                    if member.filter.test(attributes):
                        found.append(member.order)
        return found


def demands_of(conjunction: Conjunction) -> list[Demand]:
    """Return, for each attribute that must have one of a few values, these values."""
    found: list[Demand] = []
    for name, constraint in conjunction.constraints.items():
        values = _values(constraint)
        if values:
            found.append((name, values))
    return found


def _values(constraint: Constraint) -> tuple[Key, ...]:
    """Return the values of which the attribute must have one, or an empty tuple if there are many or other states are
    allowed.
    """
    strings, numbers = constraint.strings, constraint.numbers
    if constraint.absent or constraint.booleans or constraint.nan or strings.complement:
        return ()
    if len(strings.values) + len(numbers) > VALUES_MAX or any(low != high for low, high in numbers):
        return ()
    return (*sorted(strings.values), *(low for low, _ in numbers))
