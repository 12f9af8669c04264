"""A connection to a broker that seems to be far away: what is written leaves `delay_ms` later, in order.

For development: a network on one machine has the latencies of one that spans a country, so that what takes a round trip
can be told from what takes none. Only what brokers send to each other is kept back; greetings and clients are not.
"""

import time
from collections import deque
from collections.abc import Sequence

from gapless.runtime.connection import Connection, ConnectionListener, Link
from gapless.runtime.refused_connections import RefusedConnections
from gapless.runtime.settings import RuntimeSettings

__all__ = ["DelayedConnection"]


class DelayedConnection(Connection):
    """A connection of a broker; distant if a broker is at the other end."""

    def __init__(
        self, links: ConnectionListener, settings: RuntimeSettings, target: Link | None = None, greeting: bytes = b""
    ) -> None:
        super().__init__(links, settings, target, greeting)
        self._loop = links.loop
        self._delay_s = settings.delay_ms / 1000
        self._waiting: deque[tuple[float, Sequence[bytes]]] = deque()

    def write(self, pieces: Sequence[bytes]) -> None:
        """Send whole frames, after all that was written before and not before their time."""
        if self.link is None or self.link.is_client:
            super().write(pieces)
        else:
            self._waiting.append((time.monotonic() + self._delay_s, pieces))
            if len(self._waiting) == 1:
                self._loop.call_later(self._delay_s, self._send_due)

    def _send_due(self) -> None:
        """An event loop that is late for its timers may be early by the clock; so look at the clock."""
        while self._waiting and self._waiting[0][0] <= time.monotonic():
            super().write(self._waiting.popleft()[1])
        if self._waiting:
            self._loop.call_later(max(0.001, self._waiting[0][0] - time.monotonic()), self._send_due)

    def unsent(self) -> int:
        """How many bytes were written but not sent."""
        return super().unsent() + sum(len(piece) for _, pieces in self._waiting for piece in pieces)

    def close(self, last: bytes = b"") -> None:
        """End the connection after what was written has been sent, and this."""
        self._send_all()
        super().close(last)

    def dismiss(self, last: bytes, refused_connections: RefusedConnections) -> None:
        """It is over for us at once; the other end is given the time to read what was written, and this."""
        self._send_all()
        super().dismiss(last, refused_connections)

    def _send_all(self) -> None:
        while self._waiting:
            super().write(self._waiting.popleft()[1])
