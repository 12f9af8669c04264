"""Plans disks and full outages, from a random generator of its own on top of the other faults.

- `disk`: brokers have disks. A broker that restarts without memory usually has its disk; or an old,
  empty or damaged one.
- `blackout`: all live brokers crash at once, and restart with their disks, in any order, soon or
  late. Some do not restart, or their disks are empty, old or damaged: at most f of a neighbourhood,
  including those with earlier faults.

A crash that began before a full outage stays: such a broker is down already, or permanently. Faults
during the recovery of the network are dropped, as are later ones that do not fit the budget any
more.
"""

import random
from math import inf
from typing import Literal

import msgspec

from gapless.overlay import Overlay
from gapless.simulator.budget import FaultBudget
from gapless.simulator.disks import DiskState
from gapless.simulator.fault_plan import Hazards
from gapless.simulator.scenario import Crash, Cut, Delay, Fault, Heal, Restart, Suspect, Trust

__all__ = ["DISK_KINDS", "DiskPlan"]

DISK_KINDS = ("disk", "blackout")
RECOVERIES = 3
"""The number of margins after the last restart until other faults may follow. By then, lost disks are refilled."""
RETURN_MS = 5_000.0
"""How long brokers wait for one that does not restart, before they begin to recover."""
WITH_DISKS = 0.15
"""The fraction of runs with all kinds of faults in which brokers have disks."""
AGAIN = 0.3
"""The probability that another full outage follows the first, during the recovery or later."""
_STATES: tuple[DiskState | Literal["never"], ...] = (
    "kept", "kept", "kept", "old", "lost", "damaged", "never",
)  # fmt: skip
_BEGINNINGS = Crash | Cut | Suspect


class _Span(msgspec.Struct):
    """A fault with its beginning and its end, if it has one."""

    broker: str
    """The broker to which the fault is charged."""
    start_ms: float
    end_ms: float
    rows: list[Fault]

    @property
    def is_crash(self) -> bool:
        return isinstance(self.rows[0], Crash)


class DiskPlan:
    """Draws the disk faults of one scenario."""

    def __init__(self, seed: int, overlay: Overlay, hazards: Hazards) -> None:
        self._seed = seed
        self._rng = random.Random(f"{seed}/disks")
        self._overlay = overlay
        self._hazards = hazards

    def draw_kinds(self) -> tuple[str, ...]:
        """Return the disk faults that a run with all kinds of faults includes; mostly none."""
        chance = random.Random(f"{self._seed}/with disks").random()
        return () if chance > WITH_DISKS else ("disk",) if chance > WITH_DISKS / 2 else ("disk", "blackout")

    def draw_disks(self) -> Delay:
        """Return the bounds of the time that a disk takes to sync."""
        least = self._rng.choice([0.1, 1.0, 10.0])
        return Delay(least, least * self._rng.choice([1, 5, 20]))

    def draw_options(self) -> dict[str, float]:
        """Return options that keep history, or drop it after a short or a long time."""
        return random.Random(f"{self._seed}/cold").choice([{}, {"history_s": 0.2}, {"history_s": 2.0}])

    def draw(self, faults: tuple[Fault, ...], kinds: tuple[str, ...]) -> tuple[Fault, ...]:
        """Return the faults with the states of disks, and with a full outage if it is among the kinds."""
        if "disk" in kinds:
            faults = tuple(self._draw_restart(fault) for fault in faults)
        if "blackout" in kinds:
            faults = self._draw_blackout(faults)
        return faults

    def _draw_restart(self, fault: Fault) -> Fault:
        if not isinstance(fault, Restart) or fault.memory:
            return fault
        state = self._rng.choice(["kept", "kept", "kept", "old", "lost", "damaged"])
        return msgspec.structs.replace(fault, disk=state)

    def _draw_blackout(self, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        rng, margin = self._rng, self._hazards.margin_ms
        begin = round(rng.uniform(0, self._hazards.until_ms), 3)
        spans = _spans(faults)
        before = [span for span in spans if span.start_ms < begin and (span.is_crash or span.end_ms < begin)]
        budget = FaultBudget(self._overlay, self._hazards.f, margin, self._hazards.electorates)
        for span in before:
            budget.take(span.broker, span.start_ms, span.end_ms)
        rows = [row for span in before for row in span.rows]
        back = {span.broker: span.end_ms for span in before if span.is_crash and span.end_ms >= begin}
        """The restart time of each crashed broker that restarts."""
        end = self._black_out(begin, rows, back, budget)
        if rng.random() < AGAIN:
            again = round(end + rng.choice([1.0, margin, RECOVERIES * margin]) * rng.random(), 3)
            end = self._black_out(again, rows, back, budget)
        gone = {name for name, back_ms in back.items() if back_ms == inf}
        rows += self._later(spans, end + RECOVERIES * margin, gone, budget)
        return tuple(sorted(rows, key=lambda fault: fault.at_ms))

    def _black_out(self, begin: float, rows: list[Fault], back: dict[str, float], budget: FaultBudget) -> float:
        """Crash all running brokers. Return the time at which the last one restarts."""
        rng, detection, margin = self._rng, self._hazards.detection, self._hazards.margin_ms
        most = rng.choice([5.0, detection.min_ms, 4 * detection.max_ms, 3_000.0])
        names = [name for name in self._overlay.brokers if back.get(name, -1.0) < begin]
        rng.shuffle(names)
        states: dict[str, DiskState | Literal["never"]] = {}
        for name in names:
            rows.append(Crash(begin, name))
            back[name] = round(begin + rng.uniform(0.1, most), 3)
            states[name] = rng.choice(_STATES)
        # A broker without its state gets it from the others, which have to be running.
        all_back = max(back_ms for back_ms in back.values() if back_ms < inf)
        is_one_missing = inf in back.values() or "never" in states.values()
        recovered = all_back + RECOVERIES * margin + (RETURN_MS if is_one_missing else 0.0)
        # Brokers with earlier faults cannot recover their state while the other brokers are down.
        budget.extend(begin, recovered + margin)
        for name, state in states.items():
            spent_ms = inf if state == "never" else recovered
            if state != "kept" and not budget.take(name, begin, spent_ms):
                state = "kept"
            if state == "never":
                back[name] = inf
            else:
                rows.append(Restart(back[name], name, disk=state))
        return max((back_ms for back_ms in back.values() if back_ms < inf), default=begin)

    def _later(self, spans: list[_Span], since_ms: float, gone: set[str], budget: FaultBudget) -> list[Fault]:
        """Return the other faults that can happen after the recovery. Several rows of one fault are charged once."""
        found: list[Fault] = []
        charged: dict[tuple[str, type], float] = {}
        for span in spans:
            if span.start_ms <= since_ms or gone.intersection(_names(span.rows[0])):
                continue
            key = (span.broker, type(span.rows[0]))
            if span.start_ms < charged.get(key, -1.0) or budget.take(span.broker, span.start_ms, span.end_ms):
                charged[key] = max(span.end_ms, charged.get(key, -1.0))
                found += span.rows
        return found


def _spans(faults: tuple[Fault, ...]) -> list[_Span]:
    """Return the faults as spans (start and end), ordered by start time."""
    spans: list[_Span] = []
    open_spans: dict[tuple[str, ...], _Span] = {}
    for fault in faults:
        if isinstance(fault, _BEGINNINGS):
            broker = fault.between[0] if isinstance(fault, Cut) else fault.broker if isinstance(fault, Crash) else ""
            broker = fault.target if isinstance(fault, Suspect) else broker
            span = open_spans[_names(fault)] = _Span(broker, fault.at_ms, inf, [fault])
            spans.append(span)
        else:
            span = open_spans.pop(_names(fault))
            span.end_ms = fault.at_ms
            span.rows.append(fault)
    return spans


def _names(fault: Fault) -> tuple[str, ...]:
    match fault:
        case Crash() | Restart():
            return ("crash", fault.broker)
        case Cut() | Heal():
            return ("cut", *fault.between)
        case Suspect() | Trust():
            return ("suspect", fault.observer, fault.target)
    return ()
