"""Limits the faults of a scenario: at any time at most f brokers of any neighbourhood are faulty.

A neighbourhood is a broker with all brokers at most f + 1 links away; or the electorate of a
broker, for protocols with electorates. A fault counts from its beginning until its end plus a
margin in which the protocol can recover, or permanently. A crash is charged to the broker, a
suspicion to its target, a cut to the end that is named first.
"""

from collections.abc import Collection, Mapping
from math import inf

from gapless.overlay import Overlay

__all__ = ["FaultBudget"]


class FaultBudget:
    """Records when brokers are faulty, and refuses faults that exceed the budget."""

    def __init__(
        self, overlay: Overlay, f: int, margin_ms: float, electorates: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self._f = f
        self._margin_ms = margin_ms
        self._around = electorates or {name: (name, *overlay.within(name, f + 1)) for name in overlay.brokers}
        self._faulty: dict[str, list[tuple[float, float]]] = {name: [] for name in overlay.brokers}

    def take(self, broker: str, start_ms: float, end_ms: float = inf) -> bool:
        """Charge a fault to the broker, which can have one fault at a time. Return False if the budget does not allow
        it.
        """
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
        """Extend the faults that exist at one time until another time."""
        for spans in self._faulty.values():
            spans[:] = [(start, max(end, until_ms) if start <= at_ms < end else end) for start, end in spans]

    def _peak(self, centre: str, start_ms: float, end_ms: float) -> int:
        """Return the largest number of simultaneously faulty brokers around the centre between two times."""
        spans = [span for name in self._around[centre] for span in self._faulty[name]]
        moments = [start_ms, *(start for start, _ in spans if start_ms < start < end_ms)]
        return max(sum(start <= moment < end for start, end in spans) for moment in moments)
