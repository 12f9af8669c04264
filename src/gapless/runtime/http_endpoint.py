"""Health and metrics over HTTP: for probes, Prometheus, and people with a browser.

| path | |
| --- | --- |
| `/healthz` | 200 and `ok` if the broker takes part and is not held up, else 503 and for what it waits |
| `/metrics` | Prometheus text |
| `/status` | all that `gapless status` knows of this broker, as JSON |

One request a connection, nothing but GET and HEAD, and little patience: enough for what it is for.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from gapless.runtime.address import split_address
from gapless.runtime.broker import Broker, listen_error
from gapless.runtime.metrics import Metrics

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

__all__ = ["HttpEndpoint"]

REQUEST_MAX = 8192
PATIENCE_S = 5.0


class HttpEndpoint:
    """The HTTP side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._metrics = Metrics(broker)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen where the network's file says."""
        host, port = split_address(self._broker.entry.http)
        try:
            self._server = await asyncio.start_server(self._serve, host, port, limit=REQUEST_MAX)
        except OSError as error:
            raise listen_error(f"the HTTP side of broker {self._broker.name!r}", f"{host}:{port}", error) from None

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: "StreamReader", writer: "StreamWriter") -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                request = (await reader.readuntil(b"\r\n")).split()
                while await reader.readuntil(b"\r\n") != b"\r\n":
                    pass
                begun = self._broker.links.meter.begin()
                status, kind, body = self._answer(request)
                self._broker.links.meter.end(begun, "a request over HTTP", "")
                head = (
                    f"HTTP/1.1 {status}",
                    f"Content-Type: {kind}",
                    f"Content-Length: {len(body)}",
                    "Connection: close",
                )
                is_head = request[:1] == [b"HEAD"]
                writer.write("\r\n".join((*head, "", "")).encode() + (b"" if is_head else body))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _answer(self, request: list[bytes]) -> tuple[str, str, bytes]:
        if len(request) != 3 or request[0] not in (b"GET", b"HEAD"):
            return "405 Method Not Allowed", "text/plain", b"only GET and HEAD\n"
        path = request[1].split(b"?")[0]
        if path == b"/healthz":
            hindrance = self._broker.hindrance
            if hindrance:
                return "503 Service Unavailable", "text/plain; charset=utf-8", f"{hindrance}\n".encode()
            return "200 OK", "text/plain", b"ok\n"
        if path == b"/metrics":
            return "200 OK", "text/plain; version=0.0.4; charset=utf-8", self._metrics.text()
        if path == b"/status":
            return "200 OK", "application/json", msgspec.json.encode(self._broker.report())
        return "404 Not Found", "text/plain", b"there are /healthz, /metrics and /status\n"
