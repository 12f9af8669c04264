"""Serves health, metrics and status over HTTP, for probes, Prometheus and browsers.

| path | |
| --- | --- |
| `/healthz` | 200 and `ok` if the broker has joined and is not blocked, else 503 and what it waits for |
| `/metrics` | Prometheus text |
| `/status` | the report that `gapless status` shows of this broker, as JSON |

One request per connection, only GET and HEAD, and short timeouts: enough for this purpose.

In a network with certificates it speaks HTTPS. `/healthz` is public. The others require a user that
may see the status, which presents a certificate, or a token as `Authorization: Bearer TOKEN`.
"""

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from gapless.runtime.address import split_address
from gapless.runtime.broker import Broker, listen_error
from gapless.runtime.listener import TlsListener
from gapless.runtime.metrics import Metrics
from gapless.runtime.pending_connections import PendingConnections
from gapless.runtime.refused_connections import LINGER_S
from gapless.runtime.wire import Refusal
from gapless.security.identity import Identity

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

__all__ = ["HttpEndpoint"]

Answer: TypeAlias = tuple[str, str, bytes] | tuple[str, str, bytes, str]
"""The status, the content type, the body, and optionally another header."""

TEXT = "text/plain; charset=utf-8"
REQUEST_MAX = 8192
LINES_MAX = 100
PATIENCE_S = 5.0
REQUESTS_MAX = 100
"""The maximum number of open requests; if there are more, one is closed (`pending_connections`)."""
IN_CLEAR_TEXT = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 36\r\nConnection: close\r\n\r\n"
    b"this port speaks HTTPS; write that.\n"
)


class HttpEndpoint:
    """The HTTP endpoint of one broker, without optional dependencies."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._metrics = Metrics(broker)
        self._server: asyncio.Server | TlsListener | None = None
        self._serving: PendingConnections[StreamWriter] = PendingConnections(REQUESTS_MAX)

    async def start(self) -> None:
        """Listen on the address in the network's file."""
        host, port = split_address(self._broker.entry.http)
        try:
            self._server = await self._listen(host, port)
        except OSError as error:
            raise listen_error(f"the HTTP side of broker {self._broker.name!r}", f"{host}:{port}", error) from None

    async def _listen(self, host: str, port: int) -> asyncio.Server | TlsListener:
        broker_security = self._broker.broker_security
        if broker_security is None:
            return await asyncio.start_server(self._serve, host, port, limit=REQUEST_MAX)
        listener = TlsListener(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(REQUEST_MAX), self._serve),
            broker_security.server_context,
            patience_s=PATIENCE_S,
            in_clear_text=IN_CLEAR_TEXT,
            refused=lambda address, code, reason: self._broker.links.refusals.unauthenticated(address, code, reason),
        )
        await listener.start(host, port)
        return listener

    @property
    def port(self) -> int:
        assert self._server is not None
        if isinstance(self._server, TlsListener):
            return self._server.port
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: "StreamReader", writer: "StreamWriter") -> None:
        victim = self._serving.add(writer, str((writer.get_extra_info("peername") or "?")[0]))
        if victim is not None:
            victim.transport.abort()
        try:
            async with asyncio.timeout(PATIENCE_S):
                request = (await reader.readuntil(b"\r\n")).split()
                token = await _token(reader)
                denial = self._denial(request, token, writer)
                begun = self._broker.links.meter.begin()
                status, kind, body, *headers = denial or self._answer(request)
                self._broker.links.meter.end(begun, "an HTTP request", "")
                head = (
                    f"HTTP/1.1 {status}",
                    f"Content-Type: {kind}",
                    f"Content-Length: {len(body)}",
                    "Connection: close",
                    *headers,
                )
                is_head = request[:1] == [b"HEAD"]
                writer.write("\r\n".join((*head, "", "")).encode() + (b"" if is_head else body))
                await writer.drain()
                if request[:1] not in ([b"GET"], [b"HEAD"]):
                    await _drain_input(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._serving.discard(writer)
            writer.close()

    def _denial(self, request: list[bytes], token: str, writer: "StreamWriter") -> Answer | None:
        """Return the response for a peer without the right to see this, or None if it has that right."""
        broker_security = self._broker.broker_security
        path = request[1].split(b"?")[0] if len(request) == 3 else b""
        if broker_security is None or broker_security.users is None or path not in (b"/metrics", b"/status"):
            return None
        certificate = writer.get_extra_info("peercert") or {}
        host, port = (writer.get_extra_info("peername") or ("?", 0))[:2]
        who = broker_security.prove(certificate, token)
        if isinstance(who, Identity) and broker_security.may(who, "status"):
            return None
        reason = who.reason if isinstance(who, Refusal) else f"{who.text} may not see the status of brokers"
        name = who.text if isinstance(who, Identity) else broker_security.claimed(certificate, token)
        self._broker.links.refusals.denial(name, f"{host}:{port}", reason)
        body = f"{reason}\n".encode()
        if isinstance(who, Identity):
            return "403 Forbidden", TEXT, body
        challenge = 'Bearer realm="gapless"' + (', error="invalid_token"' if token else "")
        return "401 Unauthorized", TEXT, body, f"WWW-Authenticate: {challenge}"

    def _answer(self, request: list[bytes]) -> Answer:
        if len(request) != 3 or request[0] not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", "text/plain", b"only GET and HEAD\n"
        path = request[1].split(b"?")[0]
        if path == b"/healthz":
            hindrance = self._broker.hindrance
            if hindrance:
                return "503 Service Unavailable", TEXT, f"{hindrance}\n".encode()
            return "200 OK", "text/plain", b"ok\n"
        if path == b"/metrics":
            return "200 OK", "text/plain; version=0.0.4; charset=utf-8", self._metrics.text()
        if path == b"/status":
            return "200 OK", "application/json", msgspec.json.encode(self._broker.report())
        return "404 Not Found", "text/plain", b"there are /healthz, /metrics and /status\n"


async def _drain_input(reader: "StreamReader", writer: "StreamWriter") -> None:
    """Read the remaining input until the peer closes, because a reset would discard the response (see
    `refused_connections`).
    """
    if writer.can_write_eof():
        writer.write_eof()
    async with asyncio.timeout(LINGER_S):
        while await reader.read(REQUEST_MAX):
            pass


async def _token(reader: "StreamReader") -> str:
    """Return the bearer token in the request's headers, or an empty string."""
    token = ""
    for _ in range(LINES_MAX):
        line = await reader.readuntil(b"\r\n")
        if line == b"\r\n":
            return token
        name, _, value = line.partition(b":")
        scheme, _, shown = value.strip().partition(b" ")
        if name.strip().lower() == b"authorization" and scheme.lower() == b"bearer":
            token = shown.decode("ascii", "replace").strip()
    raise asyncio.LimitOverrunError("too many headers", 0)
