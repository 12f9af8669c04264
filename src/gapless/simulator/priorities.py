"""Schedules deliveries by random priorities (PCT), which finds bugs that depend on few orderings with a known
probability.

Each direction of a connection has a random priority. One message is delivered in each slot of `SLOT_US`: the first of
the connection with the highest priority that has any. In d - 1 slots, drawn from all slots up to a second after the
last act, the priority of the current connection drops below all others. So most connections seem fast and few very
slow, which triggers bugs with few causes; random latencies seldom do.

A bug of depth d appears if d messages, or fewer, are delivered in a certain order. With n connections and k slots a run
finds it with a probability of at least 1 / (n k^(d-1)), whatever the bug is (Burckhardt, Kothari, Musuvathi and
Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs*, ASPLOS 2010). Here time advances,
so the bound holds for bugs that do not depend on timers.
"""

import random
from collections import deque
from typing import Any

from gapless.errors import ScenarioError
from gapless.simulator.event_queue import Entry, EventQueue

__all__ = ["LATENCY", "PriorityQueue", "chance", "depth_of"]

LATENCY = "latency"
SLOT_US = 250
AFTER_US = 1_000_000
"""How long after the last action priorities can change."""


def depth_of(schedule: str) -> int:
    """Return the depth D of a schedule `pct:D`, or 0 for schedules by latency."""
    kind, _, depth = schedule.partition(":")
    if schedule == LATENCY:
        return 0
    if kind != "pct" or not depth.isdecimal() or not 1 <= int(depth) <= 100:
        raise ScenarioError(f"there is no schedule {schedule!r}; choose latency, or pct:D with a depth D from 1 to 100")
    return int(depth)


def chance(connections: int, last_act_us: int, depth: int) -> float:
    """Return the minimum probability that a run finds a bug of this depth."""
    return 1.0 / (connections * float(_slots(last_act_us)) ** (depth - 1))


def _slots(last_act_us: int) -> int:
    return (last_act_us + AFTER_US) // SLOT_US


class PriorityQueue(EventQueue):
    """An event queue that delivers messages by the priorities of their connections, and all other entries at their
    times.
    """

    __slots__ = ("_changes", "_dice", "_is_due", "_lowest", "_priorities", "_queues")

    def __init__(self, depth: int, seed: int) -> None:
        super().__init__()
        self._dice = random.Random(f"{seed}/priorities")
        self._changes: list[int] = [0] * (depth - 1)
        self._lowest = 0.0
        self._priorities: dict[Any, float] = {}
        self._queues: dict[Any, deque[Entry]] = {}
        self._is_due = False

    @property
    def connections(self) -> int:
        """Return the number of connections on which messages were sent."""
        return len(self._priorities)

    def plan(self, last_act_us: int) -> None:
        """Draw the slots in which priorities change."""
        count = _slots(last_act_us)
        self._changes = sorted((self._dice.randrange(count) * SLOT_US for _ in self._changes), reverse=True)

    def put(self, time: int, entry: Entry) -> None:
        """Queue a message, or schedule another entry at its time."""
        link = entry[2]
        if link is None:
            super().put(time, entry)
            return
        if link not in self._priorities:
            self._priorities[link] = 1.0 + self._dice.random()
        self._queues.setdefault(link, deque()).append(entry)
        if not self._is_due:
            self._is_due = True
            self.call(self.now + SLOT_US, self._deliver)

    def _deliver(self) -> None:
        """Deliver the message of the current slot."""
        self._is_due = False
        if not self._queues:
            return
        link = self._first()
        while self._changes and self._changes[-1] <= self.now:
            self._changes.pop()
            self._lowest -= 1.0
            self._priorities[link] = self._lowest
            link = self._first()
        queue = self._queues[link]
        super().put(self.now, queue.popleft())
        if not queue:
            del self._queues[link]
        if self._queues:
            self._is_due = True
            self.call(self.now + SLOT_US, self._deliver)

    def _first(self) -> Any:
        return max(self._queues, key=self._priorities.__getitem__)

    def lose(self, links: dict[Any, int]) -> int:
        under_way = super().in_flight(links)
        lost = super().lose(links)
        for link, spare in links.items():
            queue = self._queues.get(link)
            keep = max(0, spare - under_way[link])
            while queue and len(queue) > keep:
                queue.pop()
                lost += 1
            if queue is not None and not queue:
                del self._queues[link]
        return lost

    def in_flight(self, links: dict[Any, int]) -> dict[Any, int]:
        found = super().in_flight(links)
        return {link: count + len(self._queues.get(link, ())) for link, count in found.items()}
