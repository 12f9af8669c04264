"""Bounds each turn of the event loop, however many peers have sent data.

The loop reads from all readable connections before it sends and runs its timers. With a hundred
busy clients that can take seconds; meanwhile this node sends nothing, and peers suspect it. So a
peer whose turn comes after `TURN_US` waits for one of the next turns, in order of arrival. A peer
that has sent more than fits into a turn, in one batch or in several, waits with the remainder.
"""

import asyncio
from collections.abc import Callable

from gapless.runtime.clock import now_us
from gapless.runtime.connection import Connection
from gapless.runtime.deferred_work import TURN_US

__all__ = ["Turns"]

NEVER = 1 << 62


class Turns:
    """Decides which connections are read in this turn. `is_readable` returns whether a connection
    may be read.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, is_readable: Callable[[Connection], bool]) -> None:
        self._loop = loop
        self._is_readable = is_readable
        self._begun_us: int | None = None
        self._waiting: dict[Connection, None] = {}

    def has_time_for(self, connection: Connection) -> bool:
        """Return whether the connection is read now. If not, reading is paused, and the connection is resumed when its
        turn comes."""
        now = now_us()
        if self._begun_us is None:
            self._begun_us = now
            self._loop.call_soon(self._begin)
        elif now - self._begun_us > TURN_US:
            self.wait(connection)
            return False
        return True

    def wait(self, connection: Connection) -> None:
        """Pause reading the connection until its turn comes."""
        if self._begun_us is None:
            self._begun_us = now_us()
            self._loop.call_soon(self._begin)
        self._waiting[connection] = None
        connection.pause_reading()

    @property
    def deadline_us(self) -> int:
        """Return when this turn ends for a peer with more data."""
        return NEVER if self._begun_us is None else self._begun_us + TURN_US

    def forget(self, connection: Connection) -> None:
        """Handle a closed connection."""
        self._waiting.pop(connection, None)

    def _begin(self) -> None:
        """Begin a new turn; waiting peers are read after the remaining tasks of the last turn."""
        self._begun_us = None
        if self._waiting:
            self._loop.call_soon(self._read_peers)

    def _read_peers(self) -> None:
        """Read waiting peers in order, as far as the time allows: at least one, even if the process was suspended."""
        if self._begun_us is None:
            self._loop.call_soon(self._begin)
        self._begun_us = begun = now_us()
        for connection in list(self._waiting):
            if self._waiting.pop(connection, self) is self:
                continue  # it was closed meanwhile
            if connection.is_open:
                if self._is_readable(connection):
                    connection.resume_reading()
                connection.process_frames()
            if now_us() - begun > TURN_US:
                break
