"""A publication as the rules see it: its number, its time, and its past.

The past of an event is a vector: for each other publisher, the highest number that happens before
the event. The event's own publisher is omitted, because all its earlier events are in the past. The
rules do not depend on the source of the vector: a replay of all histories (`happens_before`), the
certificate of the trace, or a replay of growing parts (`live.replay`).
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

__all__ = ["Pasts", "Publication", "TracedPublication", "Vector"]

Vector: TypeAlias = Mapping[str, int]
"""By publisher: the highest number in the past; publishers without one are omitted."""


class Publication(Protocol):
    """An event that was published."""

    @property
    def publisher(self) -> str:
        """Its publisher."""

    @property
    def seq(self) -> int:
        """Its number among those of its publisher, from 1."""

    @property
    def event_id(self) -> str:
        """`publisher:seq`."""

    @property
    def published_ms(self) -> float:
        """When `publish()` began."""

    @property
    def order(self) -> str | None:
        """Return the causal order that it belongs to: the topic if each is checked separately; None
        if none.
        """

    @property
    def past(self) -> Vector:
        """Return its past in that order."""

    @property
    def advances(self) -> Vector:
        """Return at least the entries of its past that are higher than in its publisher's previous event."""


class Pasts(Protocol):
    """The past of every event of a run, by the event's number in it."""

    def past(self, number: int) -> Vector:
        """Return the past of an event."""

    def advances(self, number: int) -> Vector:
        """Return the entries that are higher than in its publisher's previous event."""


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
        """Return its past."""
        return self._pasts.past(self._number)

    @property
    def advances(self) -> Vector:
        """Return the entries of its past that are higher than in its publisher's previous event."""
        return self._pasts.advances(self._number)
