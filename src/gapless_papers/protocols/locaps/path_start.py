"""The starting cut of one subscription on a graph, at its home broker.

For each publisher the cut is fixed once, by the publisher's own marker, or by the markers of all partial pivots, which
no event can avoid: the start is then the largest of their numbers, because each of them guarantees only the events that
it carries itself (Algorithm 2, lines 37 to 42). Events that arrive between the first of these markers and the last are
buffered.

**All publishers or none** (repair `pivots`). Partial pivots count only if they are the same brokers for all matching
publishers: then every effect of an event that they carry passes one of them, too, after its cause. Otherwise an effect
could arrive directly from its publisher, before its cause has been carried here. For the same reason they do not count
once a publisher's own marker has fixed a start: that start can be after an effect of an event that they carry.
"""

from collections.abc import Collection, Iterable

from gapless_papers.protocols.locaps.messages import Cuts, PivotMarker
from gapless_papers.protocols.locaps.starts import Starts

__all__ = ["PathStart"]


class PathStart(Starts):
    """The starting cut of one subscription, as far as it is known."""

    def __init__(self, switched_off: Collection[str] = ()) -> None:
        super().__init__(switched_off)
        self._speaks_for_all = "pivots" not in switched_off
        self.in_transition: dict[str, None] = {}
        """Publishers whose events arrive by way of partial pivots, and whose own markers have not arrived yet."""
        self.marked: dict[str, None] = {}
        """Publishers whose own markers have arrived."""
        self._markers: dict[str, Cuts] = {}
        """The marker of each partial pivot."""

    def take_marker(self, cuts: Cuts) -> Cuts:
        """Process the publishers' own marker; return the starts that it fixes."""
        for publisher in cuts:
            self.marked[publisher] = None
            self.in_transition.pop(publisher, None)
        return super().take_marker(cuts)

    def take_partial(self, marker: PivotMarker) -> None:
        """Record the marker of a partial pivot."""
        for publisher in marker.cuts:
            if publisher not in self.starts:
                self._buffers.setdefault(publisher, [])
        self._markers[marker.broker] = marker.cuts

    def answered(self, publisher: str) -> list[str]:
        """Return the partial pivots that have sent markers for the publisher."""
        return [broker for broker, cuts in self._markers.items() if publisher in cuts]

    def take_pivots(self, publishers: Iterable[str], pivots: Iterable[str]) -> Cuts:
        """Fix the starts of these publishers, all of whose partial pivots have sent markers, and return them.

        Return None if a publisher's own marker came first. The smallest counterexample: q answers p:1 with q:1, and the
        own marker of q fixes its start at q:2. Then a third publisher leaves, and the partial pivots of p and q become
        the same: they would start p at p:1, and its effect q:1 would be missing.
        """
        if self._speaks_for_all and self._any_marker:
            return {}
        markers = [self._markers[broker] for broker in pivots]
        cuts = {publisher: max(marker[publisher] for marker in markers) for publisher in publishers}
        for publisher in cuts:
            if publisher not in self.marked and publisher not in self.starts:
                self.in_transition[publisher] = None
        return self._fix_by_partial(cuts)

    def forget(self, publisher: str) -> None:
        """Drop the incomplete markers of a publisher that has left. Keep a start that is already fixed."""
        super().forget(publisher)
        self.in_transition.pop(publisher, None)
        self._markers = {
            broker: {other: cut for other, cut in cuts.items() if other != publisher}
            for broker, cuts in self._markers.items()
        }
