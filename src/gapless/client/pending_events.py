"""The delivered events that wait for the application, each with the number of its delivery.

Runs stay together until the application takes or inspects a part of one: only then are its events created.
"""

from collections import deque
from collections.abc import Container, Iterator

from gapless.event_runs import EventRun
from gapless.events import Event

__all__ = ["PendingEvents"]


class PendingEvents:
    """The pending events of one subscription, in order."""

    def __init__(self) -> None:
        self._opened: deque[tuple[int, Event]] = deque()
        """The first events, one by one."""
        self._closed: deque[tuple[int, list[Event] | EventRun]] = deque()
        """The later runs, with the number of the first event of each."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        """Yield numbers and events."""
        while self._closed:
            self._open()
        return iter(self._opened)

    @property
    def first(self) -> int:
        """Return the number of the first event, if there is one."""
        return self._opened[0][0] if self._opened else self._closed[0][0]

    @property
    def last(self) -> int:
        """Return the number of the last event, if there is one."""
        if self._closed:
            number, events = self._closed[-1]
            return number + len(events) - 1
        return self._opened[-1][0]

    def put(self, number: int, events: list[Event] | EventRun) -> None:
        """Add events; the first has this number."""
        if events:
            self._closed.append((number, events))
            self._length += len(events)

    def take(self, most: int) -> list[Event]:
        """Remove and return the first events, at most `most`."""
        if most == 1 and self._opened:  # as iteration does
            self._length -= 1
            return [self._opened.popleft()[1]]
        found = self._take_opened(most)
        while self._closed and len(found) < most:
            if len(self._closed[0][1]) <= most - len(found):
                found += self._closed.popleft()[1]
            else:
                self._open()
                found += self._take_opened(most - len(found))
        self._length -= len(found)
        return found

    def _take_opened(self, most: int) -> list[Event]:
        pop = self._opened.popleft
        return [pop()[1] for _ in range(min(most, len(self._opened)))]

    def withdraw(self, numbers: Container[int]) -> list[Event]:
        """Remove the events with these numbers."""
        gone = [event for number, event in self if number in numbers]
        if gone:
            self._opened = deque(item for item in self if item[0] not in numbers)
            self._length = len(self._opened)
        return gone

    def _open(self) -> None:
        number, events = self._closed.popleft()
        self._opened.extend(enumerate(events, number))
