"""The part of a synchronous subscription that runs in its callers' threads.

Events are fetched in batches, so a loop over a subscription does not switch threads for each. Several threads can take
from the same subscription; each event goes to one of them.
"""

import threading
from collections import deque
from contextlib import suppress
from typing import Any, Generic, TypeVar

from gapless.client.arguments import check_count
from gapless.client.loop_thread import LoopThread
from gapless.client.synchronous import Synchronous

__all__ = ["Fetching"]

T = TypeVar("T")

FETCH = 256


class Fetching(Synchronous, Generic[T]):
    """Base class of synchronous subscriptions, which fetches their events from the event loop."""

    def __init__(self, loop: LoopThread, inner: Any) -> None:
        super().__init__(loop, inner)
        self._fetched: deque[T] = deque()
        self._has_history = False
        """Whether the fetched events come from history."""
        self._drained = threading.Condition()
        self._at_once = FETCH if inner._acks is None else 1
        """How many events iteration fetches at a time. A fetched event counts as taken, so a durable subscription would
        acknowledge it."""

    def _next(self) -> T:
        while True:
            with suppress(IndexError):  # another thread may have taken it
                item = self._fetched.popleft()
                self._note_drained()
                return item
            if not self._loop.run(self._fetch(self._at_once, None)):
                raise StopIteration

    def _take(self, most: int, *, timeout_s: float | None) -> list[T]:
        check_count("most", most)
        while True:
            events: list[T] = []
            with suppress(IndexError):
                while len(events) < most:
                    events.append(self._fetched.popleft())
            self._note_drained()
            if events or not self._loop.run(self._fetch(most, timeout_s)):
                return events

    async def _fetch(self, most: int, timeout_s: float | None) -> int:
        """Fetch events into the caller's buffer, so that none is lost if the caller is interrupted. Return how many."""
        was_caught_up = self._inner.is_caught_up
        events = await self._inner.take(most, timeout_s=timeout_s)
        with self._drained:
            self._has_history = self._has_history or (bool(events) and not was_caught_up)
            self._fetched.extend(events)
        return len(events)

    def _note_drained(self) -> None:
        if self._has_history:
            with self._drained:
                if not self._fetched:
                    self._has_history = False
                    self._drained.notify_all()

    def _backlog(self) -> int:
        waiting: int = self._inner.backlog
        return waiting + len(self._fetched)

    def _events_behind(self) -> int | None:
        behind: int | None = self._inner.events_behind
        return None if behind is None else behind + len(self._fetched)

    def _is_caught_up(self) -> bool:
        return self._inner.is_caught_up and not self._has_history

    def _caught_up(self) -> None:
        self._loop.run(self._inner.caught_up())
        with self._drained:
            self._drained.wait_for(lambda: not self._has_history)
