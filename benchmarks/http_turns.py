"""Measures how long each kind of HTTP request occupies the event loop of a broker with much state.

    python benchmarks/http_turns.py            # two minutes
    python benchmarks/http_turns.py --quick    # a smaller broker

Of three brokers, the one that receives the requests has 200 clients with 2,000 subscriptions, 100 durable subscriptions
and a history of 20,000 events with 1 KB each. Every request is sent several times. For each kind, the benchmark prints
two processor times. The first is the longest step of the requests themselves. The second is the longest turn of the
broker's event loop during the requests, which also serves its 200 clients and everything that a request causes: queries
to brokers, and the client that the gateway uses. The first row shows how long turns are without requests. The benchmark
fails if a step takes longer than 20 ms, or a turn 20 ms longer than without requests.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

from gapless.causes import caused_by
from gapless.client import Client, connect
from gapless.http.server import HttpServer
from gapless.http.step_meter import STEP_MAX_MS
from gapless.overlay import chain
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import free_ports, local_network
from gapless.runtime.process import _tune_cycle_collector
from gapless.security.limits import Limits

PAYLOAD = b"x" * 1_000
REPEATS = 5
IDLE = "none"
SHARED = ("GET /api/network", "GET /api/samples", "GET /api/sessions", "GET /durable")
"""Requests with cached answers: the gateway computes each answer at most once a second."""
EFFECTS = 50


@dataclass(frozen=True)
class Size:
    """The amount of the broker's state."""

    clients: int = 200
    subscriptions: int = 10
    """The number of subscriptions per client."""
    durables: int = 100
    events: int = 20_000


SMALL = Size(clients=50, durables=20, events=2_000)

Request = Callable[[httpx.AsyncClient], Awaitable[int]]
"""Sends one request, and returns the size of the response in bytes."""


def get(path: str, **params: str) -> Request:
    """Return a GET request."""

    async def send(client: httpx.AsyncClient) -> int:
        answer = await client.get(path, params=params)
        assert answer.is_success, (path, answer.text[:500])
        return len(answer.content)

    return send


def post(path: str, document: Any) -> Request:
    """Return a request that sends a JSON document."""
    body = msgspec.json.encode(document)

    async def send(client: httpx.AsyncClient) -> int:
        answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.is_success, (path, answer.text[:500])
        return len(answer.content)

    return send


async def idle(client: httpx.AsyncClient) -> int:
    """Send no request."""
    await asyncio.sleep(1)
    return 0


def replay(count: int) -> Request:
    """Read a stream from the beginning of history until the given number of events has arrived."""

    async def send(client: httpx.AsyncClient) -> int:
        size = found = 0
        async with client.stream("GET", "/events", params={"since": "earliest"}) as response:
            async for part in response.aiter_bytes():
                size += len(part)
                found += part.count(b'\ndata: {"id"')
                if found >= count:
                    break
        return size

    return send


async def fill(url: str, size: Size) -> None:
    """Create clients, subscriptions and history at a broker; print the position of an event with many effects."""
    async with AsyncExitStack() as stack:
        print(await filled(stack, url, size), flush=True)
        await asyncio.Event().wait()


async def filled(stack: AsyncExitStack, url: str, size: Size) -> str:
    """Create the clients, which stay connected until the stack is closed."""
    for number in range(size.clients):
        client = await stack.enter_async_context(connect(url, name=f"client-{number}"))
        await asyncio.gather(
            *(
                client.subscribe(f"topic = 'none' AND customer = {number} AND amount > {each}")
                for each in range(size.subscriptions)
            )
        )
    publisher = await stack.enter_async_context(connect(url, name="publisher"))
    await publisher.advertise("TRUE")
    for number in range(size.durables):
        await (await publisher.durable(f"durable-{number}", f"topic = 'none' AND n = {number}")).close()
    await publisher.publish_many(({"topic": "order", "n": n, "country": "DE"}, PAYLOAD) for n in range(size.events))
    return await causes(publisher)


async def causes(client: Client) -> str:
    """Publish an event with many effects, each of which has an effect."""
    async with client.subscribe("topic = 'effect'") as events:
        await client.publish({"topic": "effect", "n": 0})
        [first] = await events.take(1)
        await client.publish_many(({"topic": "effect", "n": n, **caused_by(first)}, b"") for n in range(EFFECTS))
    return str(first.position)


def requests(position: str, size: Size) -> dict[str, Request]:
    """Return all kinds of requests."""
    event = {"attributes": {"topic": "order", "amount": 7, "country": "DE"}, "text": "x" * 500}
    filters = [f"topic = 'order' AND amount > {n} AND country IN ('DE', 'FR')" for n in range(200)]
    return {
        IDLE: idle,
        "GET /healthz": get("/healthz"),
        "GET /metrics": get("/metrics"),
        "GET /status": get("/status"),
        "GET /": get("/"),
        "GET /openapi.json": get("/openapi.json"),
        "GET /api/network": get("/api/network"),
        "GET /api/samples": get("/api/samples"),
        "GET /api/sessions": get("/api/sessions"),
        "GET /api/log": get("/api/log"),
        "GET /durable": get("/durable"),
        "POST /api/covers": post("/api/covers", {"filters": filters}),
        "POST /api/filter": post("/api/filter", {"filter": " OR ".join(f"amount = {n}" for n in range(60))}),
        "GET /api/graph": get("/api/graph", position=position),
        "POST /events": post("/events", event),
        "POST /events, 1,000": post("/events", [event] * 1_000),
        "POST /events, 1,000 with ids": post("/events", [{"id": f"i{n}", **event} for n in range(1_000)]),
        "POST /events, 2 MB": post("/events", [{"attributes": {"topic": "big"}, "text": "x" * 60_000}] * 32),
        "GET /events, history": get("/events", since="earliest", until="now"),
        "GET /events, history as NDJSON": get("/events", since="earliest", until="now", format="ndjson"),
        "GET /events, history by filter": get("/events", since="earliest", until="now", filter="n = 1"),
        "GET /events, replay, then live": replay(size.events),
    }


async def measure(size: Size, folder: Path) -> dict[str, dict[str, Any]]:
    """Send all requests, and return the longest turn for each kind."""
    config = local_network(chain(3), http_ports=list(free_ports(3)))
    config = msgspec.structs.replace(config, limits=Limits(connections=0, connections_per_s=0))
    async with AsyncExitStack() as stack:
        brokers = [Broker(config, name) for name in config.overlay.brokers]
        await asyncio.gather(*(broker.start() for broker in brokers))
        for broker in brokers:
            stack.push_async_callback(broker.stop)
        asked = brokers[0]
        server = HttpServer(asked)
        await server.start()
        stack.push_async_callback(server.close)
        command = [
            sys.executable,
            __file__,
            "--fill",
            f"gapless://{asked.entry.address}",
            *(["--quick"] if size == SMALL else []),
        ]
        clients = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        stack.callback(clients.kill)
        assert clients.stdout is not None
        position = (await clients.stdout.readline()).decode().strip()
        _tune_cycle_collector()
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"http://{asked.entry.http}", trust_env=False, timeout=120)
        )
        found = {}
        for name, send in requests(position, size).items():
            found[name] = await longest(server, client, send, 1.1 if name in SHARED else 0.0)
        return found


async def longest(server: HttpServer, client: httpx.AsyncClient, send: Request, pause_s: float) -> dict[str, Any]:
    """Return the longest step of a request that is sent several times, and the longest turn of its broker during that
    time."""
    broker = server._broker
    meter, steps = broker.links.meter, server._gateway.steps
    await send(client)
    await asyncio.sleep(pause_s)
    meter.longest_ms = steps.longest_ms = 0.0
    for _ in range(REPEATS):
        size = await send(client)
        await asyncio.sleep(pause_s)
    return {"step_ms": steps.longest_ms, "turn_ms": meter.longest_ms, "what": meter.what, "bytes": size}


def main() -> int:
    """Print the table; return 1 if a turn was too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--fill", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = SMALL if arguments.quick else Size()
    if arguments.fill:
        run(fill(arguments.fill, size))
    with tempfile.TemporaryDirectory() as folder:
        found = run(measure(size, Path(folder)))
    table = Table(title="The longest turn of the event loop, by kind of request")
    for name in ("request", "bytes", "step ms", "turn ms", "in it"):
        table.add_column(name, justify="left" if name in ("request", "in it") else "right")
    for name, row in found.items():
        table.add_row(name, f"{row['bytes']:,}", f"{row['step_ms']:.1f}", f"{row['turn_ms']:.1f}", row["what"])
    Console().print(table)
    if arguments.out:
        arguments.out.write_text(json.dumps(found))
    most = found[IDLE]["turn_ms"] + STEP_MAX_MS
    return int(any(row["step_ms"] > STEP_MAX_MS or row["turn_ms"] > most for row in found.values()))


if __name__ == "__main__":
    sys.exit(main())
