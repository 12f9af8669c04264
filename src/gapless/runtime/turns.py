"""No turn of the event loop takes long, however many peers have much to say.

The loop reads from all connections that have something, and only then sends what was written and looks at its timers.
With a hundred busy clients that may take seconds: meanwhile peers hear nothing from us, and take us for dead. So a peer
whose turn comes after `TURN_US` waits, with what it has sent, for one of the next turns; peers wait in the order in
which they came. A peer that has sent more than fits into a turn, in one batch or in several, waits with the rest of it.
"""

import asyncio
from collections.abc import Callable

from gapless.runtime.clock import now_us
from gapless.runtime.connection import Connection
from gapless.runtime.deferred_work import TURN_US

__all__ = ["Turns"]

NEVER = 1 << 62


class Turns:
    """Who is heard in this turn, and who waits. `is_readable` says whether more may be read from a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, is_readable: Callable[[Connection], bool]) -> None:
        self._loop = loop
        self._is_readable = is_readable
        self._begun_us: int | None = None
        self._waiting: dict[Connection, None] = {}

    def has_time_for(self, connection: Connection) -> bool:
        """Whether it is heard now. If not, nothing more is read from it, and it is called when its turn comes."""
        now = now_us()
        if self._begun_us is None:
            self._begun_us = now
            self._loop.call_soon(self._begin)
        elif now - self._begun_us > TURN_US:
            self.wait(connection)
            return False
        return True

    def wait(self, connection: Connection) -> None:
        """Nothing more is read from the connection; it is called when its turn comes."""
        if self._begun_us is None:
            self._begun_us = now_us()
            self._loop.call_soon(self._begin)
        self._waiting[connection] = None
        connection.pause_reading()

    @property
    def deadline_us(self) -> int:
        """When this turn is over for a peer that has more to say."""
        return NEVER if self._begun_us is None else self._begun_us + TURN_US

    def forget(self, connection: Connection) -> None:
        """The connection is over."""
        self._waiting.pop(connection, None)

    def _begin(self) -> None:
        """A new turn; who waits is heard in it when all has been done that the last one left to do."""
        self._begun_us = None
        if self._waiting:
            self._loop.call_soon(self._hear)

    def _hear(self) -> None:
        """Those who waited, in order, as far as the time allows."""
        if self._begun_us is None:
            self._loop.call_soon(self._begin)
        self._begun_us = begun = now_us()
        for connection in list(self._waiting):
            if now_us() - begun > TURN_US:
                break
            if self._waiting.pop(connection, self) is self:
                continue  # it has gone meanwhile
            if connection.is_open:
                if self._is_readable(connection):
                    connection.resume_reading()
                connection.go_on()
