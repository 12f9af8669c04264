"""Events on their way from a caller's thread into the event loop of its client.

The caller's source runs in the caller's thread, where it may take its time, or wait for something that this client
itself receives. Its events leave as they come: the loop takes all that are there, and waits for no more. If a bounded
number lies in between, the source has to wait.
"""

import asyncio
import threading
from collections import deque
from contextlib import suppress

from gapless.client.publications import Checked

__all__ = ["Feed"]


class Feed:
    """Put at one end by one thread, taken at the other by the loop, in the same order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self.is_cut_short = False
        """Whether the source failed: what it gave counts, but nobody waits until that is confirmed."""
        self._loop = loop
        self._most = most
        self._items: deque[Checked] = deque()
        self._changed = threading.Condition()
        self._something = asyncio.Event()
        self._is_ended = False
        self._is_abandoned = False

    # ---- in the caller's thread ---------------------------------------------------------------------------

    def put(self, item: Checked) -> bool:
        """Pass it on, when there is room. False if nobody takes it any more."""
        with self._changed:
            while len(self._items) >= self._most and not self._is_abandoned:
                self._changed.wait()
            if self._is_abandoned:
                return False
            self._items.append(item)
            if len(self._items) == 1:
                self._tell()
        return True

    def end(self, *, is_cut_short: bool = False) -> None:
        """Nothing more comes."""
        with self._changed:
            self.is_cut_short = is_cut_short
            self._is_ended = True
            self._tell()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop has ended, and its waiters get that error
            self._loop.call_soon_threadsafe(self._something.set)

    # ---- in the loop --------------------------------------------------------------------------------------

    async def take(self) -> list[Checked]:
        """All that is there, but not too much; empty at the end."""
        while True:
            with self._changed:
                batch = [self._items.popleft() for _ in range(min(self._most, len(self._items)))]
                if batch or self._is_ended:
                    self._changed.notify()
                    return batch
                self._something.clear()
            await self._something.wait()

    def abandon(self) -> None:
        """Nothing is taken any more."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify()
