"""Connects to a listener, with or without TLS. If a TLS handshake fails, the peer receives the alert, which event loops
omit.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from gapless.runtime.tls import alert_of

__all__ = ["dial"]

SHUTDOWN_S = 1.0
"""Timeout of the closing handshake of a TLS connection."""

P = TypeVar("P", bound=asyncio.BaseProtocol)


async def dial(
    loop: asyncio.AbstractEventLoop, make: Callable[[], P], host: str, port: int, context: ssl.SSLContext | None
) -> P:
    """Return a connection to the listener. Raise an `OSError` if that fails."""
    if context is None:
        return (await loop.create_connection(make, host, port))[1]
    dialled = await _connected(loop, host, port)
    spare = dialled.dup()  # a transport whose handshake fails closes its socket
    try:
        _, made = await loop.create_connection(
            make, sock=dialled, ssl=context, server_hostname=host, ssl_shutdown_timeout=SHUTDOWN_S
        )
        return made
    except BaseException as error:
        with suppress(OSError):
            dialled.close()
            spare.send(alert_of(error))
        raise
    finally:
        spare.close()


async def _connected(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Return a socket that is connected to the first address of the host that answers."""
    failure: OSError | None = None
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        dialled = socket.socket(family, kind, protocol)
        try:
            dialled.setblocking(False)
            await loop.sock_connect(dialled, address)
            return dialled
        except OSError as error:
            dialled.close()
            failure = error
        except BaseException:
            dialled.close()
            raise
    raise failure or OSError(f"{host} has no address")
