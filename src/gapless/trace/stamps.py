"""What a run shows of the stamps of its events, for subscriptions that read history."""

from bisect import bisect_right

from gapless.events import Event

__all__ = ["Stamps"]


class Stamps:
    """By publisher, for each of its events a stamp, or a time that is no later than its stamp."""

    def __init__(self) -> None:
        self._published: dict[str, list[tuple[int, int]]] = {}
        self._stamps: dict[str, dict[int, int]] = {}

    @property
    def publishers(self) -> list[str]:
        """All who published."""
        return sorted(self._published)

    def published(self, publisher: str, seq: int, now_us: int) -> None:
        """The event was published then."""
        self._published.setdefault(publisher, []).append((now_us, seq))

    def delivered(self, event: Event) -> None:
        """The event was delivered, with its stamp."""
        self._stamps.setdefault(event.publisher, {})[event.seq] = event.stamp

    def first_after(self, publisher: str, position: int) -> int:
        """The first number that certainly has a larger stamp; the next after all, if there is none."""
        published = self._published[publisher]
        known = [seq for seq, stamp in self._stamps.get(publisher, {}).items() if stamp > position]
        place = bisect_right(published, (position, 1 << 62))
        known += [seq for _, seq in published[place : place + 1]]
        return min(known, default=published[-1][1] + 1)

    def between(self, publisher: str, since: int, until: int) -> tuple[int, int]:
        """The numbers that may have stamps after a position and up to another."""
        return self.last_up_to(publisher, since) + 1, self.first_after(publisher, until) - 1

    def last_up_to(self, publisher: str, position: int) -> int:
        """The last number that certainly has no larger stamp, or 0."""
        return max((seq for seq, stamp in self._stamps.get(publisher, {}).items() if stamp <= position), default=0)
