"""A real broker in its own event loop, without sockets: tests pass it the data of connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from gapless.runtime.broker import Broker
from gapless.runtime.fleet import local_network
from gapless.runtime.settings import RuntimeSettings
from tests.fuzz.target import Unexpected

__all__ = ["RealBroker"]

SETTINGS = RuntimeSettings(hello_ms=3_600_000, suspect_ms=3_600_000, heartbeat_ms=1_000_000, event_max=4_096)
"""Long timeouts, because no time passes."""


_logger = logging.getLogger("gapless")
"""Disabled, because each refusal would log a line."""


class RealBroker:
    """A network of one broker; `failure` is the error that ended it."""

    def __init__(self) -> None:
        self._level = _logger.level
        _logger.setLevel(logging.CRITICAL + 1)
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda _, context: self._errors.append(context))
        self._errors: list[dict[str, Any]] = []
        self.broker = self.wait(self._make())

    async def _make(self) -> Broker:
        broker = Broker(local_network(1, f=0, ports=[7400], runtime=SETTINGS), "b0")
        broker._begin(0)
        return broker

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def check(self) -> None:
        if self.broker.failure.done():
            error = self.broker.failure.result()
            raise Unexpected(f"the broker failed: {error!r}") from error
        if self._errors:
            context = self._errors.pop()
            raise Unexpected(f"the event loop says: {context['message']}") from context.get("exception")

    def close(self) -> None:
        self.wait(self.broker.crash())
        self.loop.close()
        _logger.setLevel(self._level)
