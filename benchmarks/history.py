"""Measures history on disk: the rate of confirmations, compared with other systems; the rate of reading; and the time
until a broker with a million events has restarted.

    python benchmarks/history.py            # some minutes
    python benchmarks/history.py --quick    # a short run
    python benchmarks/history.py --dir DIR  # on this disk instead of the project's

Payloads have 100 bytes; publisher and subscriber run in separate processes, as in `network.py`. Gapless confirms a
publication when f + 1 brokers have synced it. JetStream by default acknowledges before it syncs, so both of its modes
are measured. Each system publishes for some seconds, several times, alternating with the others; the best result is
used.

The history that is read was published before, with the same value in every hundredth event. A client in this process
reads it to its end, once with a filter that matches all events, and once with a filter that matches every hundredth; in
the second case, the events examined by brokers are counted. The benchmark fails if a broker syncs less than twice as
many publications per second as JetStream by default, or if fewer than 150,000 events per second are read, or fewer than
500,000 examined.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.network import measure  # noqa: E402
from benchmarks.peers.__main__ import ON_DISK  # noqa: E402
from benchmarks.peers.gapless_system import GaplessOnDisk  # noqa: E402
from benchmarks.peers.nats_system import JetStreamOnFile  # noqa: E402
from benchmarks.peers.system import System  # noqa: E402

import gapless  # noqa: E402

LEAST_TO_PEER = 2.0
LEAST_READ = 150_000
LEAST_LOOKED_AT = 500_000
PROBE = 2_000
EVERY = 100
"""One in this many events matches."""
PAYLOAD = bytes(100)


class ThreeOnDisk(GaplessOnDisk):
    """Three brokers in a row, two of which sync each publication."""

    def __init__(self) -> None:
        super().__init__(brokers=3, f=1)


# ---- confirmations --------------------------------------------------------------------------------------------------


def compare(console: Console, folder: Path, seconds: float, runs: int) -> dict[str, dict[str, Any]]:
    """Return the publications per second of all systems, each measured for some seconds."""
    kinds: dict[str, type[System]] = {}
    offered: tuple[type[System], ...] = (*ON_DISK, ThreeOnDisk)
    for kind in offered:
        why = kind().missing()
        if why:
            console.print(f"{kind.name} left out: {why}")
        else:
            kinds["gapless, synced, three brokers, f = 1" if kind is ThreeOnDisk else kind.name] = kind
    found: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("systems", total=len(kinds) * runs)
        for _ in range(runs):
            for name, kind in kinds.items():
                progress.update(task, description=name)
                if name not in counts:
                    counts[name] = max(PROBE, int(seconds * measure(kind(), PROBE, folder=folder)["rate"]))
                rate = measure(kind(), counts[name], folder=folder)["rate"]
                if name not in found or rate > found[name]["rate"]:
                    found[name] = {"rate": rate, "events": counts[name], "promise": kind.promise}
                progress.advance(task)
    return found


# ---- reading history ------------------------------------------------------------------------------------------------


async def fill(url: str, count: int) -> None:
    """Publish the events to be read."""
    async with gapless.connect(url) as client:
        await client.advertise("TRUE")
        await client.publish_many(({"topic": "history", "n": n % EVERY}, PAYLOAD) for n in range(count))


async def read(url: str, filter_text: str) -> tuple[int, float]:
    """Return the number of matching events, and the seconds to read them all."""
    async with gapless.connect(url) as client:
        begun = time.perf_counter()
        reading = await client.read(filter_text)
        matched = 0
        while events := await reading.take(4096):
            matched += len(events)
        return matched, time.perf_counter() - begun


async def first_word(url: str) -> None:
    """Return the seconds until a first publication is confirmed."""
    while True:
        try:
            async with gapless.connect(url, timeout_s=60) as client:
                await client.advertise("TRUE")
                await client.publish({"topic": "after"})
                return
        except gapless.ConnectError:
            continue


def replay(folder: Path, count: int, runs: int) -> dict[str, Any]:
    """Measure reading a broker's history, and its restart after a kill."""
    system = GaplessOnDisk()
    with system.serve(folder) as port:
        url = f"gapless://127.0.0.1:{port}"
        begun = time.perf_counter()
        uvloop.run(fill(url, count))
        filled_s = time.perf_counter() - begun
        rates: dict[str, float] = {}
        for name, text, share in (("all", "TRUE", 1), ("one in a hundred", "n = 7", EVERY)):
            for _ in range(runs):
                matched, seconds = uvloop.run(read(url, text))
                if matched != count // share:
                    raise RuntimeError(f"{matched:,} events of {count // share:,} were read")
                rates[name] = max(rates.get(name, 0.0), count / seconds)
        system.servers[0].kill()
        system.servers[0].wait()
        begun = time.perf_counter()
        system.servers[0] = system.start("b0", folder)
        uvloop.run(first_word(url))
        serves_s = time.perf_counter() - begun
        matched, _ = uvloop.run(read(url, "topic = 'history'"))
        if matched != count:
            raise RuntimeError(f"after the restart {matched:,} events of {count:,} were read")
    return {"events": count, "filled_per_s": count / filled_s, "looked_at_per_s": rates, "serves_after_s": serves_s}


def show(console: Console, systems: dict[str, dict[str, Any]], replayed: dict[str, Any]) -> float | None:
    """Print the tables; return the ratio of our rate to JetStream's, or None if JetStream is not installed."""
    table = Table(title="one publisher, one subscriber, on disk; events of 100 bytes")
    for name in ("system", "promises"):
        table.add_column(name)
    table.add_column("events/s", justify="right")
    for name, result in sorted(systems.items(), key=lambda item: -item[1]["rate"]):
        style = "bold" if name.startswith("gapless") else None
        table.add_row(name, result["promise"], f"{result['rate']:,.0f}", style=style)
    console.print(table)
    peer = systems.get(JetStreamOnFile.name)
    ratio = None if peer is None else systems[GaplessOnDisk.name]["rate"] / peer["rate"]
    if ratio is not None:
        console.print(f"gapless, synced: {ratio:.2f} times JetStream as it comes, which is not ({LEAST_TO_PEER} asked)")
    console.print(f"{replayed['events']:,} events were published at {replayed['filled_per_s']:,.0f}/s, and read again:")
    for name, rate in replayed["looked_at_per_s"].items():
        console.print(f"  {name}: {rate:,.0f} events/s looked at")
    console.print(f"the broker was killed, and served again {replayed['serves_after_s']:.1f} s after its start")
    return ratio


def main() -> int:
    """Print the tables; return 1 if Gapless is slower than required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a glance")
    parser.add_argument("--dir", type=Path, default=HERE.parent / "out", help="on which disk")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    chosen = parser.parse_args()
    chosen.dir.mkdir(parents=True, exist_ok=True)
    seconds, runs, count = (1.0, 1, 100_000) if chosen.quick else (6.0, 3, 1_000_000)
    console = Console()
    systems = compare(console, chosen.dir, seconds, runs)
    with tempfile.TemporaryDirectory(dir=chosen.dir) as folder:
        replayed = replay(Path(folder), count, runs)
    ratio = show(console, systems, replayed)
    if chosen.out:
        chosen.out.write_text(json.dumps({"systems": systems, "ratio": ratio, "replay": replayed}), encoding="utf-8")
    all_of_it, few = replayed["looked_at_per_s"].values()
    is_fast = (ratio is None or ratio >= LEAST_TO_PEER) and all_of_it >= LEAST_READ and few >= LEAST_LOOKED_AT
    return 0 if is_fast or chosen.quick else 1


if __name__ == "__main__":
    sys.exit(main())
