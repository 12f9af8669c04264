"""Runs brokers whose clocks are wrong, jump and drift (libfaketime); no confirmed event may be lost.

    python -m trials.clocks
    python -m trials.clocks --protocol gapless --seconds 5
    python -m trials.clocks --control

Six brokers run as processes with data on disk. One client publishes and waits for each confirmation, another
subscribes, and a third has a durable subscription. The clocks of running brokers are set one after the other: an hour
ahead, an hour back, a day ahead, a day back, 5 % too fast, 5 % too slow, and correct again. Then a broker is killed
and restarted with a wrong clock: it must report that it waits, and join when the clock is correct. Meanwhile a client
repeatedly reads all history up to the newest position, at every broker in turn. Each read must return every event
confirmed before the call.

The trial needs libfaketime (the Debian package of this name), which multiplies the processor time of an idle broker.
So reads take seconds on a small machine, even with correct clocks: `--control` leaves all clocks correct. Exit codes:
0 if no event is missing, duplicated or out of order, and each broker with a wrong clock waited; 1 otherwise; 2
without libfaketime.
"""

import argparse
import asyncio
import glob
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapless.client import Client, connect
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry

CLOCKS = ("+1h", "-1h", "+1d", "-1d", "+0 x1.05", "+0 x0.95", "+0")
WRONG_AT_START = ("+1h", "-1h", "+1d", "-1d")
PATIENCE_S = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial and print its result."""
    parser = argparse.ArgumentParser(description="Brokers whose clocks are wrong, jump and drift.")
    parser.add_argument("--protocol", default="gapless")
    parser.add_argument("--brokers", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=5.0, help="with each clock")
    parser.add_argument("--control", action="store_true", help="leave all clocks right")
    asked = parser.parse_args(arguments)
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")
    if not library:
        print("libfaketime is not installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="gapless-clocks-") as place:
        return run(_measure(asked, library, Path(place)))


class _Clocks:
    """The clocks of the brokers: for each a file, which libfaketime reads every second."""

    def __init__(self, library: str, place: Path, *, right: bool) -> None:
        self._library = library
        self._place = place
        self._right = right

    def set(self, broker: str, clock: str) -> None:
        clock = "+0" if self._right else clock
        (self._place / f"{broker}.clock").write_text(clock + "\n", encoding="ascii")

    def environment(self, broker: str) -> dict[str, str]:
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._place / f"{broker}.clock"),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


class _Load:
    """The confirmed, delivered and read events."""

    def __init__(self) -> None:
        self.confirmed = 0
        self.live: list[int] = []
        self.durable: list[int] = []
        self.reads = 0
        self.read_lacks: list[str] = []
        self.slowest_read_s = 0.0

    async def publish(self, client: Client) -> None:
        await client.advertise("n > 0")
        for n in range(1, 1 << 30):
            await client.publish({"n": n})
            self.confirmed = n
            await asyncio.sleep(0.05)

    async def subscribe(self, client: Client) -> None:
        async for event in await client.subscribe("n > 0"):
            self.live.append(event.integer("n"))

    async def attach(self, client: Client) -> None:
        async for event in await client.durable("clocks", "n > 0"):
            self.durable.append(event.integer("n"))

    async def read(self, addresses: Sequence[str]) -> None:
        while True:
            for address in addresses:
                await self._read_at(address)
                await asyncio.sleep(0.3)

    async def _read_at(self, address: str) -> None:
        try:
            async with connect(f"gapless://{address}", name="reader", timeout_s=10) as client:
                confirmed, begun = self.confirmed, time.monotonic()
                got = [event.integer("n") async for event in await client.read("n > 0", since="earliest")]
        except Exception as error:
            if not isinstance(error, OSError | TimeoutError) and type(error).__name__ != "ConnectError":
                raise
            await asyncio.sleep(0.1)
            return
        self.reads += 1
        self.slowest_read_s = max(self.slowest_read_s, time.monotonic() - begun)
        if got != list(range(1, len(got) + 1)) or len(got) < confirmed:
            self.read_lacks.append(f"{address}: {len(got)} of {confirmed}")


async def _measure(asked: argparse.Namespace, library: str, place: Path) -> int:
    config = local_network(asked.brokers, protocol=ProtocolEntry(asked.protocol), data=place / "data")
    addresses = list(config.addresses.values())
    clocks, load = _Clocks(library, place, right=asked.control), _Load()
    facts: dict[str, Any] = {"brokers": asked.brokers, "protocol": asked.protocol, "did_not_wait": []}
    with Fleet(config, place / "brokers") as fleet:
        for name in fleet.names:
            clocks.set(name, "+0")
            fleet.start(name, clocks.environment(name))
        await fleet.until_whole(PATIENCE_S)
        publisher, subscriber, keeper = [
            await connect(f"gapless://{addresses[n]}", name=f"c{n}", timeout_s=PATIENCE_S) for n in (0, 1, 2)
        ]
        listening = [asyncio.create_task(each) for each in (load.subscribe(subscriber), load.attach(keeper))]
        await asyncio.sleep(2)
        publishing = asyncio.create_task(load.publish(publisher))
        reading = asyncio.create_task(load.read(addresses))
        await _set_while_running(fleet, clocks, asked.seconds)
        if not asked.control:
            facts["did_not_wait"] = await _set_before_start(fleet, clocks)
        await asyncio.sleep(asked.seconds)
        for task in (publishing, reading):
            task.cancel()
        deadline = time.monotonic() + PATIENCE_S
        while min(len(load.live), len(load.durable)) < load.confirmed and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        for task in [publishing, reading, *listening]:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
            task.cancel()
        for client in (publisher, subscriber, keeper):
            await client.close()
    expected = list(range(1, load.confirmed + 1))
    facts |= {
        "confirmed": load.confirmed, "reads": load.reads, "slowest_read_s": round(load.slowest_read_s, 2),
        "reads_that_lack": load.read_lacks[:10],
        "live_is_whole": load.live[: load.confirmed] == expected,
        "durable_is_whole": load.durable[: load.confirmed] == expected,
    }  # fmt: skip
    print(json.dumps(facts, indent=2))
    is_right = facts["live_is_whole"] and facts["durable_is_whole"] and not load.read_lacks and load.reads
    return 0 if is_right and not facts["did_not_wait"] else 1


async def _set_while_running(fleet: Fleet, clocks: _Clocks, seconds: float) -> None:
    """Set each wrong clock at another broker in turn; three brokers have a wrong clock at a time."""
    names = fleet.names
    for step, clock in enumerate(CLOCKS * 2):
        clocks.set(names[step % len(names)], clock)
        await asyncio.sleep(seconds)
    for name in names:
        clocks.set(name, "+0")


async def _set_before_start(fleet: Fleet, clocks: _Clocks) -> list[str]:
    """Return the brokers that joined although their clocks were wrong."""
    joined = []
    for place, clock in enumerate(WRONG_AT_START):
        name = fleet.names[place % len(fleet.names)]
        fleet.kill(name)
        clocks.set(name, clock)
        fleet.start(name, clocks.environment(name))
        if not await _says_that_it_waits(fleet, name):
            joined.append(f"{name} with {clock}")
        clocks.set(name, "+0")
        await fleet.until_whole(PATIENCE_S)
    return joined


async def _says_that_it_waits(fleet: Fleet, name: str) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if "for the clock of its host to be set" in fleet.log(name).read_text(encoding="utf-8", errors="replace"):
            return not (await fleet.report(name)).get("ready", False)
        await asyncio.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main())
