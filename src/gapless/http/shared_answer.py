"""Shares answers between requests: a request gets the last answer as long as that is recent.

Scripts can ask the same question again and again. With a shared answer, ten of them cost their broker, and the network
behind it, as much as one.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import Any

import msgspec

from gapless.http.step_meter import StepMeter

__all__ = ["FRESH_S", "Document", "SharedAnswer"]

FRESH_S = 1.0


class Document:
    """A JSON document that is encoded once, for the first request that needs it."""

    def __init__(self, document: Any) -> None:
        self.document = document

    @cached_property
    def encoded(self) -> bytes:
        """Return the document as JSON."""
        return msgspec.json.encode(self.document)


class SharedAnswer:
    """The answer to one question, which is queried again when it is older than `FRESH_S`."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, Any]], steps: StepMeter, what: str) -> None:
        self._ask = ask
        self._steps = steps
        self._what = what
        self._task: asyncio.Task[Document] | None = None
        self.asked_at = 0.0

    async def get(self, fresh_s: float = FRESH_S) -> Document:
        """Return the answer, at most `fresh_s` old. If the query fails, all waiting requests get the error."""
        now = time.monotonic()
        if self._task is None or (self._task.done() and (now - self.asked_at > fresh_s or self._task.exception())):
            self.asked_at = now
            self._task = self._steps.start(self._answer(), self._what)
            self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._task)

    async def _answer(self) -> Document:
        return Document(await self._ask())
