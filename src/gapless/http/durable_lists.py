"""Caches the durable subscriptions that each user may see, because consoles ask periodically."""

import time
from typing import Any

import msgspec

from gapless.http.callers import Caller
from gapless.http.clients import Clients
from gapless.http.shared_answer import FRESH_S, Document, SharedAnswer
from gapless.http.step_meter import StepMeter

__all__ = ["DurableLists"]


class DurableLists:
    """The cached lists of one gateway. Only requests of the same user share a list."""

    def __init__(self, clients: Clients, steps: StepMeter) -> None:
        self._clients = clients
        self._steps = steps
        self._answers: dict[tuple[str, str, str], SharedAnswer] = {}

    async def of(self, caller: Caller, fresh_s: float = FRESH_S) -> Document:
        """Return the durable subscriptions that the user may see, at most `fresh_s` old."""

        async def ask() -> list[dict[str, Any]]:
            async with self._clients.shared(caller) as shared:
                found = await shared.client.admin.list()
            return [{**msgspec.structs.asdict(each), "position": str(each.position)} for each in found]

        if caller.key not in self._answers:
            self._answers[caller.key] = SharedAnswer(ask, self._steps, "/durable")
        return await self._answers[caller.key].get(fresh_s)

    def forget(self) -> None:
        """Discard the cached lists, because a durable subscription has changed."""
        self._answers.clear()

    def prune(self) -> None:
        """Drop lists that were not used recently."""
        oldest = time.monotonic() - 2 * FRESH_S
        self._answers = {key: answer for key, answer in self._answers.items() if answer.asked_at > oldest}
