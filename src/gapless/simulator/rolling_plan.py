"""Plans a fault for every broker in turn: a restart, a cut or a suspicion, at the first time that the budget allows.

The order goes from one end of the tree to the other, from its middle outwards or inwards, or is
random. Absences are like those of any crash, but all of them end: mostly without memory, as in a
rolling upgrade.
"""

from collections.abc import Callable

from gapless.simulator.fault_plan import FaultPlan

__all__ = ["RollingPlan"]

TRIES = 200
"""The maximum number of later times that are tried for a fault that does not fit the budget."""
FOREMOST = 0.8
"""The fraction of crashes if other kinds of faults are included."""


class RollingPlan(FaultPlan):
    """Plans one fault for each broker, one after the other."""

    end_ms = 0.0
    """The time at which all planned faults are over."""

    def roll(self, kinds: tuple[str, ...]) -> None:
        """Plan one or two faults for every broker, as a basis for a later plan."""
        faults: dict[str, Callable[[str, float], bool]] = {
            "crash": self._leave, "cut": self._draw_cut, "suspicion": self._draw_suspicion,
            "isolation": self._draw_isolation,
        }  # fmt: skip
        planned = [kind for kind in kinds if kind in faults]
        at_ms = self._rng.uniform(0, 500)
        for _ in range(self._rng.choice([1, 1, 1, 2]) if planned else 0):
            pause_ms = self._rng.choice([0.0, 0.0, 200.0, 1000.0])
            for broker in self._draw_order():
                kind = "crash" if "crash" in planned and self._rng.random() < FOREMOST else self._rng.choice(planned)
                at_ms = self._place(faults[kind], broker, at_ms) + self._rng.uniform(0, pause_ms)
        self.end_ms = max((fault.at_ms for fault in self._faults), default=0.0)

    def _place(self, fault: Callable[[str, float], bool], broker: str, at_ms: float) -> float:
        """Place the fault at the first time that the budget allows. Return when it begins."""
        for _ in range(TRIES):
            if fault(broker, self._rounded(at_ms)):
                break
            at_ms += self._rng.uniform(0, 100)
        return at_ms

    def _draw_order(self) -> list[str]:
        """Return all brokers in an order of a random kind: outwards, inwards, from end to end, or shuffled."""
        rng, overlay = self._rng, self._overlay
        order = sorted(overlay.brokers, key=overlay.rank.__getitem__)
        chance = rng.random()
        if chance < 0.3:
            rng.shuffle(order)
        elif chance < 0.6:
            end = rng.choice(order)
            order.sort(key=lambda name: overlay.distance(end, name))
        elif chance < 0.8:
            order.reverse()
        return order

    def _leave(self, broker: str, at_ms: float) -> bool:
        rng, detection = self._rng, self._hazards.detection
        spans = [(0.1, detection.min_ms), (detection.min_ms, 2 * detection.max_ms), (detection.max_ms, 1500.0)]
        [span] = rng.choices(spans, (1, 3, 2))
        return self._crash(broker, at_ms, (rng.random() < 0.15, rng.uniform(*span)))
