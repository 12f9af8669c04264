"""Closes refused connections so that the peer can read the reason.

Closing a socket with unread input resets the connection, and the reset discards what the peer has
not read yet, including the reason. So the reason is sent, the sending direction is closed, and
further input is discarded until the peer closes its side. A peer that has not closed after
`LINGER_S` is disconnected.
"""

import asyncio
from contextlib import suppress

__all__ = ["LINGER_S", "RefusedConnections"]

LINGER_S = 2.0
"""How long a peer may take to read the reason."""
CLOSING_MAX = 1_000
"""The maximum number of connections that are closed this way at the same time. Further ones are aborted."""
_nowhere = memoryview(bytearray(64 * 1024))
"""A shared buffer for discarded input."""


class RefusedConnections:
    """Closes the refused connections of one node."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._under_way: dict[_RefusedConnection, None] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, transport: asyncio.Transport) -> None:
        """Take over the transport after everything is written, and close it when the peer has read it."""
        if len(self._under_way) >= CLOSING_MAX:
            transport.close()
            return
        refused_connection = _RefusedConnection(transport, self._under_way)
        self._under_way[refused_connection] = None
        self._loop.call_later(LINGER_S, refused_connection.cut_off)
        with suppress(RuntimeError):  # the transport may be closed already
            transport.set_protocol(refused_connection)
            transport.resume_reading()
            if transport.can_write_eof():
                transport.write_eof()

    def end(self) -> None:
        """Abort all connections."""
        for refused_connection in list(self._under_way):
            refused_connection.cut_off()


class _RefusedConnection(asyncio.BufferedProtocol):
    """Reads and discards the input of a refused peer.

    It drops its transport when the connection ends. The TLS transports of uvloop keep references to their protocol. A
    protocol that kept its transport would therefore keep both alive, with buffers of 0.3 to 0.9 MB, until a garbage
    collection of the oldest generation, which a broker almost never runs.
    """

    def __init__(self, transport: asyncio.Transport, under_way: "dict[_RefusedConnection, None]") -> None:
        self._transport: asyncio.Transport | None = transport
        self._under_way = under_way

    def cut_off(self) -> None:
        """Abort the connection after its timeout."""
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
