"""Splits a run of events among its receivers.

Filters see the distinct rows of its attributes (`EventTable.project`); each row has the places of the events that have
it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from gapless.event_runs import DecodedTable, EventRun

__all__ = ["Division"]

T = TypeVar("T")


class Division:
    """Splits one run of events. The columns are decoded once, and receivers of the same events share one run."""

    def __init__(self, events: EventRun, names: Collection[str]) -> None:
        self.rows, self._places = events.table.project(names)
        """The distinct rows of the attributes with these names."""
        self._events = events
        self._decoded: DecodedTable | None = None
        self._chosen: dict[tuple[int, ...], EventRun] = {}

    def chosen(self, rows: Sequence[int]) -> EventRun:
        """Return the events that have one of these rows. At least one event must."""
        places = self._places
        if places is None or len(rows) == len(places):
            return self._events
        return self._pick(sorted(chain.from_iterable([places[row] for row in rows])))

    def divided(self, matches: Mapping[int, list[T]]) -> Iterator[tuple[list[T], EventRun]]:
        """Yield the events in order, each part with the matches of its row. Events whose row has no match are omitted.

        Consecutive events with equal matches form one part.
        """
        first = next(iter(matches.values()))
        if self._places is None or all(each == first for each in matches.values()):
            yield first, self.chosen(list(matches))
            return
        in_order = sorted((place, row) for row in matches for place in self._places[row])
        part: list[int] = []
        current: list[T] = []
        for place, row in in_order:
            if part and matches[row] != current:
                yield current, self._pick(part)
                part = []
            part.append(place)
            current = matches[row]
        yield current, self._pick(part)

    def _pick(self, places: list[int]) -> EventRun:
        key = tuple(places)
        if key not in self._chosen:
            if self._decoded is None:
                self._decoded = self._events.table.decoded()
            self._chosen[key] = self._events.picked(places, self._decoded.pick(places))
        return self._chosen[key]
