"""Serves HTTP for a broker: an ASGI application in the broker's own event loop.

uvicorn's protocol handles HTTP/1.1 and WebSocket. This module listens, because a broker has its own rules for that: one
TLS context for each connection, so that new certificates apply at once, and a bound for silent peers. A connection that
has not sent the head of its first or next request within `PATIENCE_S` is closed; so is one whose request was answered
before its body had arrived. If more than `SILENT_MAX` connections wait for their first request, or `IDLE_MAX` for the
next one, the oldest one of the host with the most is closed. Requests in progress have their own limits (`guards`).

uvicorn's parser accepts headers of any size, so their size is limited here.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gapless.http.application import make_application
from gapless.http.event_bodies import JSON_SIZE
from gapless.http.gateway import Gateway
from gapless.http.guards import SECURITY_HEADERS
from gapless.http.problems import ProblemError
from gapless.runtime.address import split_address
from gapless.runtime.broker import Broker, listen_error
from gapless.runtime.listener import TlsListener
from gapless.runtime.pending_connections import PendingConnections

__all__ = ["HttpServer"]

PATIENCE_S = 5.0
"""How long a connection can be silent before its first request, and between two requests."""
SILENT_MAX = 1_000
IDLE_MAX = 500
BACKLOG = 1_024
"""The number of connections that the kernel accepts in advance, because many streams may be opened at the same time."""
HEAD_MAX = 32 * 1024
"""The maximum size of the request line and all headers, in bytes."""
MESSAGE_MAX = 512 * 1024
"""The maximum size of one WebSocket message in bytes, unless events can be larger."""
CLOSE_S = 2.0
"""How long responses in progress can take when the broker stops."""
IN_CLEAR_TEXT = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 36\r\nConnection: close\r\n\r\n"
    b"this port speaks HTTPS; write that.\n"
)


class HttpServer:
    """The HTTP server of one broker, with the console and the gateway."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._gateway = Gateway(broker)
        event_max = broker.config.runtime.event_max
        self._config = _config(make_application(self._gateway), max(MESSAGE_MAX, JSON_SIZE * event_max))
        self._state = ServerState()
        self._places = _Places()
        self._server: asyncio.Server | TlsListener | None = None

    async def start(self) -> None:
        """Listen on the address in the network's file."""
        host, port = split_address(self._broker.entry.http)
        try:
            self._server = await self._listen(host, port)
        except OSError as error:
            raise listen_error(f"the HTTP side of broker {self._broker.name!r}", f"{host}:{port}", error) from None
        self._gateway.start()

    async def _listen(self, host: str, port: int) -> asyncio.Server | TlsListener:
        broker_security = self._broker.broker_security
        if broker_security is None:
            return await asyncio.get_running_loop().create_server(self._accept, host, port, backlog=BACKLOG)
        listener = TlsListener(
            self._accept,
            broker_security.server_context,
            patience_s=PATIENCE_S,
            in_clear_text=IN_CLEAR_TEXT,
            refused=lambda address, code, reason: self._broker.links.refusals.unauthenticated(address, code, reason),
        )
        await listener.start(host, port)
        return listener

    def _accept(self) -> "_Connection":
        return _Connection(self._config, self._state, self._places)

    @property
    def port(self) -> int:
        """Return the port on which the server listens."""
        assert self._server is not None
        if isinstance(self._server, TlsListener):
            return self._server.port
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def streams(self) -> int:
        """Return the number of streams that the server serves."""
        return self._gateway.clients.streams

    def stop(self) -> None:
        """Stop listening, and end all streams and their clients in the background."""
        if self._server is not None:
            self._server.close()
        self._gateway.stop()
        for connection in list(self._state.connections):
            connection.shutdown()
        asyncio.get_running_loop().call_later(CLOSE_S, self._abort)

    async def close(self) -> None:
        """Stop the server, and return when everything is closed."""
        self.stop()
        await self._gateway.close()
        deadline = asyncio.get_running_loop().time() + CLOSE_S
        while self._state.tasks and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        self._abort()

    def _abort(self) -> None:
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def _config(application: ASGIApp, message_max: int = MESSAGE_MAX) -> Config:
    config = Config(
        application,
        http=HttpToolsProtocol,
        ws="wsproto",
        ws_per_message_deflate=False,  # a message of 200 KB could decompress to 200 MB at once
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws_max_size=message_max,
        timeout_keep_alive=int(PATIENCE_S),
    )
    config.load()
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # errors are logged by the broker instead
    return config


class _Places:
    """The bounded sets of connections that wait for a request."""

    def __init__(self) -> None:
        self.silent: PendingConnections[_Connection] = PendingConnections(SILENT_MAX)
        self.idle: PendingConnections[_Connection] = PendingConnections(IDLE_MAX)


class _Connection(HttpToolsProtocol):
    """A connection. It is *silent* until it has sent the head of its first request, and *idle* between two requests."""

    def __init__(self, config: Config, state: ServerState, places: _Places) -> None:
        super().__init__(config, state, {})
        self._places = places
        self._head = 0
        """The number of bytes of an incomplete head; -1 while a body is read."""
        self._fields = 0
        """The number of bytes of the fields of a head."""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        certificate: Mapping[str, Any] = transport.get_extra_info("peercert") or {}
        self.app_state["certificate"] = certificate
        self._wait_in(self._places.silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._speaks()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head >= 0:
            self._head += len(data)
        super().data_received(data)
        if self._head > HEAD_MAX and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = max(0, self._head)
        self._fields = 0

    def on_url(self, url: bytes) -> None:
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(name + value)
        super().on_header(name, value)

    def _count(self, field: bytes) -> None:
        """Add a header field to the size of the head, and raise an error if the head is too large."""
        self._fields += len(field) + 4
        if self._fields > HEAD_MAX:
            raise ValueError("the head of the request is too large")  # the parser stops, and the response is 400

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._head = 0

    def on_headers_complete(self) -> None:
        self._head = -1
        self._speaks()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait_in(self._places.idle)

    def send_400_response(self, msg: str) -> None:
        """Reject input that is not a request, with a problem document."""
        body = msgspec.json.encode(ProblemError("bad-request", msg).document())
        head = (
            b"HTTP/1.1 400 Bad Request",
            b"Content-Type: application/problem+json",
            b"Content-Length: %d" % len(body),
            b"Connection: close",
            *(f"{name}: {value}".encode() for name, value in SECURITY_HEADERS.items()),
        )
        self.transport.write(b"\r\n".join((*head, b"", body)))
        self.transport.close()

    def _wait_in(self, place: "PendingConnections[_Connection]") -> None:
        """Register the connection as one that waits for the head of a request."""
        self._speaks()
        self._timer = self.loop.call_later(PATIENCE_S, self.transport.abort)
        victim = place.add(self, self.client[0] if self.client else "?")
        if victim is not None:
            victim.transport.abort()

    def _speaks(self) -> None:
        self._places.silent.discard(self)
        self._places.idle.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
