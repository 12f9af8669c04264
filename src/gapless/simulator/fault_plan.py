"""Plans faults at the places and times at which they do most damage, within the budget.

- Crashes: mostly of brokers with clients, mostly around the time of a subscription. Some are
  permanent, some are over before they are noticed, some lose the memory and some are pauses. Often
  a neighbour crashes soon after (if f allows), during the handover; in wide trees also any other
  broker, or one whose crash is noticed while the first rejoins.
- In flight: crashes of brokers on the path of an unanswered operation (`in_flight`). Only on
  request.
- Cuts: of tree links, of other pairs, and of clients from their brokers; too short to notice, or
  longer.
- Isolations: of brokers that are cut off from all others, but not from their clients. Only on
  request, and only of brokers that know at least 2 f others: with fewer, a broker could not detect
  that it is isolated.
- Suspicions: of live brokers by others nearby, or by their clients.
- Relinks: of any link of the tree by any that joins the two parts, at once or after a while. Only
  on request, as few protocols tolerate them; they need no budget, but are sequential and avoid
  crashed brokers.

All faults but permanent crashes and relinks end by themselves. A fault that does not fit the budget
is dropped.

Disk faults (`disk_plan`), cuts of the network (`partition_plan`), crashes of more than f brokers
(`over_budget_plan`) and wrong clocks (`clock_plan`) are drawn on top of these. Loss and duplication
are settings of the network; they too are drawn only on request.
"""

import random
from collections.abc import Callable, Collection, Mapping
from math import inf

import msgspec

from gapless.errors import ScenarioError
from gapless.overlay import Overlay
from gapless.simulator.budget import FaultBudget
from gapless.simulator.in_flight import Operation, draw_target
from gapless.simulator.relinking import ChangingTree
from gapless.simulator.scenario import Crash, Cut, Delay, Fault, Heal, Relink, Restart, Suspect, Trust

__all__ = ["FAULT_KINDS", "IN_FLIGHT", "LINK_KINDS", "FaultPlan", "Hazards", "fault_kinds"]

FAULT_KINDS = ("crash", "cut", "suspicion")
"""The kinds of faults that `all` stands for. Some of these runs also have `clock`, and `disk` and `blackout` if brokers
can have disks."""
IN_FLIGHT = "in-flight"
NAMED_KINDS = (IN_FLIGHT, "isolation", "disk", "blackout", "partition", "beyond-f", "clock", "delete")
"""The kinds of faults that are drawn only on request."""
LINK_KINDS = ("relink", "loss", "duplication")
"""The kinds of faults that are drawn only on request, and refused for protocols that do not claim to tolerate them."""


def fault_kinds(text: str) -> tuple[str, ...]:
    """Return the kinds of faults in a text such as `none`, `all`, `crash,cut` or `loss,relink`."""
    if text == "none":
        return ()
    if text == "all":
        return FAULT_KINDS
    kinds = tuple(word.strip() for word in text.split(","))
    for kind in kinds:
        if kind not in FAULT_KINDS + NAMED_KINDS + LINK_KINDS:
            known = ", ".join(FAULT_KINDS + NAMED_KINDS + LINK_KINDS)
            raise ScenarioError(f"faults: there is no kind {kind!r}; choose none, all, or some of {known}")
    return kinds


class Hazards(msgspec.Struct, frozen=True):
    """The facts about a scenario that a plan of its faults uses."""

    f: int
    slowest_link_ms: float
    detection: Delay
    reconnect_ms: float
    until_ms: float
    subscribe_ms: tuple[float, ...]
    clients: tuple[tuple[str, str], ...]
    """Pairs of a client and its broker."""
    operations: tuple[Operation, ...] = ()
    """The calls that a crash can affect while they are in flight."""
    electorates: Mapping[str, Collection[str]] | None = None
    """For each broker, the set of brokers in which at most f may be faulty. None stands for all brokers within f + 1
    links."""
    is_wide: bool = False
    """Whether a crash can follow another at any distance, not only next to it."""

    @property
    def margin_ms(self) -> float:
        """Return how long a broker counts as faulty after the end of its fault. This is the time for a few traversals
        of its neighbourhood, or for the round trips in which an electorate agrees.
        """
        if self.electorates is not None:
            return self.detection.max_ms + self.reconnect_ms + 10 * (self.f + 1) * self.slowest_link_ms + 500.0
        return self.detection.max_ms + self.reconnect_ms + 2 * (self.f + 1) * self.slowest_link_ms + 100.0


class FaultPlan:
    """Draws the faults of one scenario."""

    def __init__(
        self, rng: random.Random, overlay: Overlay, hazards: Hazards, earlier: "FaultPlan | None" = None
    ) -> None:
        """Start from faults that were planned `earlier`. They stay, and are charged to the budget."""
        self._rng = rng
        self._overlay = overlay
        self._hazards = hazards
        self._budget = FaultBudget(overlay, hazards.f, hazards.margin_ms, hazards.electorates)
        self._faults: list[Fault] = []
        if earlier is not None:
            self._budget = earlier._budget
            self._faults = list(earlier._faults)
        self._for_ever = 0
        self._relinks: list[float] = []

    def draw(self, kinds: tuple[str, ...], count: tuple[int, int] = (2, 8)) -> tuple[Fault, ...]:
        """Draw `count` faults, and return those that fit the budget. The first one always fits."""
        draw: dict[str, Callable[[], object]] = {
            "crash": self._draw_crash, "cut": self._draw_cut, "suspicion": self._draw_suspicion,
            "isolation": self._draw_isolation, "relink": self._draw_relink, IN_FLIGHT: self._draw_in_flight,
        }  # fmt: skip
        planned = [kind for kind in kinds if kind in draw]
        for _ in range(self._rng.randint(*count) if planned else 0):
            draw[self._rng.choice(planned)]()
        self._place_relinks()
        return tuple(sorted(self._faults, key=lambda fault: fault.at_ms))

    # ---- crashes

    def _draw_crash(self) -> None:
        self._crash_in_a_row(self._draw_broker(), self._draw_moment())

    def _draw_in_flight(self) -> None:
        hazards = self._hazards
        places = [broker for _, broker in hazards.clients]
        self._crash_in_a_row(
            *draw_target(self._rng, self._overlay, hazards.operations, places, hazards.slowest_link_ms)
        )

    def _crash_in_a_row(self, broker: str, at_ms: float) -> None:
        """Crash the broker, and possibly more brokers around it, as long as the budget allows."""
        rng = self._rng
        if not self._crash(broker, at_ms):
            return
        while rng.random() < 0.5:
            broker = rng.choice(self._overlay.within(broker, self._draw_distance()))
            at_ms = self._draw_next(at_ms)
            if not self._crash(broker, at_ms):
                return

    def _draw_next(self, at_ms: float) -> float:
        """Return when the next broker crashes: soon, or so that the crash is detected while the last one rejoins."""
        rng, detection = self._rng, self._hazards.detection
        last = self._faults[-1]
        if self._hazards.is_wide and isinstance(last, Restart) and rng.random() < 0.6:
            return max(
                0.0, self._rounded(last.at_ms + rng.uniform(-detection.max_ms, 4 * self._hazards.slowest_link_ms))
            )
        return self._rounded(at_ms + rng.uniform(0, detection.max_ms * 1.5))

    def _draw_distance(self) -> int:
        """Return the distance to the broker that crashes next."""
        return self._rng.randint(1, self._overlay.diameter) if self._hazards.is_wide else 2

    def _crash(self, broker: str, at_ms: float, absence: tuple[bool, float] | None = None) -> bool:
        memory, down_ms = absence or self._draw_absence()
        if not self._budget.take(broker, at_ms, at_ms + down_ms):
            return False
        self._faults.append(Crash(at_ms, broker))
        if down_ms == inf:
            self._for_ever += 1
        else:
            self._faults.append(Restart(self._rounded(at_ms + down_ms), broker, memory))
        return True

    def _draw_absence(self) -> tuple[bool, float]:
        """Return whether a crashed broker keeps its memory, and how long it is down."""
        rng, detection = self._rng, self._hazards.detection
        memory = rng.random() < 0.35
        chance = rng.random()
        if chance < 0.25 and self._for_ever < len(self._overlay.brokers) // 3:
            return memory, inf
        if chance < 0.5:
            return memory, rng.uniform(0.1, detection.min_ms)
        if chance < 0.8:
            return memory, rng.uniform(detection.min_ms, detection.max_ms * 2)
        return memory, rng.uniform(detection.max_ms, detection.max_ms * 2 + 500)

    # ---- cuts and suspicions

    def _draw_cut(self, broker: str = "", at_ms: float | None = None) -> bool:
        rng, detection = self._rng, self._hazards.detection
        broker = broker or self._draw_broker()
        own = [client for client, at in self._hazards.clients if at == broker]
        chance = rng.random()
        if chance < 0.25 and own:
            other = rng.choice(own)
        else:
            other = rng.choice(self._overlay.within(broker, 1 if chance < 0.85 else self._hazards.f + 1))
        at_ms = self._draw_moment() if at_ms is None else at_ms
        most = detection.min_ms if rng.random() < 0.4 else detection.max_ms * 3
        end_ms = self._rounded(at_ms + rng.uniform(0.1, most))
        if not self._budget.take(broker, at_ms, end_ms) or self._is_cut(broker, other, at_ms, end_ms):
            return False
        self._faults += [Cut(at_ms, (broker, other)), Heal(end_ms, (broker, other))]
        return True

    def _draw_isolation(self, broker: str = "", at_ms: float | None = None) -> bool:
        rng, detection, f = self._rng, self._hazards.detection, self._hazards.f
        broker = broker or self._draw_broker()
        at_ms = self._draw_moment() if at_ms is None else at_ms
        most = rng.choice([detection.min_ms, detection.max_ms * 3, 3_000])
        end_ms = self._rounded(at_ms + rng.uniform(0.5, 1) * most)
        others = [other for other in self._overlay.brokers if other != broker]
        if (
            len(self._overlay.within(broker, f + 1)) < 2 * f
            or not self._budget.take(broker, at_ms, end_ms)
            or any(self._is_cut(broker, other, at_ms, end_ms) for other in others)
        ):
            return False
        for other in others:
            self._faults += [Cut(at_ms, (broker, other)), Heal(end_ms, (broker, other))]
        return True

    def _is_cut(self, a: str, b: str, start_ms: float, end_ms: float) -> bool:
        """Return whether the pair is cut at that time by a fault that is charged to the other end."""
        spans = {
            kind: [fault.at_ms for fault in self._faults if isinstance(fault, kind) and set(fault.between) == {a, b}]
            for kind in (Cut, Heal)
        }
        return any(cut <= end_ms and start_ms <= heal for cut, heal in zip(spans[Cut], spans[Heal], strict=True))

    def _draw_suspicion(self, target: str = "", at_ms: float | None = None) -> bool:
        rng = self._rng
        target = target or self._draw_broker()
        own = [client for client, at in self._hazards.clients if at == target]
        observers = [*self._overlay.within(target, self._hazards.f + 1), *own]
        chosen = rng.sample(observers, min(len(observers), rng.choice([1, 1, 2, 3])))
        at_ms = self._draw_moment() if at_ms is None else at_ms
        spans = [(at_ms + rng.uniform(0, 50), rng.choice([5.0, 100.0, 600.0]) * rng.uniform(0.2, 1)) for _ in chosen]
        if not self._budget.take(target, at_ms, max(start + length for start, length in spans)):
            return False
        for observer, (start, length) in zip(chosen, spans, strict=True):
            self._faults.append(Suspect(self._rounded(start), observer, target))
            self._faults.append(Trust(self._rounded(start + length), observer, target))
        return True

    # ---- relinks

    def _draw_relink(self) -> None:
        self._relinks.append(self._draw_moment())

    def _place_relinks(self) -> None:
        """Plan relinks one after the other, each drawn from the tree that the previous one leaves."""
        rng = self._rng
        tree = ChangingTree(self._overlay)
        free_ms = 0.0
        for moment in sorted(self._relinks):
            at_ms = max(moment, free_ms)
            gap_ms = self._rounded(rng.choice([0.0, 0.0, 20.0, 200.0]) * rng.uniform(0.2, 1))
            old = rng.choice(tree.overlay.edges)
            overlay = tree.overlay
            near = [name for name in overlay.brokers if overlay.distance(name, old[0]) < overlay.distance(name, old[1])]
            far = [name for name in overlay.brokers if name not in near]
            new = (rng.choice(near), rng.choice(far))
            if set(new) == set(old) or any(self._may_be_dead(name, at_ms, gap_ms) for name in (*old, *new)):
                continue
            tree.take_away(old, new)
            tree.bring(new)
            self._faults.append(Relink(at_ms, old, new, gap_ms))
            free_ms = self._rounded(at_ms + gap_ms + 0.001)

    def _may_be_dead(self, broker: str, at_ms: float, gap_ms: float) -> bool:
        """Return whether the broker may be down at some time during the relink, including its beginning and end."""
        own = [fault for fault in self._faults if isinstance(fault, Crash | Restart) and fault.broker == broker]
        own.sort(key=lambda fault: fault.at_ms)
        before = [fault for fault in own if fault.at_ms < at_ms]
        return (bool(before) and isinstance(before[-1], Crash)) or any(
            at_ms <= fault.at_ms <= at_ms + gap_ms for fault in own
        )

    # ---- places and times

    def _draw_broker(self) -> str:
        """Return a broker, mostly one with clients."""
        if self._rng.random() < 0.7:
            return self._rng.choice(self._hazards.clients)[1]
        return self._rng.choice(self._overlay.brokers)

    def _draw_moment(self) -> float:
        """Return a time, mostly shortly after a subscription, while that is in progress."""
        hazards, rng = self._hazards, self._rng
        if rng.random() < 0.6:
            return self._rounded(rng.choice(hazards.subscribe_ms) + rng.uniform(0, 3 * hazards.slowest_link_ms))
        return self._rounded(rng.uniform(0, hazards.until_ms))

    @staticmethod
    def _rounded(ms: float) -> float:
        return round(ms, 3)
