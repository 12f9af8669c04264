"""Plans crashes of more than f brokers of one neighbourhood at about the same time.

It is drawn from its own random generator on top of the other faults, and not bound by a budget. For
all crashed brokers, or for each, one of these outcomes is drawn:

- they continue as after a long pause, with all their state;
- they restart with their disks, if there are any;
- they restart without memory: state that only they had is lost;
- they restart with a disk that is old, empty or damaged;
- they do not restart, and an operator tells a running broker so after a while.

The outcome occurs soon, before anybody has noticed, or late; at once, or one after the other.
"""

import random
from typing import Literal, TypeAlias

from gapless.overlay import Overlay
from gapless.simulator.disks import DiskState
from gapless.simulator.fault_plan import Hazards
from gapless.simulator.scenario import Crash, Fault, Forget, Restart

__all__ = ["BEYOND", "OverBudgetPlan"]

BEYOND = "beyond-f"
WITH_DISKS = 0.4
"""The fraction of runs in which brokers have disks."""
LONGEST_MS = 3_000.0
Fate: TypeAlias = Literal["memory", "disk", "bare", "worn", "never"]
_WORN: tuple[DiskState, ...] = ("old", "lost", "damaged")
_FATES: tuple[Fate, ...] = ("memory", "disk", "bare", "worn", "never")


class OverBudgetPlan:
    """Draws the crashes of one scenario."""

    def __init__(self, seed: int, overlay: Overlay, hazards: Hazards) -> None:
        self._rng = random.Random(f"{seed}/beyond f")
        self._overlay = overlay
        self._hazards = hazards

    def draw_disks(self) -> bool:
        """Return whether brokers have disks."""
        return self._rng.random() < WITH_DISKS

    def draw(self, faults: tuple[Fault, ...], *, with_disks: bool) -> tuple[Fault, ...]:
        """Return the faults with the crashes added, and without those that affect the crashed brokers.

        Brokers that do not restart are reported to a running one, so no others wait for them permanently.
        """
        dead = self._draw_group()
        touched = {*dead, *_gone_for_good(faults)}
        others = [fault for fault in faults if not touched & _names(fault)]
        hurt = {fault.broker for fault in others if isinstance(fault, Crash)}
        drawn = self._draw_deaths(dead, with_disks, hurt)
        return tuple(sorted([*others, *drawn], key=lambda fault: fault.at_ms))

    def _draw_group(self) -> list[str]:
        """Return more than f adjacent brokers, mostly around one with clients. At least one broker is left out."""
        rng, overlay = self._rng, self._overlay
        centre = rng.choice(self._hazards.clients)[1] if rng.random() < 0.8 else rng.choice(overlay.brokers)
        near = [centre, *overlay.within(centre, self._hazards.f + 1)]
        count = min(self._hazards.f + rng.choice([1, 1, 1, 2, 3]), len(overlay.brokers) - 1, len(near))
        return near[:count] if rng.random() < 0.6 else rng.sample(near, count)

    def _draw_deaths(self, dead: list[str], with_disks: bool, hurt: set[str]) -> list[Fault]:
        rng, hazards = self._rng, self._hazards
        begin = rng.uniform(0, hazards.until_ms)
        spread = rng.choice([0.0, 0.0, hazards.detection.min_ms, hazards.detection.max_ms])
        away = rng.choice([hazards.detection.min_ms, 2 * hazards.detection.max_ms, LONGEST_MS])
        is_together = rng.random() < 0.3
        back = rng.uniform(0.3, 1) * away
        fate = self._draw_fate(with_disks) if rng.random() < 0.6 else None
        alive = [name for name in self._overlay.brokers if name not in dead]
        fates = {name: fate or self._draw_fate(with_disks) for name in dead}
        if hurt & set(alive):  # the broker to be notified may be down
            fates = {name: "bare" if fate == "never" else fate for name, fate in fates.items()}
        self._leave_contacts(fates)
        rows: list[Fault] = []
        for name in dead:
            at_ms = round(begin + rng.uniform(0, spread), 3)
            back_ms = round(at_ms + 0.1 + (back if is_together else rng.uniform(0.1, 1) * away), 3)
            rows.append(Crash(at_ms, name))
            receiver = rng.choice(alive)
            rows.append(self._draw_return(fates[name], name, back_ms, receiver))
            if fates[name] == "never":
                rows += [Forget(back_ms, name, other) for other in self._unreachable(receiver, fates)]
        return rows

    def _unreachable(self, receiver: str, fates: dict[str, Fate]) -> list[str]:
        """Return further brokers that an operator has to notify: one in each part that is unreachable from the first
        one. Brokers communicate if they are at most f + 1 links apart.
        """
        left = [name for name in self._overlay.brokers if fates.get(name) != "never"]
        found: list[str] = []
        reached: set[str] = set()
        for name in [receiver, *(name for name in left if name not in fates)]:
            if name not in reached:
                found.append(name)
                news = [name]
                while news:
                    reached.update(news)
                    near = {other for one in news for other in self._overlay.within(one, self._hazards.f + 1)}
                    news = [other for other in left if other in near and other not in reached]
        return found[1:]

    def _leave_contacts(self, fates: dict[str, Fate]) -> None:
        """Keep a running contact for each client. A client knows only the brokers around its own, or around the one
        that it moved to.
        """
        reach = self._hazards.f + 1
        for _, broker in self._hazards.clients:
            for place in (broker, *self._overlay.within(broker, reach)):
                if all(fates.get(name) == "never" for name in (place, *self._overlay.within(place, reach))):
                    fates[place] = "bare"

    def _draw_fate(self, with_disks: bool) -> Fate:
        return self._rng.choice(_FATES if with_disks else ("memory", "memory", "bare", "bare", "never"))

    def _draw_return(self, fate: Fate, name: str, at_ms: float, receiver: str) -> Fault:
        worn: DiskState = self._rng.choice(_WORN)
        match fate:
            case "memory":
                return Restart(at_ms, name, memory=True)
            case "disk":
                return Restart(at_ms, name)
            case "worn":
                return Restart(at_ms, name, disk=worn)
            case "bare":
                return Restart(at_ms, name, disk="lost")
            case "never":
                return Forget(at_ms, name, receiver)


def _gone_for_good(faults: tuple[Fault, ...]) -> set[str]:
    """Return the brokers that crash and do not restart."""
    last = {fault.broker: fault for fault in faults if isinstance(fault, Crash | Restart)}
    return {name for name, fault in last.items() if isinstance(fault, Crash)}


def _names(fault: Fault) -> set[str]:
    return {getattr(fault, key) for key in ("broker", "observer", "target") if hasattr(fault, key)} | {
        *getattr(fault, "between", ()), *getattr(fault, "old", ()), *getattr(fault, "new", ())
    }  # fmt: skip
