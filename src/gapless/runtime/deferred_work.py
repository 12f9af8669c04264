"""Spreads work over several turns of the event loop: thousands of timers, or of lost clients, can be due at once.

A task runs at once if there is time left in this turn, and otherwise in a later turn, in order.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from gapless.runtime.clock import now_us

__all__ = ["TURN_US", "DeferredWork"]

TURN_US = 20_000
"""The time for deferred tasks in a turn, in microseconds. It is a fifth of the limit of a turn, so that other work fits
in."""


class DeferredWork:
    """The queue of deferred tasks of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._begun_us: int | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def do(self, work: Callable[[], None]) -> None:
        """Run the task now if there is time in this turn; otherwise in a later turn."""
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
        """Start a new turn and run waiting tasks."""
        self._begun_us = None
        while self._waiting and self._has_time():
            self._waiting.popleft()()
