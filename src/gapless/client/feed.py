"""Passes events from a caller's thread into the event loop of its client.

The caller's source runs in the caller's thread, where it can be slow, or wait for events that this client itself
receives. Its events are sent as they are produced: the loop takes all that are available, without waiting for more. The
queue between the two threads is bounded, and the source waits while it is full.
"""

import asyncio
import threading
from collections import deque
from contextlib import suppress

from gapless.client.publications import Checked

__all__ = ["Feed"]


class Feed:
    """A bounded queue that one thread fills and the event loop consumes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self.is_cut_short = False
        """Whether the source failed. Its earlier events are published, but the caller does not wait until they are
        confirmed."""
        self._loop = loop
        self._most = most
        self._items: deque[Checked] = deque()
        self._changed = threading.Condition()
        self._something = asyncio.Event()
        self._is_ended = False
        self._is_abandoned = False

    # ---- called in the caller's thread ----------------------------------------------------------------------

    def put(self, item: Checked) -> bool:
        """Add an event when there is room. Return False if the consumer has stopped."""
        with self._changed:
            while len(self._items) >= self._most and not self._is_abandoned:
                self._changed.wait()
            if self._is_abandoned:
                return False
            self._items.append(item)
            if len(self._items) == 1:
                self._wake_loop()
        return True

    def end(self, *, is_cut_short: bool = False) -> None:
        """Mark the end of the events."""
        with self._changed:
            self.is_cut_short = is_cut_short
            self._is_ended = True
            self._wake_loop()

    def _wake_loop(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and its callers get that error
            self._loop.call_soon_threadsafe(self._something.set)

    # ---- called in the event loop ---------------------------------------------------------------------------

    async def take(self) -> list[Checked]:
        """Return the available events, up to a limit; an empty list at the end."""
        while True:
            with self._changed:
                batch = [self._items.popleft() for _ in range(min(self._most, len(self._items)))]
                if batch or self._is_ended:
                    self._changed.notify()
                    return batch
                self._something.clear()
            await self._something.wait()

    def abandon(self) -> None:
        """Stop consuming, so that the producing thread does not wait."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify()
