"""Partitions and more than f failures of a real network: each confirmed event arrives, or its loss is reported.

    python -m trials.beyond                       # eight minutes
    python -m trials.beyond --seconds 5 --only "two and six"

Eight broker processes form a tree, f = 1. Clients publish at four of them, and subscribe to everything at three, with
the public client. The trial counts for itself, without the checkers: of all events that `publish` confirmed, which did
not arrive, arrived twice or out of order, and which were reported as lost.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from gapless import Client, GaplessError, SkippedError, Subscription, connect
from gapless.overlay import from_edges
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry

from .cut_proxy import CutProxyProcess, proxied

EDGES = (("b0", "b1"), ("b0", "b2"), ("b1", "b3"), ("b1", "b4"), ("b2", "b5"), ("b2", "b6"), ("b4", "b7"))
TREE = from_edges(EDGES)
PUBLISHERS = ("b0", "b3", "b5", "b7")
SUBSCRIBERS = ("b2", "b4", "b6")
RATE = 20
CALM_S = 2.0
QUIET_S = 3.0
HEALED_S = 120.0
Act = Callable[["Trial", float], Awaitable[None]]


class Kind(msgspec.Struct, frozen=True):
    """A kind of fault."""

    act: Act
    told: str
    has_disks: bool = True


class Outcome(msgspec.Struct):
    """The result of a trial."""

    kind: str
    told: str
    confirmed: int = 0
    while_it_lasted: int = 0
    """The number of these events that were confirmed during the fault."""
    delivered: int = 0
    lost: int = 0
    """Deliveries reported as lost."""
    missing: int = 0
    """Deliveries of confirmed events that neither arrived nor were reported as lost."""
    wrong: int = 0
    """Deliveries that arrived twice, or out of order."""
    false: int = 0
    """Deliveries that were reported as lost but arrived, or were reported twice."""
    untold_publishers: int = 0
    """The number of publishers with lost events that were not notified."""
    healed_s: float = 0.0
    lives: int = 0
    """The number of broker incarnations."""

    @property
    def is_fine(self) -> bool:
        """Return whether no error was silent."""
        return not (self.missing or self.wrong or self.false or self.untold_publishers)


class Reader:
    """A subscription and its deliveries."""

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.came: dict[str, list[int]] = {}
        self.lost: dict[str, Counter[int]] = {}
        self.last = time.monotonic()

    async def read(self) -> None:
        """Read the subscription until it ends."""
        while True:
            try:
                events = await self.subscription.take()
            except SkippedError as error:
                for publisher, ranges in error.lost.items():
                    for first, last in ranges:
                        self.lost.setdefault(publisher, Counter()).update(range(first, last + 1))
                continue
            for event in events:
                self.came.setdefault(event.publisher, []).append(event.seq)
            self.last = time.monotonic()


class Trial:
    """A network that suffers one fault."""

    def __init__(self, fleet: Fleet, proxy: CutProxyProcess) -> None:
        self.fleet = fleet
        self.proxy = proxy
        self.confirmed: dict[str, list[int]] = {}
        self._publishers: list[Client] = []
        self._is_publishing = True
        self._pending: set[asyncio.Task[None]] = set()

    async def cut(self, one: tuple[str, ...], seconds: float, *, one_way: bool = False) -> None:
        """Cut the connections from the others to these brokers, in one direction or both."""
        pairs = [(a, b) for a in one for b in self.fleet.names if b not in one]
        for pair in pairs:
            (self.proxy.mute if one_way else self.proxy.cut)(*pair)
        await asyncio.sleep(seconds)
        for pair in pairs:
            self.proxy.heal(*pair)

    async def link(self, seconds: float) -> None:
        """Return one direction of a link."""
        self.proxy.mute("b1", "b0")
        await asyncio.sleep(seconds)
        self.proxy.heal("b1", "b0")

    async def kill(self, names: tuple[str, ...], seconds: float) -> None:
        """Kill brokers and restart them."""
        for name in names:
            self.fleet.kill(name)
        await asyncio.sleep(seconds)
        for name in names:
            self.fleet.start(name)

    async def run(self, kind: str, seconds: float) -> Outcome:
        """Run the trial and return its outcome."""
        chosen = KINDS[kind]
        outcome = Outcome(kind, chosen.told)
        await self.fleet.until_whole(HEALED_S)
        readers = [Reader(await (await self._client("s", at)).subscribe("TRUE")) for at in SUBSCRIBERS]
        reading = [asyncio.create_task(reader.read()) for reader in readers]
        publishing = [asyncio.create_task(self._publish(await self._client("p", at))) for at in PUBLISHERS]
        await asyncio.sleep(CALM_S)
        before = self._count()
        await chosen.act(self, seconds)
        outcome.while_it_lasted = self._count() - before
        healing = time.monotonic()
        await self.fleet.until_whole(HEALED_S)
        outcome.healed_s = round(time.monotonic() - healing, 1)
        await asyncio.sleep(CALM_S)
        self._is_publishing = False
        async with asyncio.timeout(HEALED_S):
            await asyncio.gather(*publishing)
            while self._pending or time.monotonic() - max(reader.last for reader in readers) < QUIET_S:
                await asyncio.sleep(0.1)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        self._judge(readers, outcome)
        for reader in readers:
            await reader.subscription.close()
        for client in self._publishers:
            await client.close()
        outcome.lives = sum(
            log.count("joined the network") + log.count("has restarted with a new incarnation")
            for log in (self.fleet.log(name).read_text(encoding="utf-8") for name in self.fleet.names)
        ) - len(self.fleet.names)
        return outcome

    async def _client(self, name: str, broker: str) -> Client:
        """Return a client that knows all brokers and prefers this one."""
        addresses = self.fleet.config.addresses
        order = [broker, *(other for other in self.fleet.names if other != broker)]
        url = "gapless://" + ",".join(addresses[each] for each in order)
        return await connect(url, name=f"{name}-{broker}", timeout_s=60.0)

    async def _publish(self, client: Client) -> None:
        self._publishers.append(client)
        await client.advertise("TRUE")
        while self._is_publishing:
            if len(self._pending) < RATE * 100:
                task = asyncio.create_task(self._publish_one(client))
                self._pending.add(task)
                task.add_done_callback(self._pending.discard)
            await asyncio.sleep(1 / RATE)

    async def _publish_one(self, client: Client) -> None:
        try:
            event = await client.publish({"at": time.time()})
        except GaplessError:
            return
        self.confirmed.setdefault(client.name, []).append(event.seq)

    def _count(self) -> int:
        return sum(map(len, self.confirmed.values()))

    def _judge(self, readers: list[Reader], outcome: Outcome) -> None:
        outcome.confirmed = self._count()
        buried: dict[str, set[int]] = {}
        for reader in readers:
            for publisher, numbers in self.confirmed.items():
                came, lost = reader.came.get(publisher, []), reader.lost.get(publisher, Counter[int]())
                told = set(lost)
                outcome.false += len(told & set(came)) + lost.total() - len(told)
                outcome.delivered += len(came)
                outcome.wrong += sum(count - 1 for count in Counter(came).values())
                outcome.wrong += sum(one > other for one, other in pairwise(came))
                absent = set(numbers) - set(came)
                outcome.lost += len(absent & told)
                outcome.missing += len(absent - told)
                buried.setdefault(publisher, set()).update(absent & told)
        for client in self._publishers:
            heard = {n for first, last in client.lost_publications for n in range(first, last + 1)}
            outcome.untold_publishers += bool(buried.get(client.name, set()) - heard)


KINDS = {
    "two and six": Kind(lambda trial, s: trial.cut(("b2", "b6"), s), "two brokers are cut off from six"),
    "four and four": Kind(
        lambda trial, s: trial.cut(("b1", "b3", "b4", "b7"), s), "four brokers are cut off from four"
    ),
    "one direction": Kind(
        lambda trial, s: trial.cut(("b1", "b3", "b4", "b7"), s, one_way=True), "four hear the other four, who do not"
    ),
    "one link": Kind(lambda trial, s: trial.link(s), "one link is cut in one direction"),
    "off": Kind(lambda trial, s: trial.cut(("b4",), s), "a broker is cut off from brokers, not from clients"),
    "two killed": Kind(lambda trial, s: trial.kill(("b0", "b1"), s), "two neighbours die, and return with disks"),
    "three killed": Kind(
        lambda trial, s: trial.kill(("b0", "b1", "b2"), s), "three neighbours die, and return with disks"
    ),
    "two lost": Kind(
        lambda trial, s: trial.kill(("b1", "b3"), s), "two neighbours die, without disks", has_disks=False
    ),
    "three lost": Kind(
        lambda trial, s: trial.kill(("b1", "b3", "b4"), s), "three neighbours die, without disks", has_disks=False
    ),
    "all killed": Kind(lambda trial, s: trial.kill(TREE.brokers, min(s, 2.0)), "all die, and return with disks"),
}


def attempt(kind: str, seconds: float, protocol: str) -> Outcome:
    """Run a trial of one kind in its own network."""
    with tempfile.TemporaryDirectory(prefix="gapless-beyond-") as place:
        data = Path(place) / "data" if KINDS[kind].has_disks else None
        config = proxied(local_network(TREE, f=1, protocol=ProtocolEntry(protocol), data=data))
        with Fleet(config, Path(place) / "logs") as fleet, closing(CutProxyProcess(fleet.file)) as proxy:
            fleet.start_all()
            return run(Trial(fleet, proxy).run(kind, seconds))


def main() -> int:
    """Run the trials of the chosen kinds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each lasts")
    parser.add_argument("--protocol", default="gapless", help="what the brokers run")
    parser.add_argument("--only", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    outcomes = []
    console = Console(stderr=True)
    for kind in chosen.only:
        console.print(f"{kind}: {KINDS[kind].told} …")
        outcomes.append(attempt(kind, chosen.seconds, chosen.protocol))
    if chosen.json:
        print(json.dumps([msgspec.to_builtins(outcome) for outcome in outcomes]))
    else:
        table = Table("kind", box=None)
        for name in ("confirmed", "meanwhile", "delivered", "told lost", "silent", "false", "wrong", "healed", "lives"):
            table.add_column(name, justify="right")
        for outcome in outcomes:
            counts = (
                outcome.confirmed, outcome.while_it_lasted, outcome.delivered, outcome.lost,
                outcome.missing + outcome.untold_publishers, outcome.false, outcome.wrong,
            )  # fmt: skip
            table.add_row(
                outcome.kind, *(f"{count:,}" for count in counts), f"{outcome.healed_s} s", f"{outcome.lives}"
            )
        Console().print(table)
    return 0 if all(outcome.is_fine for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
