"""Health and metrics over HTTP: for probes, Prometheus, and people with a browser.

| path | |
| --- | --- |
| `/healthz` | 200 and `ok` if the broker takes part, else 503 |
| `/metrics` | Prometheus text |
| `/status` | all that `gapless status` knows of this broker, as JSON |

One request a connection, nothing but GET, and little patience: enough for what it is for.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gapless.runtime.address import split_address
from gapless.runtime.broker import Broker, listen_error

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

__all__ = ["HttpEndpoint"]

REQUEST_MAX = 8192
PATIENCE_S = 5.0

_COUNTERS = {
    "messages_in": "Messages received from brokers and clients.",
    "messages_out": "Messages sent to brokers and clients.",
    "frames_in": "Frames of messages received.",
    "bytes_in": "Bytes received.",
    "bytes_out": "Bytes sent.",
    "lost": "Messages to peers without a connection; the protocol repeats what matters.",
    "refusals": "Connections ended by this broker.",
    "suspicions": "Times that a peer was suspected.",
    "steps": "Inputs given to the node.",
}


class _Metrics(Collector):
    """Reads the broker's report when somebody asks, so that counting costs nothing in between."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Metric]:
        report = self._broker.report()
        for key, text in _COUNTERS.items():
            yield CounterMetricFamily(f"gapless_{key}", text, value=report[key])
        yield GaugeMetricFamily("gapless_ready", "Whether the broker takes part.", value=float(report["ready"]))
        yield GaugeMetricFamily("gapless_clients", "Clients that are connected.", value=report["clients"])
        yield GaugeMetricFamily("gapless_paused", "Whether clients are held back.", value=float(report["paused"]))
        kept = GaugeMetricFamily("gapless_kept", "What the protocol keeps, by kind.", labels=["kind"])
        for kind, size in report["state"].items():
            kept.add_metric([kind.replace(" ", "_")], size)
        yield kept
        yield from self._links(report["links"])

    @staticmethod
    def _links(links: dict[str, Any]) -> Iterator[Metric]:
        up = GaugeMetricFamily("gapless_link_up", "Whether there is a connection to the broker.", labels=["peer"])
        suspected = GaugeMetricFamily("gapless_link_suspected", "Whether the broker is suspected.", labels=["peer"])
        queue = GaugeMetricFamily("gapless_link_queue", "Messages that wait to be sent.", labels=["peer"])
        for peer, link in links.items():
            up.add_metric([peer], link["up"])
            suspected.add_metric([peer], link["suspected"])
            queue.add_metric([peer], link["queue"])
        yield from (up, suspected, queue)


class HttpEndpoint:
    """The HTTP side of one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Metrics(broker))
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
                status, kind, body = self._answer(request)
                head = (
                    f"HTTP/1.1 {status}",
                    f"Content-Type: {kind}",
                    f"Content-Length: {len(body)}",
                    "Connection: close",
                )
                writer.write("\r\n".join((*head, "", "")).encode() + body)
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _answer(self, request: list[bytes]) -> tuple[str, str, bytes]:
        if len(request) != 3 or request[0] != b"GET":
            return "405 Method Not Allowed", "text/plain", b"only GET\n"
        path = request[1].split(b"?")[0]
        if path == b"/healthz":
            ready = self._broker.is_ready
            return (
                ("200 OK", "text/plain", b"ok\n")
                if ready
                else ("503 Service Unavailable", "text/plain", b"not ready\n")
            )
        if path == b"/metrics":
            return "200 OK", "text/plain; version=0.0.4; charset=utf-8", generate_latest(self._registry)
        if path == b"/status":
            return "200 OK", "application/json", msgspec.json.encode(self._broker.report())
        return "404 Not Found", "text/plain", b"there are /healthz, /metrics and /status\n"
