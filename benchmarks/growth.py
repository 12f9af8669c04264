"""Measures how the cost of an event grows with its attributes, its payload, the brokers on its path, and the load.

    python benchmarks/growth.py            # some minutes
    python benchmarks/growth.py --quick    # a short run

A publisher and a subscriber run in separate processes, with one broker unless stated otherwise; from three brokers on,
f = 1. Events have distinct attributes. The cost is the processor time of all processes for one event, which depends
less on other work on the machine than the rate does.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.network import measure
from benchmarks.peers.gapless_system import GaplessDistinct

AXES: dict[str, tuple[list[int], list[int]]] = {
    "attributes of an event": ([1, 2, 4, 8, 16, 32], [1, 8]),
    "bytes of a payload": ([10, 100, 1_000, 10_000, 65_000], [100, 1_000]),
    "subscribers": ([1, 3, 10, 30, 100], [1, 10]),
    "brokers in a row": ([1, 2, 3, 5, 7, 9], [1, 3]),
    "brokers in a binary tree": ([3, 7, 15, 31, 63], [3, 7]),
}
"""The axes: all values, and those for a short run."""
LOADS = ([500, 1_000, 2_000, 4_000, 8_000], [1_000])
"""Events per second, published one by one."""


@contextmanager
def environment(**values: int) -> Iterator[None]:
    """Set variables that the benchmark's processes read (`benchmarks.peers.system`)."""
    os.environ |= {name: str(value) for name, value in values.items()}
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]


def point(axis: str, value: int, count: int) -> dict[str, Any]:
    """Measure one value of one axis."""
    if axis == "attributes of an event":
        with environment(BENCH_ATTRIBUTES=value):
            return measure(GaplessDistinct(), count // (1 + value // 8))
    if axis == "bytes of a payload":
        with environment(BENCH_PAYLOAD=max(16, value)):
            return measure(GaplessDistinct(), max(2_000, count // (1 + value // 500)))
    if axis == "subscribers":
        return measure(GaplessDistinct(), max(2_000, count // value), subscribers=value)
    f = int(value > 2)
    if axis == "brokers in a row":
        return measure(GaplessDistinct(value, f), count // value)
    tree = [(number, 2 * number + side) for number in range(value) for side in (1, 2) if 2 * number + side < value]
    return measure(GaplessDistinct(value, f, tree), max(2_000, count // value))


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=AXES, help="one axis")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    count = 20_000 if arguments.quick else 100_000
    axes = {axis: values[arguments.quick] for axis, values in AXES.items() if arguments.only in (None, axis)}
    loads = [] if arguments.only else LOADS[arguments.quick]
    console = Console()
    found: dict[str, dict[int, dict[str, Any]]] = {}
    latencies: dict[int, list[float]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=sum(map(len, axes.values())) + len(loads))
        for axis, values in axes.items():
            for value in values:
                progress.update(task, description=f"{value:,} {axis}")
                found.setdefault(axis, {})[value] = point(axis, value, count)
                progress.advance(task)
        for load in loads:
            progress.update(task, description=f"{load:,} events per second")
            latencies[load] = measure(GaplessDistinct(), 3 * load, rate=load)["latency_ms"]
            progress.advance(task)
    for axis, points in found.items():
        table = Table(title=f"growth with the {axis}")
        for name in (axis, "events/s", "µs/event"):
            table.add_column(name, justify="right")
        for value, figures in points.items():
            table.add_row(f"{value:,}", f"{figures['rate']:,.0f}", f"{figures['processor_us']:.1f}")
        console.print(table)
    if latencies:
        table = Table(title="latency of events that are published one by one")
        for name in ("events/s", "p50 ms", "p99 ms"):
            table.add_column(name, justify="right")
        for load, (p50, p99) in latencies.items():
            table.add_row(f"{load:,}", f"{p50:.2f}", f"{p99:.2f}")
        console.print(table)
    if arguments.out:
        arguments.out.write_text(json.dumps({"growth": found, "latency_ms": latencies}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
