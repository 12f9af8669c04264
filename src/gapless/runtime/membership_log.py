"""Logs changes that a node reports: excluded and rejoined brokers, and lagging clients.

A client that starts to lag repeatedly is logged less and less often.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["MembershipLog"]

LAGGING_MAX = 100
"""The maximum number of lagging clients that are tracked, which is also the most that a node reports. If it reports
that many there may be more, so a missing client has not necessarily caught up."""


class MembershipLog:
    """Logs what has changed since the last report of one node."""

    def __init__(self, logger: Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._log_backoff = LogBackoff(clock)
        self._lagging: dict[str, bool] = {}
        """The lagging clients, and whether that was logged."""
        self._incarnation: int | None = None
        self._replaced_by: Mapping[str, str] = {}

    def log_changes(
        self, overview: Mapping[str, Any], has_session: Callable[[str], bool] = lambda client: True
    ) -> None:
        """Log the differences between the node's overview and the previous one. Protocols without these fields cause no
        logs.
        """
        if not overview:
            return
        incarnation, replaced_by = overview.get("incarnation"), overview.get("replaced_by", {})
        if self._incarnation is not None and incarnation != self._incarnation:
            self._logger.warning(
                "this broker was wrongly declared dead and has restarted with a new incarnation",
                extra={"event": "broker.restarted", "incarnation": incarnation},
            )
        for name in self._replaced_by:
            if name not in replaced_by:
                self._logger.info(f"broker {name} rejoined", extra={"event": "broker.rejoined", "peer": name})
        for name, successor in replaced_by.items():
            if self._replaced_by.get(name) != successor:
                self._logger.info(
                    f"broker {name} was excluded: {successor} takes over for it",
                    extra={"event": "broker.excluded", "peer": name, "successor": successor},
                )
        self._incarnation, self._replaced_by = incarnation, replaced_by
        self._log_lagging(overview.get("lagging", ()), has_session)

    def _log_lagging(self, clients: Iterable[str], has_session: Callable[[str], bool]) -> None:
        lagging = dict.fromkeys(clients)
        for client in lagging:
            if client not in self._lagging:
                is_said = self._lagging[client] = bool(self._log_backoff.due(client))
                if is_said:
                    self._logger.warning(
                        f"client {client} lags: brokers serve it from history from now on",
                        extra={"event": "client.lagging"},
                    )
        for client in [client for client in self._lagging if client not in lagging]:
            if self._lagging.pop(client) and len(lagging) < LAGGING_MAX:
                if has_session(client):
                    self._logger.info(f"client {client} has caught up", extra={"event": "client.caught_up"})
                else:
                    self._logger.info(
                        f"client {client} lagged and no longer has a session here", extra={"event": "client.lag_ended"}
                    )
