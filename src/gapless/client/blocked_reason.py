"""Finds out which broker or disk delays a client's publications, and logs it.

If publications wait and nothing was confirmed for `PATIENCE_S`, the client asks all brokers what they wait for, as
`gapless status` does. It logs their answers, and keeps them for the application. It repeats this every `PATIENCE_S`
while publications are blocked.
"""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping

from gapless.errors import DeniedError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.probe import ask_for_report

__all__ = ["BlockedReason"]

PATIENCE_S = 5.0
ASKED_MAX = 64
"""The maximum number of brokers that are asked."""
OF_OTHERS = ("attach", "durable", "history")
"""The kinds of waits that delay only the client that they name."""

_DURATION = re.compile(r", for \d+ s\b")
"""The duration in a reason, which changes from one question to the next."""

_logger = logging.getLogger("gapless.client")


class BlockedReason:
    """Watches the publications of one client. `progress` returns how many are published and how many confirmed, or None
    if the protocol does not confirm publications.
    """

    def __init__(
        self,
        client: str,
        addresses: Mapping[str, str],
        progress: Callable[[], tuple[int, int]] | None,
        access: Access = CLEAR,
    ) -> None:
        self.reason = ""
        """Why publications are not confirmed: the broker or disk that the network waits for. Empty while they are
        confirmed."""
        self._client = client
        self._addresses = addresses
        self._access = access
        self._log_backoff = LogBackoff()
        watching = None if progress is None else asyncio.get_running_loop().create_task(self._watch(progress))
        self._watching = watching

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self, progress: Callable[[], tuple[int, int]]) -> None:
        before, due = -1, 0.0
        while True:
            await asyncio.sleep(PATIENCE_S / 2)
            published, confirmed = progress()
            now = time.monotonic()
            if not published > confirmed == before:
                before, due, self.reason = confirmed, now + PATIENCE_S, ""
            elif now >= due:
                reason = await self._ask()
                self.reason = reason if progress()[1] == before else ""
                due = now + PATIENCE_S
                if self.reason and self._log_backoff.due(_DURATION.sub("", self.reason)):
                    _logger.warning(
                        f"publications of {self._client} wait: {self.reason}", extra={"event": "publications.blocked"}
                    )

    async def _ask(self) -> str:
        some = list(self._addresses.items())[:ASKED_MAX]
        reasons = await asyncio.gather(*(self._waits(name, address) for name, address in some))
        found = [text for texts in reasons if texts is not None for text in texts]
        if found:
            return "; ".join(found)
        if None in reasons:
            return "only users with the right `status` can see the reason"
        return "all brokers answer and none waits for anything; they may be overloaded: run gapless doctor"

    async def _waits(self, name: str, address: str) -> list[str] | None:
        """Return descriptions of the reasons for which a broker waits, or None if the broker denies access."""
        try:
            report = await ask_for_report(address, timeout_s=PATIENCE_S, access=self._access)
        except DeniedError:
            return None
        except (OSError, TimeoutError, WireError):
            return [f"{name} does not answer"]
        waits = report.get("waits", ())
        return [
            f"{name} {wait['text']}" for wait in waits if wait["kind"] not in OF_OTHERS or self._client in wait["names"]
        ]
