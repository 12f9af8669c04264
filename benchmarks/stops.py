"""Measures how long deliveries stop after a fault: the median and the longest interruption for each kind.

    python benchmarks/stops.py            # ten minutes
    python benchmarks/stops.py --quick    # three minutes
    python benchmarks/stops.py --times 9 --only kill cut

Seven broker processes form a binary tree, with their data on disk, f = 1, and default settings. A client publishes 200
events per second at one leaf, and another subscribes at another leaf; the fault is on the path between them. The
interruption is the longest time without a delivery between the fault and the complete recovery of the network. The
table divides it into three parts: the time of the failure detector (`suspect_ms`), the time of the fault itself (the
duration of a cut, or of the absence of brokers without which no other may continue), and the remaining time, which is
due to the protocol. Detectors wait longer after a false suspicion, so a fault that leaves its broker alive gets a new
network each time. The benchmark fails if an event is missing.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from trials.cut_proxy import CutProxyProcess, proxied  # noqa: E402

import gapless  # noqa: E402
from gapless.overlay import binary  # noqa: E402
from gapless.runtime.event_loop import run  # noqa: E402
from gapless.runtime.fleet import Fleet, local_network  # noqa: E402
from gapless.runtime.network_file import ProtocolEntry  # noqa: E402
from gapless.runtime.settings import RuntimeSettings  # noqa: E402

RATE = 200
TIMES = 7
CALM_S = 1.0
LONG_S = 3.0
"""The duration of a fault in seconds: longer than the time until a suspicion."""
PATIENCE_S = 60.0
PUBLISHER, MIDDLE, ROOT, SUBSCRIBER = "b3", "b1", "b0", "b5"
"""A leaf, its parent, the root, and a leaf on the other side."""
LEFT = ("b1", "b3", "b4")
SUSPECT_MS = RuntimeSettings().suspect_ms
Act = Callable[[Fleet, CutProxyProcess], Coroutine[Any, Any, None]]


async def kill(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Kill the broker, and start it some seconds later."""
    fleet.kill(MIDDLE)
    await asyncio.sleep(LONG_S)
    fleet.start(MIDDLE)


async def restart(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Kill the broker, and start it at once."""
    fleet.kill(MIDDLE)
    fleet.start(MIDDLE)


async def leave(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Stop the broker gracefully, and start it some seconds later."""
    await asyncio.to_thread(fleet.dismiss, MIDDLE)
    await asyncio.sleep(LONG_S)
    fleet.start(MIDDLE)


async def freeze(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Pause the broker for some seconds."""
    fleet.freeze(MIDDLE)
    await asyncio.sleep(LONG_S)
    fleet.thaw(MIDDLE)


async def break_link(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Break a connection that can be made again at once."""
    proxy.cut(MIDDLE, ROOT)
    await asyncio.sleep(0.05)
    proxy.heal(MIDDLE, ROOT)


async def cut(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Separate two neighbours for some seconds."""
    proxy.cut(MIDDLE, ROOT)
    await asyncio.sleep(LONG_S)
    proxy.heal(MIDDLE, ROOT)


async def partition(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Separate three brokers from the other four for some seconds."""
    pairs = [(one, other) for one in LEFT for other in fleet.names if other not in LEFT]
    for pair in pairs:
        proxy.cut(*pair)
    await asyncio.sleep(LONG_S)
    for pair in pairs:
        proxy.heal(*pair)


async def two_at_once(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Kill more than f brokers: two neighbours. Restart them some seconds later, with their disks."""
    for name in (MIDDLE, ROOT):
        fleet.kill(name)
    await asyncio.sleep(LONG_S)
    for name in (MIDDLE, ROOT):
        fleet.start(name)


async def blackout(fleet: Fleet, proxy: CutProxyProcess) -> None:
    """Kill all brokers, and start them at once."""
    for name in fleet.names:
        fleet.kill(name)
    fleet.start_all()


class Kind(msgspec.Struct, frozen=True):
    """One kind of fault."""

    act: Act
    told: str
    waits_s: float = 0.0
    """How long the fault itself interrupts deliveries, independently of the protocol."""
    is_detected: bool = True
    """Whether a broker has to be suspected first."""
    is_alive: bool = False
    """Whether the broker is alive."""


KINDS = {
    "link": Kind(break_link, "a connection breaks, and is made again", is_detected=False),
    "restart": Kind(restart, "a broker is killed and started at once", is_detected=False),
    "leave": Kind(leave, "a broker leaves gracefully", is_detected=False),
    "kill": Kind(kill, "a broker is killed"),
    "freeze": Kind(freeze, "a broker is paused", is_alive=True),
    "cut": Kind(cut, "two neighbours cannot reach each other", LONG_S, False, is_alive=True),
    "partition": Kind(partition, "3 of 7 are cut off; the publisher is among them", LONG_S, False),
    "beyond f": Kind(two_at_once, "two neighbours are killed; they return with their disks", LONG_S, False),
    "blackout": Kind(blackout, "all are killed and started at once", is_detected=False),
}


class Load:
    """One publisher and one subscriber."""

    def __init__(self) -> None:
        self.came: list[float] = []
        self.numbers: list[int] = []
        self.published = 0
        self.is_open = True

    async def publish(self, client: gapless.Client) -> None:
        """Publish at a steady rate, and make up for delays."""
        pending: set[asyncio.Task[Any]] = set()
        due = time.monotonic()
        while self.is_open:
            pending = {task for task in pending if not task.done()}
            pending.add(asyncio.create_task(client.publish({"n": self.published})))
            self.published += 1
            due = max(due + 1 / RATE, time.monotonic() - 0.1)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*pending)

    async def take(self, subscription: gapless.Subscription) -> None:
        """Take events until the subscription is closed."""
        while events := await subscription.take():
            self.came.append(time.monotonic())
            self.numbers += [int(event.attributes["n"]) for event in events]

    def longest_s(self, since: float) -> float:
        """Return the longest time without a delivery."""
        moments = [since, *(moment for moment in self.came if moment > since), time.monotonic()]
        return max(later - earlier for earlier, later in pairwise(moments))


async def measure(fleet: Fleet, proxy: CutProxyProcess, act: Act, times: int) -> list[float]:
    """Return the longest interruption after each fault, in milliseconds."""
    await fleet.until_whole(PATIENCE_S)
    load, stops = Load(), []
    addresses = fleet.config.addresses
    async with (
        gapless.connect(f"gapless://{addresses[PUBLISHER]}", name="ann") as ann,
        gapless.connect(f"gapless://{addresses[SUBSCRIBER]}", name="bob") as bob,
    ):
        await ann.advertise("n >= 0")
        subscription = await bob.subscribe("n >= 0")
        publishing = asyncio.create_task(load.publish(ann))
        taking = asyncio.create_task(load.take(subscription))
        for _ in range(times):
            await asyncio.sleep(CALM_S)
            begun = time.monotonic()
            await act(fleet, proxy)
            await fleet.until_whole(PATIENCE_S)
            await asyncio.sleep(CALM_S)
            stops.append(load.longest_s(begun) * 1000)
        load.is_open = False
        await publishing
        async with asyncio.timeout(PATIENCE_S):
            while len(load.numbers) < load.published:
                await asyncio.sleep(0.02)
        await subscription.close()
        await taking
    assert load.numbers == list(range(load.published)), "something is missing, doubled or out of order"
    return stops


def try_kind(kind: Kind, times: int, protocol: str) -> list[float]:
    """Return the interruptions, in milliseconds."""
    if kind.is_alive:
        return [stop for _ in range(times) for stop in try_network(kind, 1, protocol)]
    return try_network(kind, times, protocol)


def try_network(kind: Kind, times: int, protocol: str) -> list[float]:
    """Return the interruptions in a new network."""
    with tempfile.TemporaryDirectory() as folder:
        entry = ProtocolEntry(protocol)
        config = proxied(local_network(binary(2), f=1, protocol=entry, data=Path(folder) / "data"))
        with Fleet(config, Path(folder) / "logs") as fleet, closing(CutProxyProcess(fleet.file)) as proxy:
            fleet.start_all()
            return run(measure(fleet, proxy, kind.act, times))


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two times each")
    parser.add_argument("--times", type=int, default=TIMES, help=f"how often each kind strikes (default: {TIMES})")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--protocol", default="gapless", help="what the brokers run")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    asked = parser.parse_args(arguments)
    times = 2 if asked.quick else asked.times
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    headings = ("fault", "median ms", "worst ms", "detector", "fault", "protocol", "what happens")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in (headings[0], headings[-1]) else "right")
    figures: dict[str, Any] = {}
    for name in asked.only or KINDS:
        kind = KINDS[name]
        stops = try_kind(kind, times, asked.protocol)
        median, worst = statistics.median(stops), max(stops)
        detector = SUSPECT_MS if kind.is_detected else 0.0
        ours = max(0.0, median - detector - kind.waits_s * 1000)
        figures[name] = {"median_ms": median, "worst_ms": worst, "ours_ms": ours, "stops_ms": stops}
        shown = (f"{value:,.0f}" for value in (median, worst, detector, kind.waits_s * 1000, ours))
        table.add_row(name, *shown, kind.told)
        print(f"{name}: {', '.join(f'{stop:,.0f}' for stop in stops)} ms", file=sys.stderr, flush=True)
    Console(width=120).print(table)
    if asked.out:
        asked.out.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
