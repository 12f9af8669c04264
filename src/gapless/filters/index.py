"""An index of many filters, which finds those that match an event or each event of a batch.

Filters are stored as the conjunctions of their normal forms. A conjunction that requires a rare
value is found through that value (`rare_values`). All others are bits: of segments (`segment`),
where one integer operation for each attribute handles thousands of them, or, from tens of thousands
on, of pages (`pages`), of which an event opens few. Undecided conjunctions are evaluated, so
answers are exact.

Filters come and go all the time. Work on many of them is done in small steps: one with each call
that adds or removes (`segments`), and one for some events, which move conjunctions to pages
(`store`). With n conjunctions, C the cuts of a column and c constraints in the filter:

    add       O(c · C) integer operations on about YOUNG_MAX bits, and a step: less than a millisecond
    remove    O(n / word) to mark a bit of a segment, O(1) in a page, or O(RARE_MAX) in the hash table; amortised one
              `add` for moving
    match     O(a · n / word) for a attributes, in pages for an eighth of n, and O(1) for each match and each doubtful
              survivor

Answers come in the order in which filters were added, whatever segments they come from: every
filter has an order number.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from gapless.filters.evaluation import Attributes, Test
from gapless.filters.filter import Filter, parse
from gapless.filters.member import Member
from gapless.filters.rare_values import RareValues, demands_of
from gapless.filters.store import Store
from gapless.filters.string_precomputation import LONG, StringPrecomputation

K = TypeVar("K", bound=Hashable)

FEW = 16
"""The maximum number of filters for which evaluating each one is faster than a lookup."""
NOTHING = parse("x = 1 AND x = 2")
"""A filter that matches nothing, in place of one that was removed from the index."""


class FilterIndex(Generic[K]):
    """A set of filters by key, which finds the keys of the filters that match an event."""

    def __init__(self) -> None:
        self._orders: dict[K, int] = {}
        self._keys: dict[int, K] = {}
        self._members: dict[int, tuple[Member, ...]] = {}
        self._next_order = 0
        self._repeated = 0
        """The number of filters with several conjunctions: only these can be found twice."""
        self._tests: list[tuple[Test, list[K]]] = []
        """The tests to evaluate while there are few filters: one for each set of equal filters."""
        self._rare = RareValues()
        self._store = Store()
        self._searching = 0
        """The number of filters that search in strings."""
        self._precomputation = StringPrecomputation()
        self._mentions: dict[str, int] = {}
        """How many filters mention each attribute."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} filters>"

    def __len__(self) -> int:
        return len(self._orders)

    def __contains__(self, key: object) -> bool:
        return key in self._orders

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_filters, (
            [
                (key, each[0].filter if (each := self._members[order]) else NOTHING)
                for key, order in self._orders.items()
            ],
        )

    def add(self, key: K, filter: Filter) -> None:
        """Add a filter under an unused key."""
        if key in self._orders:
            raise KeyError(f"{key!r} is already in the index; remove it first")
        order = self._next_order
        self._next_order += 1
        names = filter.names
        members = tuple([Member(order, filter, conjunction) for conjunction in filter.disjunction])
        if members:
            for name in names:
                self._mentions[name] = self._mentions.get(name, 0) + 1
        self._orders[key] = order
        self._keys[order] = key
        self._members[order] = members
        self._repeated += len(members) > 1
        self._searching += bool(members) and filter.has_searches
        for member in members:
            self._place(member)
        self._note_tests()

    def remove(self, key: K) -> None:
        """Remove the filter with this key. Raise a `KeyError` if there is none."""
        order = self._orders.pop(key)
        del self._keys[order]
        members = self._members.pop(order)
        self._repeated -= len(members) > 1
        self._searching -= bool(members) and members[0].filter.has_searches
        for name in members[0].filter.names if members else ():
            self._mentions[name] -= 1
            if not self._mentions[name]:
                del self._mentions[name]
        for member in members:
            self._rare.discount(demands_of(member.conjunction))
            if member.demand is not None:
                self._rare.remove(member)
            else:
                self._store.remove(member)
        self._note_tests()

    @property
    def names(self) -> Collection[str]:
        """Return the attributes that the filters mention."""
        return self._mentions.keys()

    def match(self, attributes: Attributes) -> list[K]:
        """Return the keys of the filters that an event matches, in the order in which they were added."""
        if self._searching:
            return self._precomputation.match(partial(self._match, attributes))
        return self._match(attributes)

    def _match(self, attributes: Attributes) -> list[K]:
        if len(self._orders) <= FEW:
            return self._test(attributes)
        return self._keys_of(self._rare.match(attributes) + self._store.match(attributes))

    def match_many(self, batch: Sequence[Attributes]) -> list[list[K]]:
        """Return the result of `match` for each event, faster than by single calls."""
        if self._searching:
            return self._precomputation.match(partial(self._match_many, batch))
        return self._match_many(batch)

    def precompute(self, attributes: Attributes) -> Iterator[int]:
        """Test patterns on an event's long strings, some milliseconds at a time, so that a later match is fast.

        Yields the number of steps taken each time: `STEPS`, or more if one pattern takes more.
        """
        if self._searching and any(type(value) is str and len(value) > LONG for value in attributes.values()):
            while steps := self._precomputation.look_ahead(partial(self._match, attributes)):
                yield steps

    @property
    def has_searches(self) -> bool:
        """Return whether a filter searches in strings, so that matching a long string can take long."""
        return self._searching > 0

    def _match_many(self, batch: Sequence[Attributes]) -> list[list[K]]:
        if len(self._orders) <= FEW:
            return list(map(self._test, batch))
        orders = [self._rare.match(attributes) for attributes in batch]
        self._store.match_many(batch, orders)
        return list(map(self._keys_of, orders))

    def _test(self, attributes: Attributes) -> list[K]:
        """Evaluate all filters."""
        found = [keys for test, keys in self._tests if test(attributes)]
        if len(found) == 1:
            return found[0].copy()
        return sorted(chain.from_iterable(found), key=self._orders.__getitem__)

    def may_cover(self, narrower: Filter) -> list[K]:
        """Return the keys of all filters that cover the given one, and possibly of others, in the order in which they
        were added.
        """
        witness = narrower.witness
        return list(self._orders) if witness is None else self.match(witness)

    def _note_tests(self) -> None:
        if len(self._orders) <= FEW:
            equal: dict[str, tuple[Test, list[K]]] = {}
            for key, order in self._orders.items():
                for member in self._members[order][:1]:
                    equal.setdefault(member.filter.text, (member.filter.test, []))[1].append(key)
            self._tests = list(equal.values())

    def _keys_of(self, orders: list[int]) -> list[K]:
        if self._repeated:
            orders = list(set(orders))
        orders.sort()
        return list(map(self._keys.__getitem__, orders))

    def _place(self, member: Member) -> None:
        demands = demands_of(member.conjunction)
        for moving in self._rare.count(demands):
            self._store.add(moving)
        if not self._rare.add(member, demands):
            self._store.add(member)


def _of_filters(filters: list[tuple[K, Filter]]) -> FilterIndex[K]:
    """Return an index with these filters, for unpickling."""
    index: FilterIndex[K] = FilterIndex()
    for key, filter in filters:
        index.add(key, filter)
    return index
