"""The end of a connection that we refuse: the other end gets to read why.

A socket that is closed while something that its peer sent has not been read resets the connection, and a reset takes
away from the peer what it has not read yet, the reason included. So we say the reason, end our direction, and throw
away what still comes, until the peer hangs up: it does so as soon as it has read the reason. We cut off a peer that has
not hung up after `LINGER_S`.
"""

import asyncio
from contextlib import suppress

__all__ = ["LINGER_S", "RefusedConnections"]

LINGER_S = 2.0
"""How long a peer may take to read why it has to go."""
FAREWELLS_MAX = 1_000
"""Connections that end so at a time; further ones are closed at once."""
_nowhere = memoryview(bytearray(64 * 1024))
"""Where everything is read that nobody looks at."""


class RefusedConnections:
    """Those of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[_RefusedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, transport: asyncio.Transport) -> None:
        """All is written: end the connection when the other end has read it. The transport is ours from now on."""
        if len(self._under_way) >= FAREWELLS_MAX:
            transport.close()
            return
        refused_connection = _RefusedConnection(transport, self._under_way)
        self._under_way[refused_connection] = None
        self._loop.call_later(LINGER_S, refused_connection.cut_off)
        with suppress(RuntimeError):  # it is gone already
            transport.set_protocol(refused_connection)
            transport.resume_reading()
            if transport.can_write_eof():
                transport.write_eof()

    def end(self) -> None:
        """Wait for nobody any more."""
        for refused_connection in list(self._under_way):
            refused_connection.cut_off()


class _RefusedConnection(asyncio.BufferedProtocol):
    """Reads and discards what a refused peer still sends.

    It drops its transport when the connection is over. The TLS transports of uvloop keep references to their protocol
    for ever, so a protocol that kept its transport would keep both, and the transport's buffers of 0.3 to 0.9 MB, until
    a search for cycles found them. A broker searches what has grown old almost never.
    """

    def __init__(self, transport: asyncio.Transport, under_way: "dict[_RefusedConnection, None]") -> None:
        self._transport: asyncio.Transport | None = transport
        self._under_way = under_way

    def cut_off(self) -> None:
        """Abort the connection: its time is over."""
        self._under_way.pop(self, None)
        transport, self._transport = self._transport, None
        if transport is not None:
            with suppress(RuntimeError):
                transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return _nowhere

    def buffer_updated(self, nbytes: int) -> None:
        pass

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._under_way.pop(self, None)
        self._transport = None
