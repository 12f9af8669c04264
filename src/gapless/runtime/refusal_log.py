"""Logs and counts refusals: which peer, from which address, and why. Repetitions are logged with growing pauses.

Operators read this log, so it contains no token, key or other secret.
"""

from gapless.runtime.audit_log import AuditLog
from gapless.runtime.connection import Connection
from gapless.runtime.counters import Counters
from gapless.runtime.log_backoff import LogBackoff
from gapless.runtime.logs import Logger

__all__ = ["RefusalLog"]


class RefusalLog:
    """Logs the refusals of one node."""

    def __init__(self, name: str, counters: Counters, log_backoff: LogBackoff, logger: Logger) -> None:
        self._name = name
        self._counters = counters
        self._log_backoff = log_backoff
        self._logger = logger
        self.audit: AuditLog | None = None
        """The audit log, which records every refusal; None for a client."""

    def unauthenticated(self, address: str, code: str, reason: str) -> None:
        """Log a peer that was refused before its greeting."""
        self._counters.refused[code] += 1
        host = address.rpartition(":")[0]
        facts = {"peer": "?", "address": address, "code": code}
        self._note("connection.refused", reason, facts)
        self._log("connection.refused", (host, code, reason), f"refused: {reason}", facts)

    def denial(self, peer: str, address: str, reason: str, who: str = "") -> None:
        """Log a refused request of a peer whose connection continues."""
        self._counters.refused["denied"] += 1
        facts = {"peer": peer, "address": address, "code": "denied", **({"who": who} if who else {})}
        self._note("call.denied", reason, facts)
        self._log("call.denied", (peer, "denied", reason), f"denied: {reason}", facts)

    def ended(self, connection: Connection, code: str, reason: str) -> None:
        """Log that this node ends a connection."""
        self._counters.refused[code] += 1
        link, hello, identity = connection.link, connection.hello, connection.identity
        who = link.name if link is not None else hello.name if hello is not None else "?"
        facts = {"peer": who, "address": connection.peer_address, "code": code}
        if identity is not None and identity.name:
            facts["who"] = identity.text
        if code == "network":  # the reason for the peer is written from the peer's point of view
            reason = f"{who} has another network file than {self._name}; give every host the same file"
        if code in ("duplicate", "not-ready"):
            self._logger.debug(f"refused: {reason}", extra={"event": "connection.refused", **facts})
        else:
            event = "connection.ended" if connection.is_welcome else "login.refused"
            self._note(event, reason, facts)
            self._log(event, (who, code, reason), f"refused: {reason}", facts)

    def _note(self, event: str, reason: str, facts: dict[str, str]) -> None:
        if self.audit is not None:
            self.audit.refused(event, reason, facts)

    def _log(self, event: str, key: tuple[str, ...], text: str, facts: dict[str, str]) -> None:
        times = self._log_backoff.due(key)
        if times:
            count = {"times": times} if times > 1 else {}
            self._logger.warning(text, extra={"event": event, **facts, **count})
