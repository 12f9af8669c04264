"""Dividing a run of events among those that it is for.

Filters see the distinct rows of its attributes (`EventTable.project`), each with the places of the events that have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias, TypeVar

from gapless.event_runs import EventRun

__all__ = ["Places", "chosen", "divided"]

T = TypeVar("T")
Places: TypeAlias = list[list[int]] | None
"""By distinct row: the places of the events that have it; None if all have the one row."""


def chosen(events: EventRun, places: Places, rows: Sequence[int]) -> EventRun:
    """Return the events that have these rows, at least one."""
    if places is None or len(rows) == len(places):
        return events
    return events.pick(sorted(chain.from_iterable(places[row] for row in rows)))


def divided(events: EventRun, matches: Mapping[int, list[T]], places: Places) -> Iterator[tuple[list[T], EventRun]]:
    """Yield the events with what their row matches, in order, without those of other rows.

    Events that match the same stay together if none between them matches anything else.
    """
    if not matches:
        return
    first = next(iter(matches.values()))
    if places is None or all(each == first for each in matches.values()):
        yield first, chosen(events, places, list(matches))
        return
    in_order = sorted((place, row) for row in matches for place in places[row])
    part: list[int] = []
    current: list[T] = []
    for place, row in in_order:
        if part and matches[row] != current:
            yield current, events.pick(part)
            part = []
        part.append(place)
        current = matches[row]
    yield current, events.pick(part)
