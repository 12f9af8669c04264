"""Answers that requests share: who asks while an answer is fresh gets the same one.

Consoles ask the same again and again. With a shared answer ten of them cost their broker, and the network behind it,
as much as one.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from gapless.http.step_meter import StepMeter

__all__ = ["FRESH_S", "SharedAnswer"]

FRESH_S = 1.0


class SharedAnswer:
    """The answer to one question, asked again when it is older than `FRESH_S`."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, bytes]], steps: StepMeter, what: str) -> None:
        self._ask = ask
        self._steps = steps
        self._what = what
        self._task: asyncio.Task[bytes] | None = None
        self.asked_at = 0.0

    async def get(self) -> bytes:
        """The answer; if it fails, everybody who waits for it gets the error."""
        now = time.monotonic()
        if self._task is None or (self._task.done() and (now - self.asked_at > FRESH_S or self._task.exception())):
            self.asked_at = now
            self._task = self._steps.start(self._ask(), self._what)
            self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._task)
