"""What the rules know of a publication: its number, its time, and how far its past reaches.

The past of an event is a vector: for each other publisher, the highest number that happens before the event. The
event's own publisher is left out, because all its earlier events are in the past. The rules do not care where the
vector comes from: from a replay of all histories (`happens_before`), from the certificate of the trace, or from a
replay of parts that still grow (`live.replay`).
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

__all__ = ["Pasts", "Publication", "TracedPublication", "Vector"]

Vector: TypeAlias = Mapping[str, int]
"""Per publisher, the highest number that is in the past; publishers of which nothing is are left out."""


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
        """The causal order that it takes part in: the topic where each is judged by itself; `None` if in none."""

    @property
    def past(self) -> Vector:
        """How far its past reaches, in that order."""

    @property
    def advances(self) -> Vector:
        """At least the entries of its past that are higher than in its publisher's previous event."""


class Pasts(Protocol):
    """The past of every event of a run, by the event's number in it."""

    def past(self, number: int) -> Vector:
        """All of it."""

    def advances(self, number: int) -> Vector:
        """The entries that are higher than in its publisher's previous event."""


class TracedPublication:
    """An event of a trace that is whole."""

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
        """How far its past reaches."""
        return self._pasts.past(self._number)

    @property
    def advances(self) -> Vector:
        """The entries of its past that are higher than in its publisher's previous event."""
        return self._pasts.advances(self._number)
