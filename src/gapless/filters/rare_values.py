"""Conjunctions reached through a value that few of them ask for.

A conjunction that demands `topic = 'x'` can match only events whose topic is 'x'. If few conjunctions demand that
value, a hash table leads to them at once and each is evaluated; a column of bit sets would spend a bit for each
conjunction of the whole index on that value. This is how a hundred thousand subscriptions to as many topics are kept.

A value that more than RARE_MAX conjunctions demand is *common*, and its conjunctions move to bit sets. Where a
conjunction demands values of several attributes, the least demanded one leads to it. The number of common values of an
attribute is bounded, since each costs bits; beyond the bound lists just grow longer.
"""

from __future__ import annotations

from gapless.filters.arithmetic import number_of
from gapless.filters.constraints import Constraint
from gapless.filters.evaluation import Attributes
from gapless.filters.member import Demand, Key, Member
from gapless.filters.normal_form import Conjunction

RARE_MAX = 4
"""Conjunctions that one value leads to: evaluating these costs about as much as one column of bit sets."""

COMMON_MAX = 512
"""Common values of one attribute: a bit each for every conjunction, 6 MB at a hundred thousand conjunctions. Below the
number of strings that an alphabet lists, so that each of them has a code of its own."""

VALUES_MAX = 8
"""Values in one demand, as in `IN`: the conjunction is listed under each."""


class RareValues:
    """The hash table, and how often each value is demanded by all conjunctions, wherever they are kept."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Key], int] = {}
        self._common: dict[str, set[Key]] = {}
        self._reached: dict[str, dict[Key, list[Member]]] = {}

    def count(self, demands: list[Demand]) -> list[Member]:
        """Count the demands of a new conjunction; returns those that must move because a value became common."""
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
        """A conjunction with these demands left the index."""
        for name, values in demands:
            for value in values:
                count = self._counts[name, value] - 1
                if count:
                    self._counts[name, value] = count
                else:
                    del self._counts[name, value]
                    self._common[name].discard(value)

    def add(self, member: Member, demands: list[Demand]) -> bool:
        """List the conjunction under its least demanded values; False if all its demands are common, or it has none."""
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
        """Orders of the filters that its values lead to and that match it. Of names, the fewer are gone through."""
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
    """For each attribute that must have one of a few values: which."""
    found: list[Demand] = []
    for name, constraint in conjunction.constraints.items():
        values = _values(constraint)
        if values:
            found.append((name, values))
    return found


def _values(constraint: Constraint) -> tuple[Key, ...]:
    """The attribute must have one of these values; none if other states will do, or the values are many."""
    strings, numbers = constraint.strings, constraint.numbers
    if constraint.absent or constraint.booleans or constraint.nan or strings.complement:
        return ()
    if len(strings.values) + len(numbers) > VALUES_MAX or any(low != high for low, high in numbers):
        return ()
    return (*sorted(strings.values), *(low for low, _ in numbers))
