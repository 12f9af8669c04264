"""A connection between brokers that delays everything by `delay_ms`, for development.

On one machine, a network gets the latencies of a country-wide one, so that operations with and without round trips can
be told apart. Frames stay in order. Only traffic between brokers is delayed, not greetings and clients.
"""

import time
from collections import deque
from collections.abc import Sequence

from gapless.runtime.connection import Connection, ConnectionListener, Link
from gapless.runtime.refused_connections import RefusedConnections
from gapless.runtime.settings import RuntimeSettings

__all__ = ["DelayedConnection"]


class DelayedConnection(Connection):
    """A connection of a broker, which delays frames if the peer is a broker."""

    def __init__(
        self, links: ConnectionListener, settings: RuntimeSettings, target: Link | None = None, greeting: bytes = b""
    ) -> None:
        super().__init__(links, settings, target, greeting)
        self._loop = links.loop
        self._delay_s = settings.delay_ms / 1000
        self._waiting: deque[tuple[float, Sequence[bytes]]] = deque()

    def write(self, pieces: Sequence[bytes]) -> None:
        """Send whole frames after their delay, in order."""
        if self.link is None or self.link.is_client:
            super().write(pieces)
        else:
            self._waiting.append((time.monotonic() + self._delay_s, pieces))
            if len(self._waiting) == 1:
                self._loop.call_later(self._delay_s, self._send_due)

    def _send_due(self) -> None:
        """Send the frames that are due by the clock, because a late event loop can run timers early."""
        while self._waiting and self._waiting[0][0] <= time.monotonic():
            super().write(self._waiting.popleft()[1])
        if self._waiting:
            self._loop.call_later(max(0.001, self._waiting[0][0] - time.monotonic()), self._send_due)

    def unsent(self) -> int:
        return super().unsent() + sum(len(piece) for _, pieces in self._waiting for piece in pieces)

    def close(self, last: bytes = b"") -> None:
        self._send_all()
        super().close(last)

    def dismiss(self, last: bytes, refused_connections: RefusedConnections) -> None:
        self._send_all()
        super().dismiss(last, refused_connections)

    def _send_all(self) -> None:
        while self._waiting:
            super().write(self._waiting.popleft()[1])
