"""What a client was sent, or is to be sent, and has not taken: runs, each for the same subscriptions."""

from collections import deque
from collections.abc import Iterator
from itertools import chain, repeat

import msgspec

from gapless.events import Events

__all__ = ["Outbox", "Outgoing"]


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """Events in order, and the subscriptions that they are for. They are of one publisher, or came out of history."""

    events: Events
    names: list[str]
    is_history: bool = False
    """Whether they came out of history."""

    def part(self, begin: int, end: int) -> "Outgoing":
        """Some of them."""
        return Outgoing(self.events[begin:end], self.names, self.is_history)


class Outbox:
    """Of one client: first what was sent, then what was not."""

    def __init__(self) -> None:
        self.sent = 0
        """How many of the events were sent."""
        self.from_history = 0
        """How many of them came out of history."""
        self.length = 0
        """How many events there are, as `len` says."""
        self._sent: deque[Outgoing] = deque()
        self._waiting: deque[Outgoing] = deque()

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Outgoing]:
        return chain(self._sent, self._waiting)

    def put(self, run: Outgoing) -> None:
        """Further events."""
        self._waiting.append(run)
        self.length += len(run.events)
        if run.is_history:
            self.from_history += len(run.events)

    @property
    def next(self) -> Outgoing:
        """The next run that was not sent."""
        return self._waiting[0]

    def send(self, most: int) -> Events:
        """The next events that were not sent, for the same subscriptions, up to so many. They count as sent."""
        run = self._waiting.popleft()
        if len(run.events) > most:
            self._waiting.appendleft(run.part(most, len(run.events)))
            run = run.part(0, most)
        self._sent.append(run)
        self.sent += len(run.events)
        return run.events

    def drop(self, count: int) -> None:
        """The client has taken so many of what was sent."""
        self.length -= count
        self.sent -= count
        while count:
            run = self._sent.popleft()
            size = len(run.events)
            taken = min(size, count)
            if run.is_history:
                self.from_history -= taken
            if taken < size:
                self._sent.appendleft(run.part(taken, size))
            count -= taken

    def drop_unsent(self) -> list[int]:
        """Drop what was not sent and did not come out of history. All the rest counts as if it came out of history.

        Returns the new place of each event, or of the next one that stayed; and of the end.
        """
        places: list[int] = []
        kept: list[Outgoing] = []
        count = 0
        for run, stays in chain(zip(self._sent, repeat(True)), ((run, run.is_history) for run in self._waiting)):
            size = len(run.events)
            places += range(count, count + size) if stays else [count] * size
            if stays:
                kept.append(Outgoing(run.events, run.names, True))
                count += size
        sent = len(self._sent)
        self._sent, self._waiting = deque(kept[:sent]), deque(kept[sent:])
        self.length = self.from_history = count
        return [*places, count]

    def place_after(self, subscription: str) -> int:
        """The place after the last event for that subscription."""
        place = self.length
        for run in chain(reversed(self._waiting), reversed(self._sent)):
            if subscription in run.names:
                break
            place -= len(run.events)
        return place
