"""What the kernel knows of a connection: whether the other end acknowledges what we send, and what waits to be read."""

import socket
import sys
from asyncio import BaseTransport
from contextlib import suppress
from struct import Struct

__all__ = ["has_unread", "was_acknowledged_within"]

_ACKNOWLEDGED_AT = 56
"""Where `tcpi_last_ack_recv` is in `struct tcp_info`: milliseconds since the other end last acknowledged something."""
_MILLISECONDS = Struct("=I")
_INFO_SIZE = _ACKNOWLEDGED_AT + _MILLISECONDS.size


def was_acknowledged_within(transport: BaseTransport | None, milliseconds: float) -> bool:
    """Whether the other kernel acknowledged something so recently; False where the system does not say."""
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):
        found = _socket(transport).getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
        if len(found) == _INFO_SIZE:
            return bool(_MILLISECONDS.unpack_from(found, _ACKNOWLEDGED_AT)[0] <= milliseconds)
    return False


def has_unread(transport: BaseTransport | None) -> bool:
    """Whether something has arrived that was not read yet; False where the system does not say."""
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
        raise OSError("there is no socket")
    return found
