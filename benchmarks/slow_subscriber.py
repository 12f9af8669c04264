"""Measures how a subscriber that takes ten of two thousand events per second affects other clients.

    python benchmarks/slow_subscriber.py            # two minutes
    python benchmarks/slow_subscriber.py --quick    # a short run

The same load runs twice on one broker in a separate process: without the slow subscriber, and with it. The other
clients are a publisher and a subscriber in separate processes. When more than `lag_window` deliveries wait for the slow
subscriber, it is served from history. The benchmark prints rate, latency, and the peak memory of the broker for both
runs. It fails if the rate of the other clients falls by more than a tenth.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import said, start  # noqa: E402
from benchmarks.peers.gapless_system import FILTER, Gapless  # noqa: E402

import gapless  # noqa: E402

RATE = 2_000
SLOW_RATE = 10
LEAST = 0.9


async def take_slowly(port: int) -> None:
    """Take ten events per second until the process is killed."""
    async with gapless.connect(f"gapless://127.0.0.1:{port}") as client:
        subscription = await client.subscribe(FILTER)
        print(json.dumps({"ready": True}), flush=True)
        async for _ in subscription:
            await asyncio.sleep(1 / SLOW_RATE)


def start_slow(port: int) -> "subprocess.Popen[str]":
    """Start the slow subscriber in a separate process."""
    command = [sys.executable, str(Path(__file__)), "--slow", str(port)]
    return subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)


def peak_mib(pid: int) -> float:
    """Return the peak memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure(count: int, *, is_slow: bool) -> dict[str, Any]:
    """Return the figures of one run."""
    system = Gapless()
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port:
        processes = [start_slow(port)] if is_slow else []
        try:
            for process in processes:
                said(process)
            taker = start("subscribe", system, port, count, RATE)
            processes.append(taker)
            said(taker)
            publisher = start("publish", system, port, count, RATE)
            processes.append(publisher)
            begun, end = said(publisher), said(taker)
            memory = max(peak_mib(server.pid) for server in system.servers)
        finally:
            for process in processes:
                process.kill()
                process.wait()
    p50, p99 = end["latency_ms"]
    return {"rate": count / (end["end"] - begun["start"]), "p50_ms": p50, "p99_ms": p99, "memory_mib": memory}


def main() -> int:
    """Print the table; return 1 if the slow subscriber affects the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    parser.add_argument("--slow", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.slow:
        asyncio.run(take_slowly(arguments.slow))
        return 0
    count = RATE * (15 if arguments.quick else 60)
    found = {name: measure(count, is_slow=name == "with it") for name in ("without it", "with it")}
    table = Table(title=f"{count:,} events at {RATE:,}/s, beside a subscriber that takes {SLOW_RATE} a second")
    for name in ("", "events/s", "p50 ms", "p99 ms", "broker MiB"):
        table.add_column(name, justify="left" if not name else "right")
    for name, figures in found.items():
        table.add_row(
            name, f"{figures['rate']:,.0f}", f"{figures['p50_ms']:.2f}", f"{figures['p99_ms']:.2f}",
            f"{figures['memory_mib']:.0f}",
        )  # fmt: skip
    Console().print(table)
    if arguments.out:
        arguments.out.write_text(json.dumps(found))
    return 0 if found["with it"]["rate"] >= LEAST * found["without it"]["rate"] else 1


if __name__ == "__main__":
    sys.exit(main())
