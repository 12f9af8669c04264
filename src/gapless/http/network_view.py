"""What the console shows of the network: the report of every broker, asked for once for all consoles.

Each broker answers to every other one, so the console of one broker shows all of them. Consoles that ask within
`FRESH_S` share one answer, so ten consoles cost as much as one.
"""

import asyncio
import time
from typing import Any

from gapless.runtime.access import CLEAR
from gapless.runtime.broker import Broker
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.report_query import Answer, ask_all

__all__ = ["NetworkView"]

FRESH_S = 1.0


class NetworkView:
    """As one broker sees it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        security = broker.config.security
        self._access = CLEAR if security is None else security.access(broker.name)
        self._asking: asyncio.Task[dict[str, Answer]] | None = None
        self._asked_at = 0.0

    async def _answers(self) -> dict[str, Answer]:
        now = time.monotonic()
        if self._asking is None or (self._asking.done() and now - self._asked_at > FRESH_S):
            self._asked_at = now
            self._asking = asyncio.ensure_future(ask_all(self._broker.config.addresses, self._access))
        return await asyncio.shield(self._asking)

    async def document(self) -> dict[str, Any]:
        """All brokers, the tree, and what is wrong."""
        answers = await self._answers()
        config = self._broker.config
        overlay = config.overlay
        return {
            "network": config.network.name,
            "protocol": config.protocol.name,
            "f": config.network.f,
            "here": self._broker.name,
            "links": [list(link) for link in _links(overlay)],
            "http": {entry.name: entry.http for entry in config.brokers},
            "time": time.time(),
            "brokers": {
                name: answer.report
                or {"broker": name, "up": False, "ready": False, "silence": answer.silence, "why": answer.why}
                for name, answer in answers.items()
            },
            "findings": [{"what": item.what, "todo": item.todo} for item in diagnose(answers, config.addresses)],
        }


def _links(overlay: Any) -> list[tuple[str, str]]:
    return sorted({(min(a, b), max(a, b)) for a in overlay.brokers for b in overlay.neighbours(a)})
