"""Why publications do not become safe: somebody in the network holds everybody up, and the publisher has to know who.

No broker may forget what a client has not taken, so one that takes nothing stops all publishers in the end, wherever
they are. If something waits and nothing has become safe for `PATIENCE_S`, the client asks all brokers what they wait
for, as `gapless status` does. It writes their answers to its log, and keeps them for the application.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping

from gapless.errors import DeniedError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.probe import ask_for_report
from gapless.runtime.reminders import Reminders

__all__ = ["HoldUp"]

PATIENCE_S = 5.0
ASKED_MAX = 64
"""Brokers that are asked."""

_logger = logging.getLogger("gapless.client")


class HoldUp:
    """Watches the publications of one client. `progress` is how many are published and how many are safe; None if the
    protocol does not tell."""

    def __init__(
        self,
        client: str,
        addresses: Mapping[str, str],
        progress: Callable[[], tuple[int, int]] | None,
        access: Access = CLEAR,
    ) -> None:
        self.reason = ""
        """For what the network waits, in words; nothing if all goes well."""
        self._client = client
        self._addresses = addresses
        self._access = access
        self._reminders = Reminders()
        watching = None if progress is None else asyncio.get_running_loop().create_task(self._watch(progress))
        self._watching = watching

    def close(self) -> None:
        """Watch no more."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, progress: Callable[[], tuple[int, int]]) -> None:
        before = -1
        while True:
            await asyncio.sleep(PATIENCE_S)
            published, safe = progress()
            self.reason = await self._ask() if published > safe == before else ""
            before = safe
            if self.reason and self._reminders.due(self.reason.rpartition(", for ")[0]):
                _logger.warning(f"publications of {self._client} wait: {self.reason}")

    async def _ask(self) -> str:
        some = list(self._addresses.items())[:ASKED_MAX]
        told = await asyncio.gather(*(self._waits(name, address) for name, address in some))
        found = [text for texts in told for text in texts]
        return "; ".join(found) or "no broker says why; gapless status shows how they are"

    async def _waits(self, name: str, address: str) -> list[str]:
        try:
            report = await ask_for_report(address, timeout_s=PATIENCE_S, access=self._access)
        except DeniedError:
            return []  # it may tell, but not us
        except (OSError, TimeoutError, WireError):
            return [f"{name} does not answer"]
        return [f"{name} {wait['text']}" for wait in report.get("waits", ()) if wait["is_long"]]
