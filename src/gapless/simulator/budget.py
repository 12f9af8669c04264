"""The fault budget: at any time at most f faulty brokers in any neighbourhood.

A neighbourhood is a broker with everyone at most f + 1 from it: as far as a broker sees; or the electorate of a broker,
for protocols that have such. A fault keeps its broker on
the list from its beginning until its end plus a margin in which the protocol may recover, or for ever. What counts:
a crash against the broker, a suspicion against its target, a cut against the end that is named first.
"""

from collections.abc import Collection, Mapping
from math import inf

from gapless.overlay import Overlay

__all__ = ["FaultBudget"]


class FaultBudget:
    """Which brokers are faulty when, within the budget."""

    def __init__(
        self, overlay: Overlay, f: int, margin_ms: float, electorates: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self._f = f
        self._margin_ms = margin_ms
        self._around = electorates or {name: (name, *overlay.within(name, f + 1)) for name in overlay.brokers}
        self._faulty: dict[str, list[tuple[float, float]]] = {name: [] for name in overlay.brokers}

    def take(self, broker: str, start_ms: float, end_ms: float = inf) -> bool:
        """Charge a fault to the broker if there is room for it; a broker has one fault at a time."""
        end_ms += self._margin_ms
        if any(start < end_ms and start_ms < end for start, end in self._faulty[broker]):
            return False
        self._faulty[broker].append((start_ms, end_ms))
        centres = (centre for centre, around in self._around.items() if broker in around)
        if all(self._peak(centre, start_ms, end_ms) <= self._f for centre in centres):
            return True
        self._faulty[broker].pop()
        return False

    def extend(self, at_ms: float, until_ms: float) -> None:
        """Whoever is faulty at a moment stays so until another: they are no more at once than they were."""
        for spans in self._faulty.values():
            spans[:] = [(start, max(end, until_ms) if start <= at_ms < end else end) for start, end in spans]

    def _peak(self, centre: str, start_ms: float, end_ms: float) -> int:
        """The most brokers that are faulty at once around the centre, between two times."""
        spans = [span for name in self._around[centre] for span in self._faulty[name]]
        moments = [start_ms, *(start for start, _ in spans if start_ms < start < end_ms)]
        return max(sum(start <= moment < end for start, end in spans) for moment in moments)
