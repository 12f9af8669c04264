"""Small things of which thousands may be due at once: timers, and clients that are lost with their machine.

Each is done at once as long as there is time in this turn of the event loop, and else in one of the next, in order.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from gapless.runtime.clock import now_us

__all__ = ["TURN_US", "DeferredWork"]

TURN_US = 20_000
"""A fifth of what a turn may last: what was begun before is finished after, and then it is sent."""


class DeferredWork:
    """Those of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun_us: int | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def do(self, work: Callable[[], None]) -> None:
        """Do it, now or soon."""
        if self._waiting or not self._has_time():
            self._waiting.append(work)
        else:
            work()

    def _has_time(self) -> bool:
        now = now_us()
        if self._begun_us is None:
            self._begun_us = now
            self._loop.call_soon(self._begin)
        return now - self._begun_us <= TURN_US

    def _begin(self) -> None:
        """A new turn."""
        self._begun_us = None
        while self._waiting and self._has_time():
            self._waiting.popleft()()
