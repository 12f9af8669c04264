"""What the console shows of the network: the report of every broker, asked for once for all consoles.

Each broker answers to every other one, so the console of one broker shows all of them. Consoles that ask within
`FRESH_S` share one answer, so ten consoles cost as much as one.
"""

import asyncio
import time
from typing import Any

import msgspec

from gapless.http.broker_summary import broker_summary
from gapless.http.step_meter import StepMeter
from gapless.overlay import Overlay
from gapless.runtime.access import CLEAR
from gapless.runtime.broker import Broker
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.report_query import Answer, ask_all

__all__ = ["NetworkView"]

FRESH_S = 1.0


class _Shared:
    """One question to all brokers that everybody who asks within `FRESH_S` shares, and the text of the answer."""

    def __init__(self, *, with_clients: bool) -> None:
        self.with_clients = with_clients
        self.task: asyncio.Task[bytes] | None = None
        self.asked_at = 0.0


class NetworkView:
    """As one broker sees it."""

    def __init__(self, broker: Broker, steps: StepMeter) -> None:
        self._broker = broker
        self._steps = steps
        security = broker.config.security
        self.access = CLEAR if security is None else security.access(broker.name)
        """How this broker asks the others."""
        self._brokers = _Shared(with_clients=False)
        self._clients = _Shared(with_clients=True)

    async def brokers(self) -> bytes:
        """All brokers, the tree, and what is wrong, as JSON."""
        return await self._shared(self._brokers)

    async def clients(self) -> bytes:
        """The clients of each broker with their filters, as JSON."""
        return await self._shared(self._clients)

    async def _shared(self, shared: _Shared) -> bytes:
        now = time.monotonic()
        if shared.task is None or (shared.task.done() and now - shared.asked_at > FRESH_S):
            shared.asked_at = now
            shared.task = asyncio.create_task(self._measured(with_clients=shared.with_clients))
        return await asyncio.shield(shared.task)

    async def _measured(self, *, with_clients: bool) -> bytes:
        return await self._steps.run(self._ask(with_clients=with_clients), "all brokers")

    async def _ask(self, *, with_clients: bool) -> bytes:
        answers = await ask_all(self._broker.config.addresses, self.access, with_clients=with_clients)
        if with_clients:
            return msgspec.json.encode(_clients_document(answers))
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
