"""Ten consoles are open on a broker: does a subscriber notice?

    python benchmarks/consoles.py            # three minutes
    python benchmarks/consoles.py --quick    # a glance

The same load, in turns without consoles, with them, and without them again, on one broker in a process of its own.
Publisher, subscriber and consoles are processes of their own. Each console watches all that any view of the page
watches, and has a live stream of events. Printed are medians of all rounds: rate, latency, and the processor time of
the broker. Fails if consoles change the p99 of the subscriber more than two runs without them differ, if a console
takes more than 4 ms of the broker's processor in each second, or if a turn that served a request took more than 20 ms.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import said, start  # noqa: E402
from benchmarks.peers.gapless_system import Gapless  # noqa: E402

from gapless.http.step_meter import STEP_MAX_MS  # noqa: E402
from gapless.runtime.fleet import free_ports  # noqa: E402

RATE = 1_000
CONSOLES = 10
ROUNDS = 5
CONSOLE_MAX_MS = 4.0
"""Of the processor, in each second."""
WATCHED = "/api/watch?topic=network&topic=sessions&topic=durables&topic=log"
"""More than any view of a console watches."""
TAILED = "/events?filter=topic%20%3D%20%27seldom%27"
"""A live tail of what is published seldom."""


class GaplessWithHttp(Gapless):
    """One broker with its HTTP side."""

    def __init__(self) -> None:
        super().__init__()
        self.http = f"127.0.0.1:{free_ports(1)[0]}"

    def of_broker(self, name: str, folder: Path) -> str:
        return f'http = "{self.http}"\n'


async def look(address: str) -> None:
    """Ten consoles, until killed."""
    async with asyncio.TaskGroup() as tasks:
        for number in range(CONSOLES):
            tasks.create_task(read(address, WATCHED))
            ready = asyncio.Event()
            tasks.create_task(read(address, TAILED, ready))
            await ready.wait()
            if number == CONSOLES - 1:
                print(json.dumps({"ready": True}), flush=True)


async def read(address: str, path: str, ready: asyncio.Event | None = None) -> None:
    """Read the response to one request. A console is no load by itself, so neither is its stand-in."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    while await reader.read(1 << 16):
        if ready is not None:
            ready.set()


def measure(count: int, *, are_open: bool) -> dict[str, float]:
    """One run."""
    system = GaplessWithHttp()
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port:
        processes: list[subprocess.Popen[str]] = []
        try:
            if are_open:
                command = [sys.executable, str(Path(__file__)), "--look", system.http]
                processes.append(subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True))
                said(processes[0])
            taker = start("subscribe", system, port, count, RATE)
            processes.append(taker)
            said(taker)
            publisher = start("publish", system, port, count, RATE)
            processes.append(publisher)
            worked, began = processor_s(system.servers[0].pid), time.monotonic()
            begun, end = said(publisher), said(taker)
            share = (processor_s(system.servers[0].pid) - worked) / (time.monotonic() - began)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        turns = httpx.get(f"http://{system.http}/status", trust_env=False).json()["turns"]
    p50, p99 = end["latency_ms"]
    served = turns["longest_ms"] if "over HTTP" in turns["what"] else 0.0
    rate = count / (end["end"] - begun["start"])
    return {"rate": rate, "p50_ms": p50, "p99_ms": p99, "processor_ms": 1000 * share, "request_ms": served}


def processor_s(process: int) -> float:
    """How many seconds of the processor a process has used."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def middle(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> int:
    """Print the table; 1 if the subscriber notices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--look", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.look:
        asyncio.run(look(arguments.look))
        return 0
    count = RATE * (5 if arguments.quick else 10)
    runs: dict[str, list[dict[str, float]]] = {"without": [], "with": [], "without, again": []}
    for _ in range(1 if arguments.quick else ROUNDS):
        for name, found in runs.items():
            found.append(measure(count, are_open=name == "with"))
    figures: dict[str, Any] = {name: middle(found) for name, found in runs.items()}
    table = Table(title=f"{count:,} events at {RATE:,}/s, without and with {CONSOLES} open consoles")
    for name in ("", "events/s", "p50 ms", "p99 ms", "processor ms/s"):
        table.add_column(name, justify="left" if not name else "right")
    for name, row in figures.items():
        cells = (f"{row['rate']:,.0f}", f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['processor_ms']:.0f}")
        table.add_row(name, *cells)
    Console().print(table)
    figures |= compared(runs)
    Console().print(
        f"p99: {figures['p99_rise_ms']:+.2f} ms with consoles; two runs without them differ by up to "
        f"{figures['p99_noise_ms']:.2f} ms\neach console takes {figures['console_ms']:.2f} ms of the broker's "
        f"processor in each second\nthe longest turn that served a request took {figures['request_ms']:.1f} ms"
    )
    if arguments.out:
        arguments.out.write_text(json.dumps(figures))
    is_noticed = figures["p99_rise_ms"] > figures["p99_noise_ms"]
    return 1 if is_noticed or figures["console_ms"] > CONSOLE_MAX_MS or figures["request_ms"] > STEP_MAX_MS else 0


def compared(runs: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """What consoles change, as medians of the rounds, beside what two runs without them differ by."""
    rounds = list(zip(runs["without"], runs["with"], runs["without, again"], strict=True))
    rises = [opened["p99_ms"] - (one["p99_ms"] + other["p99_ms"]) / 2 for one, opened, other in rounds]
    costs = [
        opened["processor_ms"] - (one["processor_ms"] + other["processor_ms"]) / 2 for one, opened, other in rounds
    ]
    return {
        "p99_rise_ms": statistics.median(rises),
        "p99_noise_ms": max(abs(one["p99_ms"] - other["p99_ms"]) for one, _, other in rounds),
        "console_ms": statistics.median(costs) / CONSOLES,
        "request_ms": max(run["request_ms"] for run in runs["with"]),
    }


if __name__ == "__main__":
    sys.exit(main())
