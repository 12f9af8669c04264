"""Runs a network on an overloaded machine: no broker may be excluded.

    python -m trials.overload
    python -m trials.overload --seconds 120 --clients 50 --subscriptions 5 --stress 8

The first command is the complete trial: seven brokers and 200 clients with 50 subscriptions each, ten minutes beside
eight busy loops, on a machine without other work.

The brokers, the clients and the busy loops are processes. When every client has all its subscriptions, one client
publishes until the time is over. The trial prints its duration and the suspicions: of brokers and clients, false ones,
excluded brokers, clients that lost a connection, and the share of events that arrived.

Exit codes: 0 if no broker was excluded and every client received every event, 1 otherwise.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapless.client import Client, connect
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry

CLIENTS_PER_PROCESS = 25
"""The number of clients in one process."""
READY_S = 600.0
RATE = 20
"""Published events per second; each matches one subscription of every client."""
DRAIN_S = 60.0
BUSY_LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"
"""A busy loop that ends with this process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and print its result."""
    parser = argparse.ArgumentParser(description="A network beside a machine's worth of other work.")
    parser.add_argument("--brokers", type=int, default=7)
    parser.add_argument("--protocol", default="gapless")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--subscriptions", type=int, default=50, help="of each client")
    parser.add_argument("--stress", type=int, default=8, help="busy loops beside the network; 0 for none")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long to publish")
    parser.add_argument("--run-clients", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.run_clients:
        url, first, count, subscriptions = asked.run_clients
        run(_run_clients(url.split(","), int(first), int(count), int(subscriptions)))
        return 0
    with tempfile.TemporaryDirectory(prefix="gapless-overload-") as place:
        return run(_measure(asked, Path(place)))


# ---- the clients ----------------------------------------------------------------------------------------------


async def _run_clients(addresses: list[str], first: int, count: int, subscriptions: int) -> None:
    """Run some clients in this process; send their figures to the parent when it closes its end of the pipe."""
    got: Counter[str] = Counter()
    clients: list[Client] = []
    taking: list[asyncio.Task[None]] = []

    async def take(client: Client, number: int) -> None:
        subscription = await client.subscribe(f"n = {number}" if number else "n >= 0")
        if not number:
            ready.append(client.name)
            async for _ in subscription:
                got[client.name] += 1

    ready: list[str] = []
    for number in range(first, first + count):
        client = await connect(f"gapless://{addresses[number % len(addresses)]}", name=f"c{number}", timeout_s=READY_S)
        clients.append(client)
        for each in range(1, subscriptions):
            await take(client, -each)
        taking.append(asyncio.create_task(take(client, 0)))
    while len(ready) < count:
        await asyncio.sleep(0.05)
    print(json.dumps({"ready": count}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps({"got": got, **_seen(clients)}), flush=True)
    os._exit(0)


def _seen(clients: list[Client]) -> dict[str, int]:
    """Return the suspicions of these clients' failure detectors."""
    detectors = [client._connection_manager._links.detector for client in clients]
    return {
        "suspicions": sum(each.absences["suspected"] for each in detectors),
        "false_suspicions": sum(each.false_suspicions for each in detectors),
        "attempts": sum(client.identity.attempt for client in clients),
    }


# ---- the network ----------------------------------------------------------------------------------------------


async def _measure(asked: argparse.Namespace, place: Path) -> int:
    config = local_network(asked.brokers, protocol=ProtocolEntry(asked.protocol))
    addresses = list(config.addresses.values())
    facts: dict[str, Any] = {"brokers": asked.brokers, "clients": asked.clients, "stress": asked.stress}
    with Fleet(config, place) as fleet:
        fleet.start_all()
        await fleet.until_whole(READY_S)
        watching = asyncio.create_task(_watch(fleet, facts))
        stress = _start_stress(asked.stress)
        processes: list[subprocess.Popen[str]] = []
        try:
            begun = time.monotonic()
            for first in range(0, asked.clients, CLIENTS_PER_PROCESS):
                count = min(CLIENTS_PER_PROCESS, asked.clients - first)
                processes.append(_start_clients(addresses, first, count, asked.subscriptions))
            for process in processes:
                await asyncio.to_thread(_said, process)
            facts["ready_s"] = round(time.monotonic() - begun, 1)
            facts["published"] = published = await _publish(addresses[0], asked.seconds)
            watching.cancel()
            ends = [await asyncio.to_thread(_end, process) for process in processes]
        finally:
            for process in processes:
                process.kill()
            for process in stress:
                process.terminate()
    for key in ("suspicions", "false_suspicions", "attempts"):
        facts[f"client_{key}"] = sum(end[key] for end in ends)
    got = Counter[str]()
    for end in ends:
        got.update(end["got"])
    facts["missing"] = sum(max(0, published - count) for count in got.values())
    facts["silent_clients"] = asked.clients - len(got)
    print(json.dumps(facts, indent=2))
    return 0 if not facts["excluded"] and not facts["missing"] and not facts["silent_clients"] else 1


async def _watch(fleet: Fleet, facts: dict[str, Any]) -> None:
    """Query the brokers at intervals; counters only grow, so a later query replaces a missing answer."""
    counters = ("suspicions", "false_suspicions", "lost_clients")
    latest: dict[str, dict[str, int]] = {}
    excluded: set[str] = set()
    facts["excluded"] = []
    while True:
        for name in fleet.names:
            report = await fleet.report(name)
            if report:
                latest[name] = {key: report.get(key, 0) for key in counters}
                overview = report["overview"]
                excluded.update(overview.get("replaced_by", {}))
        facts["excluded"] = sorted(excluded)
        facts.update({key: sum(each[key] for each in latest.values()) for key in counters})
        await asyncio.sleep(0.5)


async def _publish(address: str, seconds: float) -> int:
    async with connect(f"gapless://{address}", name="publisher", timeout_s=READY_S) as client:
        await client.advertise("n >= 0")
        begun, number = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            await client.publish({"n": number})
            number += 1
            await asyncio.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        await asyncio.sleep(min(DRAIN_S, 5 + seconds / 10))
        return number


def _start_stress(count: int) -> list["subprocess.Popen[str]"]:
    return [subprocess.Popen([sys.executable, "-c", BUSY_LOOP], text=True) for _ in range(count)]


def _start_clients(addresses: list[str], first: int, count: int, subscriptions: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "trials.overload", "--run-clients", ",".join(addresses)]
    return subprocess.Popen(
        [*command, str(first), str(count), str(subscriptions)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _said(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("clients ended without a report")
    found: dict[str, Any] = json.loads(line)
    return found


def _end(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.close()
    return _said(process)


if __name__ == "__main__":
    sys.exit(main())
