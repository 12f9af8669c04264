"""What a client did and its broker has not carried out yet, in order: runs of publications, and what it took back."""

from collections import deque
from collections.abc import Sequence

from gapless.events import Events
from gapless.filters.evaluation import Test
from gapless.protocols.gapless.client_messages import ClientUnadvertise
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.alike import joined, stretches

__all__ = ["Inbox"]


class Inbox:
    """Of one client."""

    def __init__(self) -> None:
        self._items: deque[Events | ClientUnadvertise] = deque()
        self._length = 0

    def __len__(self) -> int:
        """How many publications there are, and how much was taken back."""
        return self._length

    def put(self, events: Events) -> None:
        """The client published these."""
        self._items.append(events)
        self._length += len(events)

    def take_back(self, message: ClientUnadvertise) -> None:
        """The client took an advertisement back."""
        self._items.append(message)
        self._length += 1

    def clear(self) -> None:
        """Nothing of it will be carried out."""
        self._items.clear()
        self._length = 0

    @property
    def taken_back(self) -> ClientUnadvertise | None:
        """What the client took back, if that is next."""
        head = self._items[0] if self._items else None
        return head if isinstance(head, ClientUnadvertise) else None

    def pop_taken_back(self) -> None:
        """It was carried out."""
        self._items.popleft()
        self._length -= 1

    def take(self, most: int, tests: Sequence[Test], *, may_lose: bool = False) -> Events:
        """The next publications, up to so many, before the first that passes none of the tests.

        Tombstones pass if `may_lose` says so.
        """
        if may_lose:
            tests = (*tests, is_lost)
        if not self._items:
            return []
        found = self._take_run(most, tests)
        while found and self._items and len(found) < most:
            more = self._take_run(most - len(found), tests)
            if not more:
                break
            found = joined(found, more)
        self._length -= len(found)
        return found

    def _take_run(self, most: int, tests: Sequence[Test]) -> Events:
        """The same, of the next run alone."""
        run = self._items[0]
        if isinstance(run, ClientUnadvertise):
            return []
        events = run[:most] if len(run) > most else run
        alike = stretches(events)
        for place, (attributes, _) in enumerate(alike):
            if not any(test(attributes) for test in tests):
                events = events[: alike[place - 1][1]] if place else []
                break
        if len(events) == len(run):
            self._items.popleft()
        elif events:
            self._items[0] = run[len(events) :]
        return events
