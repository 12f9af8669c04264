"""What the console shows of the network: the report of every broker, asked for once for all consoles.

Each broker answers to every other one, so the console of one broker shows all of them.
"""

import asyncio
import time
from typing import Any

import msgspec

from gapless.http.broker_summary import broker_summary
from gapless.http.shared_answer import SharedAnswer
from gapless.http.step_meter import StepMeter
from gapless.overlay import Overlay
from gapless.runtime.access import CLEAR
from gapless.runtime.broker import Broker
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.report_query import Answer, ask_all

__all__ = ["NetworkView"]


class NetworkView:
    """As one broker sees it."""

    def __init__(self, broker: Broker, steps: StepMeter) -> None:
        self._broker = broker
        security = broker.config.security
        self.access = CLEAR if security is None else security.access(broker.name)
        """How this broker asks the others."""
        self._brokers = SharedAnswer(self._ask_brokers, steps, "all brokers")
        self._clients = SharedAnswer(self._ask_clients, steps, "all clients")

    async def brokers(self) -> bytes:
        """All brokers, the tree, and what is wrong, as JSON."""
        return await self._brokers.get()

    async def clients(self) -> bytes:
        """The clients of each broker with their filters, as JSON."""
        return await self._clients.get()

    async def _ask_clients(self) -> bytes:
        answers = await ask_all(self._broker.config.addresses, self.access, with_clients=True)
        return msgspec.json.encode(_clients_document(answers))

    async def _ask_brokers(self) -> bytes:
        answers = await ask_all(self._broker.config.addresses, self.access)
        document = self._document(answers)
        await asyncio.sleep(0)
        document["findings"] = [
            {"what": item.what, "todo": item.todo} for item in diagnose(answers, self._broker.config.addresses)
        ]
        await asyncio.sleep(0)
        return msgspec.json.encode(document)

    def _document(self, answers: dict[str, Answer]) -> dict[str, Any]:
        config = self._broker.config
        return {
            "network": config.network.name,
            "protocol": config.protocol.name,
            "f": config.network.f,
            "here": self._broker.name,
            "links": [list(link) for link in _links(config.overlay)],
            "http": {entry.name: entry.http for entry in config.brokers},
            "time": time.time(),
            "brokers": {name: _summary(name, answer) for name, answer in answers.items()},
        }


def _summary(name: str, answer: Answer) -> dict[str, Any]:
    if answer.report is None:
        return {"name": name, "state": "down", "silence": answer.silence, "why": answer.why}
    return broker_summary(answer.report)


def _clients_document(answers: dict[str, Answer]) -> dict[str, Any]:
    return {name: answer.report["sessions"] for name, answer in answers.items() if answer.report is not None}


def _links(overlay: Overlay) -> list[tuple[str, str]]:
    return sorted({(min(a, b), max(a, b)) for a in overlay.brokers for b in overlay.neighbours(a)})
