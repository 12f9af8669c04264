"""Reads from the kernel whether a peer acknowledged data recently, and whether a connection has unread input."""

import socket
import sys
from asyncio import BaseTransport
from contextlib import suppress
from struct import Struct

__all__ = ["has_unread", "was_acknowledged_within"]

_ACKNOWLEDGED_AT = 56
"""The offset of `tcpi_last_ack_recv` in `struct tcp_info`: milliseconds since the last acknowledgement."""
_MILLISECONDS = Struct("=I")
_INFO_SIZE = _ACKNOWLEDGED_AT + _MILLISECONDS.size


def was_acknowledged_within(transport: BaseTransport | None, milliseconds: float) -> bool:
    """Return whether the peer's kernel acknowledged data within this time. Return False if the system does not report
    it.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        found = _socket(transport).getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
        if len(found) == _INFO_SIZE:
            return bool(_MILLISECONDS.unpack_from(found, _ACKNOWLEDGED_AT)[0] <= milliseconds)
    return False


def has_unread(transport: BaseTransport | None) -> bool:
    """Return whether the connection has unread input. Return False if the system does not report it."""
    if sys.platform == "win32":
        return False
    import fcntl
    import termios

    with suppress(OSError, AttributeError):
        found = fcntl.ioctl(_socket(transport).fileno(), termios.FIONREAD, bytes(4))
        return int.from_bytes(found, sys.byteorder) > 0
    return False


def _socket(transport: BaseTransport | None) -> socket.socket:
    found: socket.socket | None = None if transport is None else transport.get_extra_info("socket")
    if found is None:
        raise OSError("the transport has no socket")
    return found
