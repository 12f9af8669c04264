"""The faults, besides those of `trials.chaos`.

Of single brokers, up to f neighbours at a time:

    flip, flip-live          one bit of a file in the data directory changes, while the broker is stopped, or runs
    truncate, truncate-live  a file in the data directory loses its end
    power                    the broker's machine loses its power: unsynced writes are lost, wholly or in part
    pause                    SIGSTOP, for 1 to 60 s
    clock                    it returns with a clock that is up to an hour wrong

Of the whole network, one at a time: `power-all`, and those of `trials.chaos`.

A broker that refuses its damaged data gets an empty directory, as its message asks of an operator.
"""

import asyncio
import random
import shutil
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

from trials.chaos_faults import ALONE, Faults, can_fake_clocks
from trials.jepsen.power import PoweredFleet

__all__ = ["JepsenFaults", "Strike", "kinds"]

PAUSES_S = (1.0, 3.0, 10.0, 60.0)
RETURN_S = 120.0
"""How long a broker can take to read a damaged disk and join."""
LIVE_S = 2.0
_text: ContextVar[str] = ContextVar("text")
"""The description of the fault of this task."""


class Strike(NamedTuple):
    """One fault."""

    text: str
    begun_ms: float
    ended_ms: float


def kinds() -> tuple[str, ...]:
    """Return all kinds that are possible here, in turn."""
    clock = ("clock",) if can_fake_clocks() else ()
    damage = ("flip", "power", "truncate", "kill", "flip-live", "power-all", "truncate-live")
    return (*damage, "pause", "partition", "power", "mute", *clock)


class JepsenFaults(Faults):
    """The faults of a fleet whose power can fail."""

    alone = (*ALONE, "power-all")
    clock_s = (-3600, -3, 3, 3600)
    pauses_s: tuple[float, ...] = PAUSES_S
    strikes: ClassVar[list[Strike]] = []
    replaced: ClassVar[list[str]] = []
    """The brokers that refused their damaged data."""

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        self._note = self._noting(self._note)
        self._powered = cast(PoweredFleet, self._fleet)

    def _noting(self, note: Callable[[str], None]) -> Callable[[str], None]:
        def noted(text: str) -> None:
            _text.set(text)
            note(text)

        return noted

    async def _fault(self, kind: str, broker: str, delay: float) -> None:
        await asyncio.sleep(delay)
        begun = time.time()
        await self._actions()[kind](broker)
        self.strikes.append(Strike(f"{kind}: {_text.get()}", 1000 * begun, 1000 * time.time()))

    def _actions(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        return super()._actions() | {
            "flip": self._flip,
            "flip-live": self._flip_live,
            "truncate": self._truncate,
            "truncate-live": self._truncate_live,
            "power": self._power,
            "power-all": self._power_all,
            "pause": self._pause,
        }

    # ---- damaged files ------------------------------------------------------------------------------------

    async def _flip(self, broker: str) -> None:
        self._fleet.kill(broker)
        self._note(f"{flip(self._file(broker), self._dice)} at {broker}")
        await self._return(broker)

    async def _flip_live(self, broker: str) -> None:
        self._note(f"{flip(self._file(broker), self._dice)} at {broker}, which runs")
        await self._restart_later(broker)

    async def _truncate(self, broker: str) -> None:
        self._fleet.kill(broker)
        self._note(f"{truncate(self._file(broker), self._dice)} at {broker}")
        await self._return(broker)

    async def _truncate_live(self, broker: str) -> None:
        self._note(f"{truncate(self._file(broker), self._dice)} at {broker}, which runs")
        await self._restart_later(broker)

    async def _restart_later(self, broker: str) -> None:
        await asyncio.sleep(LIVE_S)
        if self._fleet.is_alive(broker):
            self._fleet.kill(broker)
        await self._return(broker)

    def _file(self, broker: str) -> Path:
        """Return any file with content."""
        files = sorted(file for file in self._powered.data(broker).iterdir() if file.stat().st_size)
        return self._dice.choice(files)

    async def _return(self, broker: str) -> None:
        """Start a broker; if it refuses its data, start it with an empty directory."""
        self._fleet.start(broker)
        end = time.monotonic() + RETURN_S
        while time.monotonic() < end:
            if (await self._fleet.report(broker)).get("ready"):
                return
            if not self._fleet.is_alive(broker):
                self.replaced.append(str(self._fleet.complain(broker)))
                shutil.rmtree(self._powered.data(broker))
                shutil.rmtree(self._powered.notes(broker))
                self._fleet.start(broker)
            await asyncio.sleep(0.1)
        raise AssertionError(f"{broker} does not join")

    # ---- power, pauses ------------------------------------------------------------------------------------

    async def _power(self, broker: str) -> None:
        lost = self._powered.lose_power(broker, self._dice)
        self._note(f"power of {broker} fails, {lost} writes lost")
        await self._rest(0.0, 1.0)
        await self._return(broker)

    async def _power_all(self, _broker: str) -> None:
        fleet = self._powered
        for name in fleet.names:
            fleet.freeze(name)  # all of them stop in the same moment
        lost = [fleet.lose_power(name, self._dice) for name in fleet.names]
        self._note(f"power fails everywhere, {sum(lost)} writes lost")
        await asyncio.gather(*(self._return(name) for name in self._dice.sample(fleet.names, len(fleet.names))))

    async def _pause(self, broker: str) -> None:
        seconds = self._dice.choice(self.pauses_s)
        self._note(f"pause {broker} for {seconds:g} s")
        self._fleet.freeze(broker)
        await asyncio.sleep(seconds)
        self._fleet.thaw(broker)


def flip(file: Path, dice: random.Random) -> str:
    """Flip one bit of a file; return a description."""
    place, bit = dice.randrange(file.stat().st_size), dice.randrange(8)
    with file.open("r+b") as disk:
        disk.seek(place)
        byte = disk.read(1)[0]
        disk.seek(place)
        disk.write(bytes([byte ^ (1 << bit)]))
    return f"bit {bit} of byte {place:,} of {file.name}"


def truncate(file: Path, dice: random.Random) -> str:
    """Cut off the end of a file; return a description."""
    size = file.stat().st_size
    left = dice.choice([0, dice.randrange(size), max(0, size - dice.randrange(1, 4096))])
    with file.open("r+b") as disk:
        disk.truncate(left)
    return f"{file.name} truncated from {size:,} to {left:,} bytes"
