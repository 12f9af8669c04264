"""The durable subscriptions that each user may see, for consoles that ask for them again and again."""

import time
from typing import Any

import msgspec

from gapless.http.callers import Caller
from gapless.http.clients import Clients
from gapless.http.shared_answer import FRESH_S, Document, SharedAnswer
from gapless.http.step_meter import StepMeter

__all__ = ["DurableLists"]


class DurableLists:
    """Of one gateway: users that ask at the same time share an answer only with themselves."""

    def __init__(self, clients: Clients, steps: StepMeter) -> None:
        self._clients = clients
        self._steps = steps
        self._answers: dict[tuple[str, str, str], SharedAnswer] = {}

    async def of(self, caller: Caller, fresh_s: float = FRESH_S) -> Document:
        """The durable subscriptions."""

        async def ask() -> list[dict[str, Any]]:
            async with self._clients.shared(caller) as shared:
                found = await shared.client.admin.list()
            return [{**msgspec.structs.asdict(each), "position": str(each.position)} for each in found]

        if caller.key not in self._answers:
            self._answers[caller.key] = SharedAnswer(ask, self._steps, "/durable")
        return await self._answers[caller.key].get(fresh_s)

    def forget(self) -> None:
        """Something has changed: ask again."""
        self._answers.clear()

    def tidy(self) -> None:
        """Drop answers that nobody asks for."""
        oldest = time.monotonic() - 2 * FRESH_S
        self._answers = {key: answer for key, answer in self._answers.items() if answer.asked_at > oldest}
