"""Measures a publisher, a broker and a subscriber in three processes on loopback, compared with other systems.

    python benchmarks/network.py            # some minutes
    python benchmarks/network.py --quick    # a short run

Payloads have 100 bytes. Gapless is measured twice: with typical events, each with four distinct attributes besides its
topic, and with events whose attributes are all equal, which are sent and matched together. Rates are measured from the
publisher's first call to the subscriber's last event; all events must arrive in order and exactly once. The upper limit
is a bare relay without any guarantee (`peers/relay_system.py`). The other systems are the servers from the operating
system's packages with their Python clients; systems that are not installed are named and skipped. The benchmark fails
if Gapless with equal attributes is slower than NATS core, which guarantees nothing, or if a turn of a broker's event
loop is too long.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.peers.__main__ import IN_MEMORY  # noqa: E402
from benchmarks.peers.gapless_system import Gapless, GaplessDistinct  # noqa: E402
from benchmarks.peers.system import System  # noqa: E402

PATIENCE_S = 300
PACE = 2_000
TURN_MAX_MS = 100.0
"""The maximum turn of a broker's event loop."""


def start(role: str, system: System, port: int, count: int, rate: float) -> "subprocess.Popen[str]":
    """Start a publisher or subscriber in a separate process."""
    command = [sys.executable, "-m", "benchmarks.peers", role, system.name, str(port), str(count), str(rate)]
    return subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """Wait for the next report of the process, and return it."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended without an answer")
    facts: dict[str, Any] = json.loads(line)
    return facts


def measure(
    system: System, count: int, rate: float = 0, subscribers: int = 1, folder: Path | None = None
) -> dict[str, Any]:
    """Return the events per second that reached all subscribers in one run, or the latency of each event. Servers write
    their output to the folder."""
    with tempfile.TemporaryDirectory(dir=folder) as place, system.serve(Path(place)) as port:
        takers = [start("subscribe", system, port, count, rate) for _ in range(subscribers)]
        publisher = None
        try:
            for taker in takers:
                said(taker)
            last = system.ports[-1] if isinstance(system, Gapless) else port
            busy = system.processor_s()
            publisher = start("publish", system, last, count, rate)
            begun = said(publisher)
            ends = [said(taker) for taker in takers]
            busy = system.processor_s() - busy
        finally:
            for process in [*takers, *([publisher] if publisher else [])]:
                process.kill()
                process.wait()
        wrong = sum(end["wrong"] for end in ends)
        if wrong:
            raise RuntimeError(f"{system.name}: {wrong} events out of order")
        seconds = max(end["end"] for end in ends) - begun["start"]
        spread = [statistics.median(end["latency_ms"][place] for end in ends) for place in (0, 1)] if rate else []
        busy += begun["processor_s"] + sum(end["processor_s"] for end in ends)
        return {"rate": count / seconds, "latency_ms": spread, "processor_us": 1e6 * busy / count}


def best(system: System, count: int, runs: int, **kind: Any) -> dict[str, Any]:
    """Return the fastest of several runs, because other load can only slow a run."""
    return max((measure(system, count, **kind) for _ in range(runs)), key=lambda found: found["rate"])


def compare(console: Console, count: int, runs: int, paced: int) -> dict[str, dict[str, Any]]:
    """Return throughput and latency of all systems."""
    table = Table(title=f"one publisher, one broker, one subscriber; {count:,} events of 100 bytes, best of {runs}")
    for name in ("system", "promises"):
        table.add_column(name)
    for name in ("events/s", "of the limit", "µs/event", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    found: dict[str, dict[str, Any]] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("systems", total=len(IN_MEMORY))
        for kind in IN_MEMORY:
            name, system = kind.name, kind()
            progress.update(task, description=name)
            if system.missing():
                console.print(f"{name} left out: {system.missing()}")
            else:
                found[name] = best(system, count, runs)
                found[name]["latency_ms"] = measure(system, paced, rate=PACE)["latency_ms"]
            progress.advance(task)
    limit = found["bare relay"]["rate"]
    promises = {kind.name: kind.promise for kind in IN_MEMORY}
    for name, result in sorted(found.items(), key=lambda item: -item[1]["rate"]):
        p50, p99 = result["latency_ms"]
        table.add_row(
            name, promises[name], f"{result['rate']:,.0f}", f"{result['rate'] / limit:.0%}",
            f"{result['processor_us']:.1f}", f"{p50:.2f}", f"{p99:.2f}",
            style="bold" if name in (GaplessDistinct.name, Gapless.name) else None,
        )  # fmt: skip
    console.print(table)
    if "NATS core" in found:
        for name in (GaplessDistinct.name, Gapless.name):
            console.print(f"{name}: {found[name]['rate'] / found['NATS core']['rate']:.2f} times NATS core")
    return found


def scale(
    console: Console, count: int, paced: int, hops: list[int], subscribers: list[int]
) -> dict[str, dict[int, dict[str, Any]]]:
    """Measure how the figures change with the number of brokers and of subscribers."""
    found: dict[str, dict[int, dict[str, Any]]] = {"brokers": {}, "subscribers": {}}
    table = Table(title=f"gapless over several brokers (f = 1 from the third on), latency at {PACE:,} events/s")
    for name in ("brokers", "events/s", "p50 ms", "p99 ms"):
        table.add_column(name, justify="right")
    for brokers in hops:
        f = int(brokers > 2)
        rate = measure(Gapless(brokers, f), count)["rate"]
        p50, p99 = measure(Gapless(brokers, f), paced, rate=PACE)["latency_ms"]
        found["brokers"][brokers] = {"rate": rate, "latency_ms": [p50, p99]}
        table.add_row(str(brokers), f"{rate:,.0f}", f"{p50:.2f}", f"{p99:.2f}")
    console.print(table)
    table = Table(title="gapless with several subscribers to everything, one broker")
    for name in ("subscribers", "events/s", "deliveries/s"):
        table.add_column(name, justify="right")
    for many in subscribers:
        rate = measure(Gapless(), max(count // many, 2_000), subscribers=many)["rate"]
        found["subscribers"][many] = {"rate": rate, "deliveries_per_s": rate * many}
        table.add_row(str(many), f"{rate:,.0f}", f"{rate * many:,.0f}")
    console.print(table)
    return found


def main() -> int:
    """Print the tables; return 1 if Gapless is slower than required, or occupies an event loop for too long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--protocol", default=Gapless.protocol, help="what the brokers of gapless run")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    arguments = parser.parse_args()
    Gapless.protocol = arguments.protocol
    quick = arguments.quick
    console = Console()
    count, runs, paced = (50_000, 1, 2_000) if quick else (300_000, 3, 10_000)
    systems = compare(console, count, runs, paced)
    scaled = scale(
        console, count // 3, paced // 2, [1, 3] if quick else [1, 2, 3, 4, 5], [1, 10] if quick else [1, 10, 100]
    )
    longest_ms, what = Gapless.longest_turn
    console.print(f"longest turn of a broker's event loop: {longest_ms:.1f} ms of the processor ({what})")
    if arguments.out:
        figures = {"events": count, "systems": systems, "gapless_over": scaled, "longest_turn_ms": longest_ms}
        arguments.out.write_text(json.dumps(figures))
    peer = systems.get("NATS core")
    is_fast = peer is None or systems["gapless"]["rate"] >= peer["rate"]
    return 0 if is_fast and longest_ms <= TURN_MAX_MS else 1


if __name__ == "__main__":
    sys.exit(main())
