"""Logs changes that a node reports: excluded and rejoined brokers, merged partitions, and lagging
clients.

A client that starts to lag repeatedly is logged less and less often.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["MembershipLog"]

BEHIND_MAX = 100
"""Maximum number of lagging clients that are tracked. A node reports as many at most: if it reports
the maximum, there may be more, and a client that is missing from the report has not necessarily
caught up.
"""


class MembershipLog:
    """Logs what has changed since the last call."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._log_backoff = LogBackoff(clock)
        self._behind: dict[str, bool] = {}
        """Lagging clients, and whether that was logged."""
        self._life: int | None = None
        self._stand_ins: Mapping[str, str] = {}
        self._parted = [0, 0]

    def tell(self, overview: Mapping[str, Any], has_session: Callable[[str], bool] = lambda client: True) -> None:
        """Compare the node's overview with the previous one; a protocol without these fields causes
        no logs.
        """
        if not overview:
            return
        life, stand_ins = overview.get("life"), overview.get("stand_ins", {})
        if self._life is not None and life != self._life:
            self._logger.warning(
                "this broker was wrongly declared dead and has restarted with a new incarnation",
                extra={"event": "broker.restarted", "incarnation": life},
            )
        for name in self._stand_ins:
            if name not in stand_ins:
                self._logger.info(f"broker {name} rejoined", extra={"event": "broker.rejoined", "peer": name})
        for name, chief in stand_ins.items():
            if self._stand_ins.get(name) != chief:
                self._logger.info(
                    f"broker {name} excluded: {chief} takes over for it",
                    extra={"event": "broker.excluded", "peer": name, "successor": chief},
                )
        self._life, self._stand_ins = life, stand_ins
        parted = overview.get("parted", self._parted)
        if parted != self._parted:
            self._parted = parted
            self._logger.warning(
                "two partitions of the network both stayed active: events published between these positions "
                "may be missing; every subscription is notified",
                extra={"event": "partitions.merged", "since": parted[0], "until": parted[1]},
            )
        self._tell_who_lies_behind(overview.get("behind", ()), has_session)

    def _tell_who_lies_behind(self, clients: Iterable[str], has_session: Callable[[str], bool]) -> None:
        behind = dict.fromkeys(clients)
        for client in behind:
            if client not in self._behind:
                is_said = self._behind[client] = bool(self._log_backoff.due(client))
                if is_said:
                    self._logger.warning(f"client {client} lags: it is served from history from now on")
        for client in [client for client in self._behind if client not in behind]:
            if self._behind.pop(client) and len(behind) < BEHIND_MAX:
                how = "has caught up" if has_session(client) else "lagged, and has no session here any more"
                self._logger.info(f"client {client} {how}")
