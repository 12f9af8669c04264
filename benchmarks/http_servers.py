"""Compares HTTP servers that a broker could run in its event loop.

    python benchmarks/http_servers.py            # three minutes
    python benchmarks/http_servers.py --quick    # a short run

The candidates run in separate processes, each with a real broker and the gateway's real handlers:

- **uvicorn, httptools**: uvicorn's protocol on a C parser, Starlette routes. A broker runs this.
- **uvicorn, h11**: the same on a parser in Python.
- **h11, own**: h11 with a protocol and a table of routes of our own, without uvicorn and Starlette's router. This is a
  lower bound of the cost of a server on h11 and wsproto.

The benchmark sends `/healthz`, `/metrics`, `POST /events` and reads a stream of server-sent events. It prints the
requests or events per second with eight connections, the median and p99 with one, the broker's processor time for each,
and the longest turn of its event loop; and the memory and the packages of each candidate. Connections are kept alive,
except where the table says *new*. The benchmark fails if the server that brokers run takes more than twice the
processor time of the best candidate.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, cast

import anyio
import h11
from rich.console import Console
from rich.table import Table
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from gapless.client import connect
from gapless.http import server as production
from gapless.http.application import _health, _metrics, make_application
from gapless.http.gateway import Gateway
from gapless.http.publishing import post_events
from gapless.http.streams import get_events
from gapless.overlay import Overlay
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from gapless.runtime.process import _tune_cycle_collector
from gapless.runtime.turn_meter import TurnMeter

HERE = Path(__file__).parent
CANDIDATES = {
    "uvicorn, httptools": ("uvicorn", "httptools", "starlette", "anyio", "click", "h11", "wsproto"),
    "uvicorn, h11": ("uvicorn", "starlette", "anyio", "click", "h11", "wsproto"),
    "h11, own": ("starlette", "anyio", "h11", "wsproto"),
}
"""The candidates, with the packages that each needs. The third uses Starlette's requests and responses, but not its
router.
"""
CONNECTIONS = 8
MOST = 2.0
EVENT = b'{"attributes": {"topic": "order", "amount": 7}, "text": "hello"}'
REQUESTS = {
    "/healthz": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "/metrics": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /events": b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Prefer: return=minimal\r\nContent-Length: %d\r\n\r\n%b" % (len(EVENT), EVENT),
}
Handler = Callable[[Request], Awaitable[Response]]


# ---- the servers ------------------------------------------------------------------------------------------


class BareProtocol(asyncio.Protocol):
    """HTTP/1.1 with h11 alone: a table of handlers answers one request after the other."""

    def __init__(self, gateway: Gateway, routes: dict[tuple[str, str], Handler]) -> None:
        self._gateway, self._routes = gateway, routes
        self._peer = h11.Connection(h11.SERVER)
        self._scope: dict[str, Any] = {}
        self._body = b""
        self._tasks: set[asyncio.Task[None]] = set()
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        self._peer.receive_data(data)
        self._read()

    def _read(self) -> None:
        while True:
            event = self._peer.next_event()
            if isinstance(event, h11.Request):
                path, _, query = event.target.partition(b"?")
                self._scope = {
                    "type": "http", "method": event.method.decode(), "path": path.decode(), "query_string": query,
                    "headers": list(event.headers), "client": self._transport.get_extra_info("peername"),
                    "app": _App(self._gateway),
                }  # fmt: skip
                self._body = b""
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                work = self._serve(self._scope, self._body)
                task = self._gateway.steps.start(work, self._scope["path"])
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                return

    async def _serve(self, scope: dict[str, Any], body: bytes) -> None:
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return parts.pop() if parts else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            await self._may_write.wait()
            if message["type"] == "http.response.start":
                head = h11.Response(status_code=message["status"], headers=message["headers"])
                self._write(head)
                return
            if message["body"]:
                self._write(h11.Data(data=message["body"]))
            if not message.get("more_body"):
                self._write(h11.EndOfMessage())

        response = await self._routes[scope["method"], scope["path"]](Request(scope, receive))
        await response(scope, receive, send)
        self._peer.start_next_cycle()
        self._read()

    def _write(self, event: Any) -> None:
        self._transport.write(self._peer.send(event) or b"")


class _App:
    """The application, as handlers see it."""

    def __init__(self, gateway: Gateway) -> None:
        self.state = self
        self.gateway = gateway


def factory(candidate: str, gateway: Gateway) -> Callable[[], asyncio.Protocol]:
    """Return the factory of protocols for new connections."""
    config = production._config(make_application(gateway))
    state = ServerState()
    if candidate == "uvicorn, httptools":
        places = production._Places()
        return lambda: production._Connection(config, state, places)
    if candidate == "uvicorn, h11":
        other = Config(config.app, http=H11Protocol, lifespan="off", log_config=None, access_log=False,
                       server_header=False, date_header=False, proxy_headers=False)  # fmt: skip
        other.load()
        return lambda: H11Protocol(other, state, {})
    routes: dict[tuple[str, str], Handler] = {
        ("GET", "/healthz"): _health, ("GET", "/metrics"): _metrics, ("POST", "/events"): post_events,
        ("GET", "/events"): get_events,
    }  # fmt: skip
    return lambda: BareProtocol(gateway, routes)


def metered(make: Callable[[], Any], meter: TurnMeter) -> Callable[[], Any]:
    """Return the same factory, with reading measured as part of a turn, like the steps of requests."""

    def made() -> Any:
        protocol = make()
        receive = protocol.data_received

        def data_received(data: bytes) -> None:
            begun = meter.begin()
            receive(data)
            meter.end(begun, "reading HTTP", "")

        protocol.data_received = data_received
        return protocol

    return made


async def serve(candidate: str) -> None:
    """Run a broker with this server; print its ports, and a report for each input line."""
    broker = Broker(local_network(Overlay(("b0",), ()), f=0), "b0")
    await broker.start()
    gateway = Gateway(broker)
    gateway.start()
    anyio.create_task_group()  # loads modules, as `HttpServer.start` does
    loop = asyncio.get_running_loop()
    server = await loop.create_server(metered(factory(candidate, gateway), broker.links.meter), "127.0.0.1", 0)
    _tune_cycle_collector()
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "broker": broker.entry.address}), flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        used = time.process_time()
        print(json.dumps({"used_s": used, "turn_ms": broker.links.meter.longest_ms, "rss": resident()}), flush=True)
        broker.links.meter.longest_ms = 0.0
    os._exit(0)


def resident() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---- the clients ------------------------------------------------------------------------------------------


class Served:
    """A broker with one of the candidates, in a separate process."""

    def __init__(self, candidate: str) -> None:
        command = [sys.executable, __file__, "--serve", candidate]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.places = self._line()

    def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def facts(self) -> dict[str, Any]:
        """Return processor time, memory, and the longest turn since the last call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._line()

    def close(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.wait()


async def answer(reader: asyncio.StreamReader) -> None:
    """Read one response."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert head.startswith((b"http/1.1 200", b"http/1.1 201")), head
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    await reader.readexactly(length)


async def load(port: int, request: bytes, count: int, connections: int, *, is_new: bool = False) -> list[float]:
    """Send requests; return the duration of each in seconds."""
    took: list[float] = []

    async def send(own: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(own):
            begun = time.perf_counter()
            if is_new:
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            await answer(reader)
            took.append(time.perf_counter() - begun)
        writer.close()

    await asyncio.gather(*(send(count // connections) for _ in range(connections)))
    return took


async def stream(places: dict[str, Any], count: int) -> list[float]:
    """Read a stream while another process publishes; return the latency of each event."""
    reader, writer = await asyncio.open_connection("127.0.0.1", places["port"])
    writer.write(b"GET /events?filter=topic%20%3D%20%27tick%27 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b'"cursor"')
    async with connect(f"gapless://{places['broker']}") as client:
        await client.advertise("topic = 'tick'")
        began = time.perf_counter()
        publishing = asyncio.ensure_future(client.publish_many(({"topic": "tick", "n": n}, b"x") for n in range(count)))
        found = 0
        while found < count:
            found += (await reader.readuntil(b'"attributes"')).count(b'"attributes"')
        took = time.perf_counter() - began
        await publishing
    writer.close()
    return [took / count] * count


def figures(candidate: str, counts: dict[str, int]) -> dict[str, Any]:
    """Return all figures of one candidate."""
    served = Served(candidate)
    try:
        port, found = served.places["port"], dict[str, Any]()
        asked = {name: (request, False) for name, request in REQUESTS.items()}
        asked["/healthz, new"] = (REQUESTS["/healthz"], True)
        for name, (request, is_new) in asked.items():
            run(load(port, request, 50, 1, is_new=is_new))
            found[name] = measured(
                served, lambda request=request, is_new=is_new, name=name: run(  # type: ignore[misc]
                    load(port, request, counts[name], CONNECTIONS, is_new=is_new)
                )
            )  # fmt: skip
            alone = sorted(run(load(port, request, counts[name] // 4, 1, is_new=is_new)))
            found[name] |= {
                "p50_ms": 1e3 * statistics.median(alone),
                "p99_ms": 1e3 * alone[int(0.99 * len(alone))],
            }
        found["stream"] = measured(served, lambda: run(stream(served.places, counts["stream"])))
        return {"requests": found, "rss": served.facts()["rss"]}
    finally:
        served.close()


def measured(served: Served, work: Callable[[], list[float]]) -> dict[str, float]:
    """Return the rate, processor time and longest turn of a workload."""
    before, began = served.facts(), time.perf_counter()
    count = len(work())
    seconds, after = time.perf_counter() - began, served.facts()
    return {
        "rate": count / seconds,
        "processor_us": 1e6 * (after["used_s"] - before["used_s"]) / count,
        "turn_ms": after["turn_ms"],
    }


def installed(names: tuple[str, ...]) -> int:
    """Return the size of these packages on disk in bytes."""
    found = (distribution(name).files or () for name in names)
    return sum(Path(str(file.locate())).stat().st_size for files in found for file in files if file.suffix != ".pyc"
               and Path(str(file.locate())).is_file())  # fmt: skip


def middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure."""
    requests = {
        name: {key: statistics.median(run["requests"][name][key] for run in runs) for key in runs[0]["requests"][name]}
        for name in runs[0]["requests"]
    }
    return {"requests": requests, "rss": statistics.median(run["rss"] for run in runs)}


def main() -> int:
    """Print the table; return 1 if the brokers' server is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        run(serve(arguments.serve))
    counts = {"/healthz": 8_000, "/metrics": 1_600, "POST /events": 4_000, "/healthz, new": 2_000, "stream": 20_000}
    if arguments.quick:
        counts = {name: count // 8 for name, count in counts.items()}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in CANDIDATES}
    for _ in range(1 if arguments.quick else 3):
        for name, runs in rounds.items():
            runs.append(figures(name, counts))
    found = {name: middle(runs) for name, runs in rounds.items()}
    for name, packages in CANDIDATES.items():
        found[name] |= {"packages": packages, "installed": installed(packages)}
    show(found)
    if arguments.out:
        arguments.out.write_text(json.dumps(found))
    used = {
        name: statistics.mean(row["processor_us"] for row in each["requests"].values()) for name, each in found.items()
    }
    return int(used["uvicorn, httptools"] > MOST * min(used.values()))


def show(found: dict[str, Any]) -> None:
    """Print all tables."""
    table = Table(title="HTTP servers in a broker")
    for name in ("request", "server", "per s", "p50 ms", "p99 ms", "processor µs", "longest turn ms"):
        table.add_column(name, justify="left" if name in ("request", "server") else "right")
    for request in next(iter(found.values()))["requests"]:
        for name, each in found.items():
            row = each["requests"][request]
            alone = [f"{row[key]:.2f}" if key in row else "" for key in ("p50_ms", "p99_ms")]
            table.add_row(
                request, name, f"{row['rate']:,.0f}", *alone, f"{row['processor_us']:.0f}", f"{row['turn_ms']:.1f}"
            )
        table.add_section()
    Console().print(table)
    for name, each in found.items():
        Console().print(
            f"{name}: {each['rss'] / 1e6:.0f} MB of memory; {len(each['packages'])} packages, "
            f"{each['installed'] / 1e6:.1f} MB on disk"
        )


if __name__ == "__main__":
    sys.exit(main())
