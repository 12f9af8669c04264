"""Which events of a durable subscription are acknowledged, as tracked by its client or its coordinator.

Everything up to a **position** is acknowledged; beyond it, everything up to the last number of each publisher (`got`);
beyond those, single events (`done`). Events and positions are kept in the order of arrival. The oldest ones are merged
into the position and the last numbers as soon as they are acknowledged.
"""

from collections import deque
from typing import NamedTuple

from gapless.protocols.gapless.durable.messages import DurableRecord, Item, Outstanding, Progress
from gapless.protocols.parts.ranges import Ranges, add_range

__all__ = ["ProgressTracker"]

POSITION_STEP_US = 5_000_000
"""How far a position advances without acknowledgements before it is written to the register."""


class _Arrival(NamedTuple):
    key: Item | None
    """The event, or None for a position."""
    timestamp: int
    is_lost: bool = False


class ProgressTracker:
    """Tracks the acknowledgements of one durable subscription since it was attached or got a new coordinator."""

    def __init__(self, record: DurableRecord) -> None:
        known = record.progress
        self.position = self._written = known.position
        self.delivered = known.delivered
        """An upper bound of the timestamps of delivered events."""
        self._got = {publisher: (seq, known.latest) for publisher, seq in known.got.items()}
        """The last acknowledged number of each publisher beyond the position, and its timestamp."""
        self._earlier: Ranges = {publisher: list(ranges) for publisher, ranges in known.done.items()}
        self._order: deque[_Arrival] = deque()
        self._acknowledged: set[Item] = set()
        """Acknowledged events that are not merged yet, because earlier ones are unacknowledged."""

    def __len__(self) -> int:
        return len(self._order)

    def earlier(self, publisher: str) -> list[tuple[int, int]]:
        """Return the ranges of a publisher's numbers that were acknowledged before this tracker began and may arrive
        again."""
        return self._earlier.get(publisher, [])

    def record_arrival(self, key: Item, timestamp: int) -> bool:
        """Record the arrival of an event. Return whether it is still unacknowledged."""
        self._order.append(_Arrival(key, timestamp))
        if any(first <= key.seq <= last for first, last in self.earlier(key.publisher)):
            self._acknowledged.add(key)
        return key not in self._acknowledged

    def lost(self, publisher: str, last: int, timestamp: int) -> None:
        """Count numbers that will never arrive as acknowledged."""
        self._order.append(_Arrival(Item(publisher, last), timestamp, is_lost=True))
        self.advance()

    def reached(self, position: int) -> None:
        if self._order and self._order[-1].key is None:
            self._order.pop()
        self._order.append(_Arrival(None, position))

    def acknowledge(self, key: Item) -> None:
        """Record the acknowledgement of an event, which may not have arrived yet."""
        self._acknowledged.add(key)

    def advance(self) -> list[Item]:
        """Merge the oldest events into the position as long as they are acknowledged. Return the merged events."""
        order, passed = self._order, []
        while order and (order[0].key is None or order[0].is_lost or order[0].key in self._acknowledged):
            key, timestamp, is_lost = order.popleft()
            if key is None:
                if timestamp > self.position:
                    self.position = timestamp
                    self._got = {name: last for name, last in self._got.items() if last[1] > timestamp}
                continue
            self._got[key.publisher] = max((key.seq, timestamp), self._got.get(key.publisher, (0, 0)))
            earlier = self.earlier(key.publisher)
            while earlier and earlier[0][1] <= key.seq:
                earlier.pop(0)
            if not is_lost:
                self._acknowledged.discard(key)
                passed.append(key)
        return passed

    @property
    def has_advanced(self) -> bool:
        """Return whether the position is at least `POSITION_STEP_US` ahead of the written one."""
        return self.position - self._written >= POSITION_STEP_US

    def write(self, outstanding: list[Outstanding]) -> Progress:
        """Return the progress to be written to the register."""
        self._written = self.position
        got = {publisher: seq for publisher, (seq, _) in self._got.items()}
        latest = max((timestamp for _, timestamp in self._got.values()), default=0)
        done: Ranges = {publisher: list(ranges) for publisher, ranges in self._earlier.items() if ranges}
        for publisher, seq in sorted(self._acknowledged):
            add_range(done, publisher, seq, seq)
        return Progress(self.position, got, latest, self.delivered, done, outstanding)
