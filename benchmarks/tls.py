"""Measures the cost of TLS: events per second through one broker, and connections per second, with and without TLS.

    python benchmarks/tls.py            # a minute
    python benchmarks/tls.py --quick    # a short run

A connection is opened, authenticated by its certificate, accepted, and closed. The benchmark fails if the throughput
with TLS is below 0.6 of that without, or if a turn of a broker's event loop is too long.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.network import TURN_MAX_MS, measure
from benchmarks.peers.gapless_system import Gapless
from benchmarks.peers.secure_system import SecureGapless

from gapless.runtime.access import Access
from gapless.runtime.probe import probe

LEAST = 0.6
AT_ONCE = 8


async def _connect(address: str, access: Access, count: int) -> float:
    """Return the connections per second, some at a time."""
    begun = time.monotonic()

    async def some() -> None:
        for _ in range(count // AT_ONCE):
            await probe(address, access=access, timeout_s=30)

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return count / (time.monotonic() - begun)


def handshakes(system: Gapless, count: int) -> float:
    """Return the number of connections per second that a broker accepts."""
    with tempfile.TemporaryDirectory() as folder, system.serve(Path(folder)) as port:
        return uvloop.run(_connect(f"127.0.0.1:{port}", system.access, count))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures as JSON, too")
    given = parser.parse_args()
    quick = given.quick
    count, runs, connections = (20_000, 3, 400) if quick else (100_000, 5, 2_000)
    clear: list[float] = []
    secure: list[float] = []
    for _ in range(runs):  # alternately, so that both are measured under the same conditions
        clear.append(measure(Gapless(), count)["rate"])
        secure.append(measure(SecureGapless(), count)["rate"])
    shakes = [handshakes(Gapless(), connections), handshakes(SecureGapless(), connections)]
    table = Table(title=f"one broker, {count:,} events of 100 bytes, median of {runs}; {AT_ONCE} connections at a time")
    table.add_column("")
    for name in ("events/s", "connections/s"):
        table.add_column(name, justify="right")
    for name, rates, shaken in (("clear text", clear, shakes[0]), ("TLS", secure, shakes[1])):
        table.add_row(name, f"{statistics.median(rates):,.0f}", f"{shaken:,.0f}")
    console = Console()
    console.print(table)
    share = statistics.median(secure) / statistics.median(clear)
    turn, what = Gapless.longest_turn
    console.print(f"with TLS: {share:.2f} times the events ({LEAST} is asked for); longest turn {turn:.0f} ms ({what})")
    if given.out:
        medians = {"clear": statistics.median(clear), "tls": statistics.median(secure)}
        connected = {"clear": shakes[0], "tls": shakes[1]}
        given.out.write_text(json.dumps({"events_per_s": medians, "connections_per_s": connected, "share": share}))
    return 0 if share >= LEAST and turn <= TURN_MAX_MS else 1


if __name__ == "__main__":
    sys.exit(main())
