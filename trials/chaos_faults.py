"""The faults of chaos, for a fleet of brokers.

Faults of single brokers, up to f neighbours at a time:

    kill       SIGKILL, and a start some time later
    freeze     SIGSTOP, for shorter or longer than it takes to be suspected
    cut        the connection to a neighbour breaks, for some time
    mute       messages from one neighbour to the other are delayed until it ends
    slow       the broker's connections take longer
    clock      it is killed, and returns with a wrong clock (needs libfaketime)

And faults of the whole network, one at a time:

    partition  any two parts of the network are separated
    beyond     more than f neighbours are killed, and all return with their disks
    blackout   all are killed, and return with their disks, sometimes one of them without
    disk       another program writes to the disk that all of them sync to
"""

import asyncio
import glob
import os
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gapless.overlay import Overlay
from gapless.runtime.fleet import Fleet

from .cut_proxy import CutProxyProcess

__all__ = ["ALONE", "KINDS", "Faults", "can_fake_clocks"]

ALONE = ("partition", "beyond", "blackout", "disk")
KINDS = ("kill", "freeze", "cut", "mute", "slow", "clock", *ALONE)
SLOW_S = (0.05, 0.2, 0.6)
CLOCK_S = (-600, -3, 3, 600)
JOINS_S = 5
"""The clock difference (ten times `max_clock_skew_ms`) above which a broker waits at its start."""
SATURATE_BYTES = 1 << 20


def _faketime() -> str:
    """Return the path of libfaketime; None if it is not installed."""
    return next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), "")


def can_fake_clocks() -> bool:
    """Return whether this machine can run brokers with wrong clocks."""
    return bool(_faketime())


class Faults:
    """Injects faults into one fleet; calls `note` before each fault."""

    alone: tuple[str, ...] = ALONE
    clock_s: tuple[int, ...] = CLOCK_S

    def __init__(
        self, fleet: Fleet, proxy: CutProxyProcess | None, dice: random.Random, note: Callable[[str], None]
    ) -> None:
        self._fleet = fleet
        self._proxy = proxy
        self._dice = dice
        self._note = note
        self._suspect_s = fleet.config.runtime.suspect_ms / 1000

    @property
    def _overlay(self) -> Overlay:
        return self._fleet.config.overlay

    async def strike(self, kinds: Sequence[str]) -> None:
        """Inject these faults at about the same time, at neighbouring brokers; a fault of the whole network happens
        alone.
        """
        alone = [kind for kind in kinds if kind in self.alone]
        if alone:
            kinds = alone[:1]
        victims = self._neighbours(len(kinds))
        delays = [0.0, *(self._dice.choice([0.0, 0.3, 1.2]) for _ in kinds[1:])]
        await asyncio.gather(*(self._fault(*fault) for fault in zip(kinds, victims, delays, strict=True)))

    def _neighbours(self, count: int) -> list[str]:
        found = [self._dice.choice(self._overlay.brokers)]
        while len(found) < count:
            around = dict.fromkeys(other for broker in found for other in self._overlay.neighbours(broker))
            found.append(self._dice.choice([broker for broker in around if broker not in found]))
        return found

    async def _fault(self, kind: str, broker: str, delay: float) -> None:
        await asyncio.sleep(delay)
        await self._actions()[kind](broker)

    def _actions(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        return {
            "kill": self._kill,
            "freeze": self._freeze,
            "cut": self._cut,
            "mute": self._mute,
            "slow": self._slow,
            "clock": self._wrong_clock,
            "partition": self._partition,
            "beyond": self._beyond,
            "blackout": self._black_out,
            "disk": self._slow_disk,
        }

    async def _rest(self, *suspicions: float) -> None:
        """Wait for a random one of these multiples of the suspicion timeout."""
        await asyncio.sleep(self._dice.choice(suspicions) * self._suspect_s)

    # ---- faults of single brokers -------------------------------------------------------------------------

    async def _kill(self, broker: str) -> None:
        self._note(f"kill {broker}")
        self._fleet.kill(broker)
        await self._rest(0.0, 0.15, 2.0)
        self._fleet.start(broker)

    async def _freeze(self, broker: str) -> None:
        self._note(f"freeze {broker}")
        self._fleet.freeze(broker)
        await self._rest(0.3, 1.0, 2.5)
        self._fleet.thaw(broker)

    async def _cut(self, broker: str) -> None:
        proxy, other = self._between(broker)
        self._note(f"cut {broker}-{other}")
        proxy.cut(broker, other)
        await self._rest(0.0, 0.15, 2.5)
        proxy.heal(broker, other)

    async def _mute(self, broker: str) -> None:
        proxy, other = self._between(broker)
        self._note(f"mute {broker}>{other}")
        proxy.mute(broker, other)
        await self._rest(0.3, 2.5)
        proxy.heal(broker, other)

    async def _slow(self, broker: str) -> None:
        proxy, _ = self._between(broker)
        seconds = self._dice.choice(SLOW_S)
        self._note(f"slow {broker}, by {seconds:g} s")
        others = [name for name in self._fleet.names if name != broker]
        for other in others:
            proxy.slow(broker, other, seconds)
        await self._rest(1.0, 2.5)
        for other in others:
            proxy.heal(broker, other)

    async def _wrong_clock(self, broker: str) -> None:
        """Restart a broker with a wrong clock. With a large error it waits, and joins after a restart with the correct
        clock; a small error lasts until the next restart.
        """
        seconds = self._dice.choice(self.clock_s)
        self._note(f"clock {broker}, by {seconds:+d} s")
        self._fleet.kill(broker)
        environment = {"LD_PRELOAD": _faketime(), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        self._fleet.start(broker, environment)
        await self._rest(1.0, 2.5)
        if abs(seconds) > JOINS_S:
            self._fleet.kill(broker)
            self._fleet.start(broker)

    def _between(self, broker: str) -> tuple[CutProxyProcess, str]:
        assert self._proxy is not None, "there is no proxy between these brokers"
        return self._proxy, self._dice.choice(self._overlay.neighbours(broker))

    # ---- faults of the whole network ----------------------------------------------------------------------

    async def _partition(self, broker: str) -> None:
        """Separate one side of an edge from all other brokers."""
        proxy, other = self._between(broker)
        near = self._side(broker, other)
        far = [name for name in self._fleet.names if name not in near]
        self._note(f"partition {'+'.join(sorted(near))} | {'+'.join(far)}")
        pairs = [(one, another) for one in near for another in far]
        is_one_way = self._dice.random() < 0.25
        for one, another in pairs:
            if is_one_way:
                proxy.mute(one, another)
            else:
                proxy.cut(one, another)
        await self._rest(0.3, 2.5, 6.0)
        self._dice.shuffle(pairs)
        for one, another in pairs:
            proxy.heal(one, another)
            await asyncio.sleep(0.05)

    def _side(self, broker: str, other: str) -> set[str]:
        """Return the brokers that reach the first one without passing the other."""
        found, left = {broker}, [broker]
        while left:
            here = left.pop()
            for near in self._overlay.neighbours(here):
                if near not in found and not (here == broker and near == other):
                    found.add(near)
                    left.append(near)
        return found

    async def _beyond(self, _broker: str) -> None:
        """Kill f + 1 neighbours, which return one after the other."""
        count = min(self._fleet.config.network.f + 1, len(self._fleet.names))
        victims = self._neighbours(count)
        self._note(f"beyond f: {'+'.join(victims)}")
        for name in victims:
            self._fleet.kill(name)
        await self._rest(0.0, 0.3, 2.0)
        for name in victims:
            self._fleet.start(name)
            await self._rest(0.0, 0.5)

    async def _black_out(self, unlucky: str) -> None:
        """Kill all brokers and restart them in any order, sometimes one of them with an empty disk."""
        fleet, dice = self._fleet, self._dice
        loses = dice.random() < 0.5
        self._note(f"blackout, after which {unlucky} has no disk" if loses else "blackout")
        for name in fleet.names:
            fleet.kill(name)
        if loses:
            shutil.rmtree(fleet.config.broker(unlucky).data)
        for name in dice.sample(fleet.names, len(fleet.names)):
            await asyncio.sleep(dice.choice([0.0, 0.0, 0.2, 0.5 * self._suspect_s]))
            fleet.start(name)

    async def _slow_disk(self, broker: str) -> None:
        self._note("disk is busy")
        stop = asyncio.Event()
        writing = asyncio.create_task(
            asyncio.to_thread(_saturate_disk, Path(self._fleet.config.broker(broker).data).parent, stop)
        )
        await self._rest(1.0, 3.0)
        stop.set()
        await writing


def _saturate_disk(folder: Path, stop: asyncio.Event) -> None:
    """Write and sync as fast as the disk allows."""
    block = os.urandom(SATURATE_BYTES)
    with tempfile.TemporaryFile(dir=folder) as file:
        while not stop.is_set():
            file.seek(0)
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
