"""Runs one part of `gapless demo`: three brokers with disks are all killed at once and restarted.

A shop publishes, and an archive subscribes. Events confirmed before the kill must be delivered afterwards, exactly
once, and a later history read gets them from the disks.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gapless.client import connect
from gapless.errors import ConnectError
from gapless.overlay import chain
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import NetworkConfig
from gapless.runtime.settings import RuntimeSettings

__all__ = ["BlackoutRun", "blackout_network", "run_blackout"]

BEFORE = 1_000
"""The number of confirmed events after which all brokers are killed."""
AFTER = 100
SUSPECT_MS = 3_000.0
PATIENCE_S = 60.0
EVENTS = "kind = 'sale'"
Tell = Callable[[str], None]


class BlackoutRun(msgspec.Struct, frozen=True):
    """The results of the outage."""

    confirmed: int
    """Number of events that were confirmed before the brokers were killed."""
    published: int
    delivered: int
    """Number of distinct events that were delivered."""
    twice: int
    read: int
    """Number of events that a later client read from history."""
    back_ms: float
    """Time from the first restart until a publication was confirmed again."""


def blackout_network(folder: Path) -> NetworkConfig:
    """Return the configuration of three brokers in a row, with their data in this folder."""
    settings = RuntimeSettings(suspect_ms=SUSPECT_MS)
    return local_network(chain(3), f=1, name="shop with disks", runtime=settings, data=folder)


async def run_blackout(fleet: Fleet, announce: Tell) -> BlackoutRun:
    """Publish events, kill and restart all brokers, publish again, and read the history. Return the results."""
    try:
        async with asyncio.timeout(3 * PATIENCE_S):
            return await _run(fleet, announce)
    except TimeoutError:
        raise ConnectError("three brokers with disks took too long to return; is the machine very busy?") from None


async def _run(fleet: Fleet, announce: Tell) -> BlackoutRun:
    announce("starting three brokers with disks")
    fleet.start_all()
    await fleet.until_whole(PATIENCE_S)
    urls = {name: f"gapless://{address}" for name, address in fleet.config.addresses.items()}
    async with (
        connect(urls["b0"], name="shop", timeout_s=PATIENCE_S) as shop,
        connect(urls["b2"], name="archive", timeout_s=PATIENCE_S) as archive,
    ):
        await shop.advertise(EVENTS)
        subscription = await archive.subscribe(EVENTS)
        sales = [{"kind": "sale", "number": number} for number in range(BEFORE + AFTER)]
        confirmed = await shop.publish_many(sales[:BEFORE])
        announce("killing all brokers at once")
        for name in fleet.names:
            fleet.kill(name)
        announce("restarting all brokers")
        begun = time.monotonic()
        fleet.start_all()
        published = confirmed + await shop.publish_many(sales[BEFORE:])
        back_ms = (time.monotonic() - begun) * 1000
        announce("checking deliveries and history")
        came: list[str] = []
        while len(set(came)) < published:
            came += [event.id for event in await subscription.take()]
        async with connect(urls["b1"], name="reader", timeout_s=PATIENCE_S) as reader:
            read = [event.id async for event in await reader.read(EVENTS, since="earliest")]
    return BlackoutRun(
        confirmed=confirmed,
        published=published,
        delivered=len(set(came)),
        twice=len(came) - len(set(came)),
        read=len(set(read)),
        back_ms=back_ms,
    )
