"""Applies filters to tables of events, decoding only the columns that a filter mentions."""

from collections.abc import Collection, Sequence
from functools import reduce
from itertools import chain, compress
from operator import or_
from typing import Protocol

from gapless.event_runs import EventRun, EventTable
from gapless.filters.evaluation import Test

__all__ = ["Condition", "is_covered", "matching"]


class Condition(Protocol):
    """A filter, or another object that tests attributes."""

    @property
    def test(self) -> Test: ...

    @property
    def names(self) -> Collection[str]:
        """Return the attributes that the test reads."""


def is_covered(table: EventTable, conditions: Sequence[Condition]) -> bool:
    """Return whether each event meets at least one of the conditions."""
    names: Collection[str] = (
        conditions[0].names
        if len(conditions) == 1
        else reduce(or_, (frozenset(each.names) for each in conditions), frozenset())
    )
    tests = [each.test for each in conditions]
    return all(any(test(row) for test in tests) for row in table.project(names).rows)


def matching(events: EventRun, condition: Condition) -> EventRun | None:
    """Return the events that match, or None if there are none."""
    rows, places = events.table.project(condition.names)
    test = condition.test
    matches = list(map(test, rows))
    if all(matches):
        return events
    if places is None or not any(matches):
        return None
    return events.pick(sorted(chain.from_iterable(compress(places, matches))))
