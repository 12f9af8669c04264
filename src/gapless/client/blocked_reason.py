"""Why publications do not become safe: somebody in the network holds everybody up, and the publisher has to know who.

No broker may forget what a client has not taken, so one that takes nothing stops all publishers in the end, wherever
they are, until the protocol leaves it behind. If something waits and nothing has become safe for half of that time, or
for `PATIENCE_S` if that is less, the client asks all brokers what they wait for, as `gapless status` does. It writes
their answers to its log, and keeps them for the application. It asks again after pauses that double, up to
`PATIENCE_S`. That nobody says why, or does not answer, is worth a word only when nothing has become safe for so long.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping

from gapless.errors import DeniedError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.probe import ask_for_report

__all__ = ["BlockedReason"]

PATIENCE_S = 5.0
ASKED_MAX = 64
"""Brokers that are asked."""

_logger = logging.getLogger("gapless.client")


class BlockedReason:
    """Watches the publications of one client. `progress` is how many are published and how many are safe; None if the
    protocol does not tell. `lag_s` is for how long everybody waits for a client that takes nothing."""

    def __init__(
        self,
        client: str,
        addresses: Mapping[str, str],
        progress: Callable[[], tuple[int, int]] | None,
        access: Access = CLEAR,
        lag_s: float = math.inf,
    ) -> None:
        self.reason = ""
        """For what the network waits, in words; nothing if all goes well."""
        self._client = client
        self._addresses = addresses
        self._access = access
        self._lag_s = lag_s
        self._log_backoff = LogBackoff()
        watching = None if progress is None else asyncio.get_running_loop().create_task(self._watch(progress))
        self._watching = watching

    def close(self) -> None:
        """Watch no more."""
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, progress: Callable[[], tuple[int, int]]) -> None:
        before, since, due, pause_s = -1, 0.0, 0.0, 0.0
        while True:
            patience_s = min(PATIENCE_S, self._lag_s / 2)
            await asyncio.sleep(patience_s / 2)
            published, safe = progress()
            now = time.monotonic()
            if not published > safe == before:
                before, since, pause_s, self.reason = safe, now, patience_s / 2, ""
                due = now + patience_s
            elif now >= due:
                self.reason = await self._ask(patience_s, is_early=now - since < PATIENCE_S)
                pause_s = PATIENCE_S if self.reason else min(2 * pause_s, PATIENCE_S)
                due = now + pause_s
            if self.reason and self._log_backoff.due(self.reason.rpartition(", for ")[0]):
                _logger.warning(f"publications of {self._client} wait: {self.reason}")

    async def _ask(self, timeout_s: float, *, is_early: bool) -> str:
        some = list(self._addresses.items())[:ASKED_MAX]
        told = await asyncio.gather(*(self._waits(name, address, timeout_s, is_early) for name, address in some))
        found = [text for texts in told for text in texts]
        nothing = "" if is_early else "no broker says why; gapless status shows how they are"
        return "; ".join(found) or nothing

    async def _waits(self, name: str, address: str, timeout_s: float, is_early: bool) -> list[str]:
        try:
            report = await ask_for_report(address, timeout_s=timeout_s, access=self._access)
        except DeniedError:
            return []  # it may tell, but not us
        except (OSError, TimeoutError, WireError):
            return [] if is_early else [f"{name} does not answer"]
        return [f"{name} {wait['text']}" for wait in report.get("waits", ()) if wait["is_long"]]
