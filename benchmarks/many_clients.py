"""Measures ten thousand clients with five subscriptions each at one broker: memory, connection rate, and the latency of
other clients.

    python benchmarks/many_clients.py            # minutes
    python benchmarks/many_clients.py --quick    # two hundred clients

The clients run in a few separate processes, and each one subscribes to topics of its own. A publisher and a subscriber,
also in separate processes, measure the latency of events before the others connect and when all of them are connected.
The benchmark prints the memory of the broker for each client, the number of clients that connect per second, both
latencies, and the longest turn of the broker's event loop. Then a thousand clients subscribe to everything, and receive
a flood of events. The benchmark fails if a turn takes longer than 100 ms.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import TURN_MAX_MS, said, start  # noqa: E402
from benchmarks.peers.gapless_system import FILTER, Gapless  # noqa: E402

import gapless  # noqa: E402
from gapless.runtime.event_loop import run  # noqa: E402

CLIENTS = 9_990
"""The number of clients: a broker accepts ten thousand in all."""
SUBSCRIPTIONS = 5
PROCESSES = 4
AT_ONCE = 20
"""The number of clients that a process connects at the same time."""
TIMEOUT_S = 60.0
"""The timeout of each client for finding the broker on this busy machine."""
RATE = 200
EVENTS = 2_000


async def connect_clients(port: int, first: int, last: int, count: int) -> None:
    """Connect clients with these numbers, and subscribe to a topic for each, or to all events if `count` is given.
    Then report when `count` events have arrived. The clients stay connected until the process is killed.
    """
    gc.disable()
    slots = asyncio.Semaphore(AT_ONCE)
    async with contextlib.AsyncExitStack() as stack:

        async def subscribe(number: int) -> gapless.Subscription:
            async with slots:
                url = f"gapless://127.0.0.1:{port}"
                client = await stack.enter_async_context(gapless.connect(url, timeout_s=TIMEOUT_S))
                if count:
                    return await client.subscribe(FILTER)
                topics = [f"topic = 'of {number}' AND x > {place}" for place in range(SUBSCRIPTIONS)]
                return [await client.subscribe(topic) for topic in topics][-1]

        async def take(subscription: gapless.Subscription) -> None:
            got = 0
            while got < count:
                got += len(await subscription.take(1024))

        try:
            subscriptions = await asyncio.gather(*map(subscribe, range(first, last)))
        except gapless.GaplessError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)  # at once: closing thousands of clients takes minutes
        print(json.dumps({"ready": True}), flush=True)
        await asyncio.gather(*map(take, subscriptions))
        print(json.dumps({"end": time.monotonic()}), flush=True)
        await asyncio.Event().wait()


def start_clients(port: int, first: int, last: int, count: int = 0) -> "subprocess.Popen[str]":
    """Start a process with some of the clients."""
    command = [sys.executable, str(Path(__file__)), "--connect-clients", *map(str, (port, first, last, count))]
    return subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)


def memory_kib(pid: int) -> int:
    """Return the memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def latency(system: Gapless, port: int, count: int) -> list[float]:
    """Return the median and the 99th percentile in milliseconds."""
    processes = [start("subscribe", system, port, count, RATE)]
    try:
        said(processes[0])
        processes.append(start("publish", system, port, count, RATE))
        found: list[float] = said(processes[0])["latency_ms"]
        return found
    finally:
        end(*processes)


def end(*processes: "subprocess.Popen[str]") -> None:
    """Stop the processes."""
    for process in processes:
        process.kill()
        process.wait()


@contextlib.contextmanager
def client_processes(port: int, clients: int, count: int = 0) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start the given number of clients in a few processes, and wait until all are connected."""
    bounds = [clients * number // PROCESSES for number in range(PROCESSES + 1)]
    processes = [start_clients(port, first, last, count) for first, last in pairwise(bounds)]
    try:
        for process in processes:
            said(process)
        yield processes
    finally:
        end(*processes)


def flood(clients: int, count: int) -> float:
    """Return the deliveries per second if all clients subscribe to all events."""
    system = Gapless()
    with (
        tempfile.TemporaryDirectory() as folder,
        system.serve(Path(folder)) as port,
        client_processes(port, clients, count) as processes,
    ):
        publisher = start("publish", system, port, count, 0)
        try:
            begun: float = said(publisher)["start"]
            over: float = max(said(process)["end"] for process in processes)
            return clients * count / (over - begun)
        finally:
            end(publisher)


def measure(clients: int, events: int) -> dict[str, Any]:
    """Measure the cost of many clients."""
    system = Gapless()
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port:
        before = latency(system, port, events)
        [broker] = system.servers
        empty, begun = memory_kib(broker.pid), time.monotonic()
        with client_processes(port, clients):
            seconds = time.monotonic() - begun
            print(f"{clients:,} clients are there after {seconds:.0f} s", file=sys.stderr, flush=True)
            return {
                "clients": clients,
                "subscriptions": SUBSCRIPTIONS,
                "clients_per_s": clients / seconds,
                "kib_per_client": (memory_kib(broker.pid) - empty) / clients,
                "latency_ms_before": before,
                "latency_ms_beside": latency(system, port, events),
            }


def show(found: dict[str, Any]) -> None:
    """Print the table."""
    table = Table(title=f"{found['clients']:,} clients with {found['subscriptions']} subscriptions each, at one broker")
    for name in ("", "p50 ms", "p99 ms"):
        table.add_column(name, justify="left" if not name else "right")
    for name, kind in (("before they subscribe", "before"), ("beside them", "beside")):
        p50, p99 = found[f"latency_ms_{kind}"]
        table.add_row(name, f"{p50:.2f}", f"{p99:.2f}")
    console = Console()
    console.print(table)
    console.print(
        f"{found['clients_per_s']:,.0f} subscribe a second; each takes {found['kib_per_client']:.1f} KiB of the broker"
    )
    console.print(f"{found['subscribers']:,} subscribers to everything: {found['deliveries_per_s']:,.0f} deliveries/s")
    console.print(
        f"longest turn of the broker's event loop: {found['longest_turn_ms']:.1f} ms ({found['longest_turn']})"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--connect-clients", nargs=4, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.connect_clients:
        with contextlib.suppress(KeyboardInterrupt):
            run(connect_clients(*asked.connect_clients))
        return 0
    found = measure(200 if asked.quick else CLIENTS, EVENTS // 10 if asked.quick else EVENTS)
    found["subscribers"] = 50 if asked.quick else 1_000
    found["deliveries_per_s"] = flood(found["subscribers"], 200 if asked.quick else 4_000)
    found["longest_turn_ms"], found["longest_turn"] = Gapless.longest_turn
    show(found)
    if asked.out:
        asked.out.write_text(json.dumps(found), encoding="utf-8")
    return int(found["longest_turn_ms"] > TURN_MAX_MS)


if __name__ == "__main__":
    sys.exit(main())
