"""A queue of delivered events that the application has not yet taken, each with its delivery number.

Runs of events stay encoded until the application takes or inspects one of their events.
"""

from collections import deque
from collections.abc import Container, Iterator

from gapless.event_runs import EventRun
from gapless.events import Event

__all__ = ["PendingEvents"]


class PendingEvents:
    """The pending events of one subscription, in order of delivery."""

    def __init__(self) -> None:
        self._opened: deque[tuple[int, Event]] = deque()
        """The events at the head of the queue, already created."""
        self._closed: deque[tuple[int, list[Event] | EventRun]] = deque()
        """The runs behind them in the queue, each with the delivery number of its first event."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple[int, Event]]:
        """Yield the pending events with their delivery numbers."""
        while self._closed:
            self._open()
        return iter(self._opened)

    @property
    def first(self) -> int:
        """Return the delivery number of the first event, or None."""
        return self._opened[0][0] if self._opened else self._closed[0][0]

    @property
    def last(self) -> int:
        """Return the delivery number of the last event, or None."""
        if self._closed:
            number, events = self._closed[-1]
            return number + len(events) - 1
        return self._opened[-1][0]

    def put(self, number: int, events: list[Event] | EventRun) -> None:
        """Append events; the first has this delivery number."""
        if events:
            self._closed.append((number, events))
            self._length += len(events)

    def take(self, most: int) -> list[Event]:
        """Remove and return up to `most` events from the head."""
        if most == 1 and self._opened:  # the common case: iteration
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
        """Remove and return the events with these delivery numbers."""
        gone = [event for number, event in self if number in numbers]
        if gone:
            self._opened = deque(item for item in self if item[0] not in numbers)
            self._length = len(self._opened)
        return gone

    def _open(self) -> None:
        number, events = self._closed.popleft()
        self._opened.extend(enumerate(events, number))
