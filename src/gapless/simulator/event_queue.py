"""The queue of future events, ordered by virtual time.

Time is an integer number of microseconds. Entries of the same time are in one bucket and are
processed in the order in which they were added: this is the tie-break, and it needs no counter. A
heap orders only the distinct times, so a flood over links of equal latency costs an append per
message and not a sift.

An entry is `(receiver, item, link)`: the item is given to the receiver, and the link (None for
anything but a message) tells a fault which messages are in flight. If the receiver is None, the
item is a callable. The engine's loop reads `times`, `buckets` and `rest` directly; all other code
uses the methods.
"""

from collections.abc import Callable, Iterator
from heapq import heappush
from operator import length_hint
from typing import Any, TypeAlias

__all__ = ["Entry", "EventQueue"]

Entry: TypeAlias = tuple[Any, Any, Any]


def _nothing() -> None:
    """Replace a lost message, so that the other entries of a bucket keep their places while it is being read."""


_LOST: Entry = (None, _nothing, None)


class EventQueue:
    """A queue of entries by time. The current bucket may grow while it is being read."""

    __slots__ = ("buckets", "now", "rest", "times")

    def __init__(self) -> None:
        self.now = 0
        self.times: list[int] = []
        self.buckets: dict[int, list[Entry]] = {}
        self.rest: Iterator[Entry] = iter(())

    def put(self, time: int, entry: Entry) -> None:
        """Add an entry for `time`, after the entries that are already due then."""
        assert time >= self.now, "an entry cannot be added for a time in the past"
        bucket = self.buckets.get(time)
        if bucket is None:
            self.buckets[time] = [entry]
            heappush(self.times, time)
        else:
            bucket.append(entry)

    def call(self, time: int, action: Callable[[], None]) -> None:
        """Add a call for `time`, after the entries that are already due then."""
        self.put(time, (None, action, None))

    def lose(self, links: dict[Any, int]) -> int:
        """Remove messages in flight: for each link, all except the given number of first ones. Return how many were
        removed.
        """
        lost = 0
        spare = dict(links)
        for bucket, place, link in self._in_flight(spare):
            if spare[link] > 0:
                spare[link] -= 1
            else:
                bucket[place] = _LOST
                lost += 1
        return lost

    def in_flight(self, links: dict[Any, int]) -> dict[Any, int]:
        """Return the number of messages in flight on each of these links."""
        found = dict.fromkeys(links, 0)
        for _, _, link in self._in_flight(found):
            found[link] += 1
        return found

    def _in_flight(self, links: dict[Any, int]) -> Iterator[tuple[list[Entry], int, Any]]:
        for time in sorted(self.buckets):
            bucket = self.buckets[time]
            first = len(bucket) - length_hint(self.rest) if time == self.now else 0
            for place in range(first, len(bucket)):
                link = bucket[place][2]
                if link is not None and link in links:
                    yield bucket, place, link
