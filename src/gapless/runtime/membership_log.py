"""What an operator reads in a broker's log of who is out and who is back, of halves that met, and of clients that lie
behind.

A client that falls behind again and again is told of less and less often.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["MembershipLog"]

BEHIND_MAX = 100
"""Clients that lie behind and are followed. A node tells of as many at most: if it tells of so many, there may be more,
and nobody who is not among them has caught up for sure."""


class MembershipLog:
    """Says what has changed since it last looked."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._log_backoff = LogBackoff(clock)
        self._behind: dict[str, bool] = {}
        """Who lies behind, and whether that was said."""
        self._life: int | None = None
        self._stand_ins: Mapping[str, str] = {}
        self._parted = [0, 0]

    def tell(self, overview: Mapping[str, Any], has_session: Callable[[str], bool] = lambda client: True) -> None:
        """Look at what the node says of itself; a protocol that does not say it has no news."""
        if not overview:
            return
        life, stand_ins = overview.get("life"), overview.get("stand_ins", {})
        if self._life is not None and life != self._life:
            self._logger.warning("was taken for dead, and has started over", extra={"life": life})
        for name in self._stand_ins:
            if name not in stand_ins:
                self._logger.info("back", extra={"peer": name})
        for name, chief in stand_ins.items():
            if self._stand_ins.get(name) != chief:
                self._logger.info("out", extra={"peer": name, "stand_in": chief})
        self._life, self._stand_ins = life, stand_ins
        parted = overview.get("parted", self._parted)
        if parted != self._parted:
            self._parted = parted
            self._logger.warning(
                "two halves of the network had gone on without each other: of what was published between these "
                "positions something may be missing, and every subscription is told so",
                extra={"since": parted[0], "until": parted[1]},
            )
        self._tell_who_lies_behind(overview.get("behind", ()), has_session)

    def _tell_who_lies_behind(self, clients: Iterable[str], has_session: Callable[[str], bool]) -> None:
        behind = dict.fromkeys(clients)
        for client in behind:
            if client not in self._behind:
                is_said = self._behind[client] = bool(self._log_backoff.due(client))
                if is_said:
                    self._logger.warning(f"client {client} lies behind: it is served out of history from now on")
        for client in [client for client in self._behind if client not in behind]:
            if self._behind.pop(client) and len(behind) < BEHIND_MAX:
                how = "has caught up" if has_session(client) else "lay behind, and has no session here any more"
                self._logger.info(f"client {client} {how}")
