"""Collects the known timestamps of a run's events, for subscriptions to history."""

from bisect import bisect_right
from collections.abc import Iterator

from gapless.events import Event
from gapless.positions import Position

__all__ = ["Stamps"]


class Stamps:
    """For each event of each publisher, the timestamp or a lower bound of it."""

    def __init__(self) -> None:
        self._published: dict[str, list[tuple[int, int]]] = {}
        self._stamps: dict[str, dict[int, int]] = {}

    @property
    def publishers(self) -> list[str]:
        """Return all publishers."""
        return sorted(self._published)

    def published(self, publisher: str, seq: int, now_us: int) -> None:
        """Record the time of a publication."""
        self._published.setdefault(publisher, []).append((now_us, seq))

    def delivered(self, event: Event) -> None:
        """Record the timestamp of a delivered event."""
        self._stamps.setdefault(event.publisher, {})[event.seq] = event.stamp

    def first_after(self, publisher: str, position: Position) -> int:
        """Return the first number that is certainly after the position, or the next number if there is none."""
        published = self._published[publisher]
        known = [seq for place, seq in self._places(publisher) if place > position]
        place = bisect_right(published, (position.timestamp, 1 << 62))
        known += [seq for _, seq in published[place : place + 1]]
        return min(known, default=published[-1][1] + 1)

    def between(self, publisher: str, since: int, until: int) -> tuple[int, int]:
        """Return the first and last number whose timestamps may be after one position and up to another."""
        return self.last_up_to(publisher, Position.at(since)) + 1, self.first_after(publisher, Position.at(until)) - 1

    def last_up_to(self, publisher: str, position: Position) -> int:
        """Return the last number that is certainly not after the position, or 0."""
        return max((seq for place, seq in self._places(publisher) if place <= position), default=0)

    def _places(self, publisher: str) -> Iterator[tuple[Position, int]]:
        return ((Position.after(stamp, publisher, seq), seq) for seq, stamp in self._stamps.get(publisher, {}).items())
