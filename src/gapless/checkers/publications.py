"""Represents a publication for the checkers: its number, its time, and its past.

The past of an event is a vector: for each other publisher, the highest number that happens before
the event. The event's own publisher is omitted, because all its earlier events are in the past. The
rules do not depend on the source of the vector: a replay of all histories (`happens_before`), the
certificate of the trace, or a replay of growing parts (`live.replay`).
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

__all__ = ["Pasts", "Publication", "TracedPublication", "Vector"]

Vector: TypeAlias = Mapping[str, int]
"""For each publisher, the highest number in the past. Publishers without one are omitted."""


class Publication(Protocol):
    """An event that was published."""

    @property
    def publisher(self) -> str:
        """Return the publisher of the event."""

    @property
    def seq(self) -> int:
        """Return the sequence number of the event, counted from 1 for each publisher."""

    @property
    def event_id(self) -> str:
        """Return the name of the event, `publisher:seq`."""

    @property
    def published_ms(self) -> float:
        """Return the time at which `publish()` began."""

    @property
    def order(self) -> str | None:
        """Return the causal order to which the event belongs: its topic if topics are checked separately, or None."""

    @property
    def past(self) -> Vector:
        """Return the event's past in its causal order."""

    @property
    def advances(self) -> Vector:
        """Return a superset of the entries by which the past exceeds that of the publisher's previous event."""


class Pasts(Protocol):
    """The pasts of all events in a run, by their indices."""

    def past(self, number: int) -> Vector:
        """Return the past of an event."""

    def advances(self, number: int) -> Vector:
        """Return the entries by which the past exceeds that of the publisher's previous event."""


class TracedPublication:
    """An event of a complete trace."""

    __slots__ = ("_number", "_pasts", "event_id", "order", "published_ms", "publisher", "seq")

    def __init__(
        self, event_id: str, publisher: str, seq: int, published_ms: float, order: str | None, pasts: Pasts, number: int
    ) -> None:
        self.event_id = event_id
        self.publisher = publisher
        self.seq = seq
        self.published_ms = published_ms
        self.order = order
        self._pasts = pasts
        self._number = number

    @property
    def past(self) -> Vector:
        return self._pasts.past(self._number)

    @property
    def advances(self) -> Vector:
        return self._pasts.advances(self._number)
