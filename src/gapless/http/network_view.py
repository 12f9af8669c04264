"""Collects the reports of all brokers, queried once for all consoles.

Each broker answers every other one, so the console of one broker shows all of them.
"""

import asyncio
import time
from typing import Any

from gapless.errors import WireError
from gapless.http.broker_summary import broker_summary
from gapless.http.problems import ProblemError
from gapless.http.shared_answer import FRESH_S, Document, SharedAnswer
from gapless.http.step_meter import StepMeter
from gapless.overlay import Overlay
from gapless.runtime.access import CLEAR
from gapless.runtime.broker import Broker
from gapless.runtime.diagnosis import diagnose
from gapless.runtime.probe import ask_for_report
from gapless.runtime.report_query import Answer, ask_all

__all__ = ["NetworkView"]


class NetworkView:
    """The state of the network, as one broker can query it."""

    def __init__(self, broker: Broker, steps: StepMeter) -> None:
        self._broker = broker
        security = broker.config.security
        self.access = CLEAR if security is None else security.access(broker.name)
        """The credentials with which this broker queries the others."""
        self._brokers = SharedAnswer(self._ask_brokers, steps, "all brokers")
        self._clients = SharedAnswer(self._ask_clients, steps, "all clients")
        self._samples = SharedAnswer(self._ask_samples, steps, "all samples")

    async def brokers(self, fresh_s: float = FRESH_S) -> Document:
        """Return all brokers, the tree, and the problems found."""
        return await self._brokers.get(fresh_s)

    async def clients(self, fresh_s: float = FRESH_S) -> Document:
        """Return the clients of each broker, with their filters."""
        return await self._clients.get(fresh_s)

    async def samples(self) -> Document:
        """Return the recent figures of each broker."""
        return await self._samples.get()

    async def log(self, name: str, after: int) -> dict[str, Any]:
        """Return the last lines of one broker's log: `run` identifies the start of the broker, and `lines` are the
        lines after number `after`."""
        about = f"log {after}"
        if name == self._broker.name:
            own: dict[str, Any] = self._broker.report(about)["log"]
            return own
        address = self._broker.config.addresses.get(name)
        if address is None:
            raise ProblemError("not-found", f"this network has no broker {name[:80]!r}")
        try:
            report = await ask_for_report(address, access=self.access, about=about)
        except (OSError, TimeoutError, WireError) as error:
            raise ProblemError("unavailable", f"broker {name!r} does not answer: {error or 'no response'}") from None
        lines: dict[str, Any] = report["log"]
        return lines

    async def _ask_clients(self) -> dict[str, Any]:
        return await self._ask_all("clients")

    async def _ask_samples(self) -> dict[str, Any]:
        return await self._ask_all("samples")

    async def _ask_all(self, about: str) -> dict[str, Any]:
        answers = await self._answers(about)
        return {name: answer.report[about] for name, answer in answers.items() if answer.report is not None}

    async def _answers(self, about: str = "") -> dict[str, Answer]:
        """Return the reports of all brokers; only the other ones are queried over the network."""
        own, addresses = self._broker.name, self._broker.config.addresses
        others = await ask_all({name: at for name, at in addresses.items() if name != own}, self.access, about)
        await asyncio.sleep(0)
        reports = others | {own: Answer(self._broker.report(about))}
        return {name: reports[name] for name in addresses}

    async def _ask_brokers(self) -> dict[str, Any]:
        answers = await self._answers()
        document = self._document(answers)
        await asyncio.sleep(0)
        document["findings"] = [
            {"what": item.what, "todo": item.todo} for item in diagnose(answers, self._broker.config.addresses)
        ]
        return document

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


def _links(overlay: Overlay) -> list[tuple[str, str]]:
    return sorted({(min(a, b), max(a, b)) for a in overlay.brokers for b in overlay.neighbours(a)})
