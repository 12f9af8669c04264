"""A TLS port: accepts connections, inspects the first byte of each, and performs the handshake.

A TLS handshake begins with byte 22, a Gapless frame with 0, an HTTP request with a letter. So the
port can send a peer that uses clear text an error in clear text. Each connection uses the current
TLS context: new certificates apply from the next connection on, and the port stays open.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from gapless.runtime.pending_connections import PendingConnections
from gapless.runtime.refused_connections import LINGER_S
from gapless.runtime.tls import alert_of, why_listening_failed

__all__ = ["TlsListener"]

TLS = 22
PENDING_MAX = 1_000
"""The maximum number of unfinished handshakes; if there are more, one is closed (`pending_connections`)."""
EVICTED = "it did not finish its handshake, and its place was needed"
PAUSE_S = 0.1
"""How long the port stops accepting when the system has no resources."""


class TlsListener:
    """Listens on one port. `may_connect` accepts or refuses a peer by its host before any other work."""

    def __init__(
        self,
        make: Callable[[], asyncio.BaseProtocol],
        context: Callable[[], ssl.SSLContext],
        *,
        patience_s: float,
        in_clear_text: bytes,
        refused: Callable[[str, str, str], None],
        may_connect: Callable[[str], bool] = lambda host: True,
    ) -> None:
        self._make = make
        self._context = context
        self._patience_s = patience_s
        self._in_clear_text = in_clear_text
        self._refused = refused
        self._may_connect = may_connect
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._pending: PendingConnections[asyncio.Task[None]] = PendingConnections(PENDING_MAX)
        self.handshakes = 0

    async def start(self, host: str, port: int, backlog: int = 1024) -> None:
        """Start listening. Raise an `OSError` if that fails."""
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            listening = socket.socket(family, kind, protocol)
            try:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind(address)
                listening.listen(backlog)
                listening.setblocking(False)
            except OSError:
                listening.close()
                self.close()
                raise
            self._sockets.append(listening)
        self._accepting = [self._loop.create_task(self._accept(listening)) for listening in self._sockets]

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening. Accepted connections stay open."""
        for task in (*self._accepting, *self._pending):
            task.cancel()
        for listening in self._sockets:
            listening.close()

    async def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                dialled, address = await self._loop.sock_accept(listening)
            except OSError as error:
                if error.errno in (errno.EBADF, errno.EINVAL):
                    return
                await asyncio.sleep(PAUSE_S)
                continue
            host = str(address[0])
            if not self._may_connect(host):
                dialled.close()
                continue
            task = self._loop.create_task(self._welcome(dialled, f"{address[0]}:{address[1]}"))
            task.add_done_callback(self._pending.discard)
            victim = self._pending.add(task, host)
            if victim is not None:
                victim.cancel(EVICTED)

    async def _welcome(self, dialled: socket.socket, address: str) -> None:
        """Perform the handshake, or send the reason for a refusal. Close the socket unless a transport owns it."""
        is_ours = True
        try:
            dialled.setblocking(False)
            dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(self._patience_s):
                first = await self._peek(dialled)
            if first == TLS:
                is_ours = False
                await self._handshake(dialled, address)
            elif first is not None:
                self._refused(address, "tls", "it does not use TLS")
                await self._loop.sock_sendall(dialled, self._in_clear_text)
                dialled.shutdown(socket.SHUT_WR)
                await self._drain_input(dialled)
        except asyncio.CancelledError as error:
            if error.args == (EVICTED,):
                self._refused(address, "evicted", EVICTED)
            raise
        except TimeoutError:
            self._refused(address, "silent", "it did not begin a handshake in time")
        except OSError:
            pass  # the peer has closed the connection
        finally:
            if is_ours:
                dialled.close()

    async def _drain_input(self, dialled: socket.socket) -> None:
        """Read the remaining input until the peer closes, because a reset would discard the answer
        (see `refused_connections`).
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._loop.sock_recv(dialled, 65_536):
                    pass

    async def _handshake(self, dialled: socket.socket, address: str) -> None:
        spare = dialled.dup()  # a transport whose handshake fails closes its socket
        try:
            await self._loop.connect_accepted_socket(
                self._make, dialled, ssl=self._context(), ssl_handshake_timeout=self._patience_s,
                ssl_shutdown_timeout=1.0,
            )  # fmt: skip
            self.handshakes += 1
        except (OSError, TimeoutError) as error:
            self._refused(address, "tls", why_listening_failed(error))
            with suppress(OSError):
                dialled.close()
                spare.send(alert_of(error))
        finally:
            spare.close()

    async def _peek(self, dialled: socket.socket) -> int | None:
        """Return the first byte without consuming it, or None if the peer has closed the connection."""
        while True:
            try:
                first = dialled.recv(1, socket.MSG_PEEK)
                return first[0] if first else None
            except (BlockingIOError, InterruptedError):
                pass
            readable = self._loop.create_future()
            self._loop.add_reader(dialled.fileno(), _wake, readable)
            try:
                await readable
            finally:
                self._loop.remove_reader(dialled.fileno())


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
