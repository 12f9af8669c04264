"""The starting cut of one subscription on a graph, at its home broker.

For each publisher the cut is fixed once, by the publisher's own marker, or by the markers of all partial pivots, past
whom nothing gets here: the start is then the largest of their numbers, for each of them vouches only for what it
carries itself (Algorithm 2, lines 37 to 42). Events that come between the first of these markers and the last are kept.

**All publishers or none** (repair `pivots`). Partial pivots count only if they are the same brokers for all
publishers that may match: then every effect of what they carry comes past one of them, too, behind its cause.
Otherwise an effect could come straight from its publisher, before its cause has been carried here. For the same reason
they do not count once a publisher's own marker has fixed a start: that start can be after an effect of what they carry.
"""

from collections.abc import Collection, Iterable

from gapless_papers.protocols.locaps.messages import Cuts, PivotMarker
from gapless_papers.protocols.locaps.starts import Starts

__all__ = ["PathStart"]


class PathStart(Starts):
    """What one subscription knows of where it starts."""

    def __init__(self, switched_off: Collection[str] = ()) -> None:
        super().__init__(switched_off)
        self._speaks_for_all = "pivots" not in switched_off
        self.in_transition: dict[str, None] = {}
        """Publishers that it gets by way of partial pivots, whose own markers have not come yet."""
        self.marked: dict[str, None] = {}
        """Publishers whose own markers have come."""
        self._markers: dict[str, Cuts] = {}
        """What each partial pivot has said."""

    def take_marker(self, cuts: Cuts) -> Cuts:
        """The publishers' own word; returns the starts that it fixes."""
        for publisher in cuts:
            self.marked[publisher] = None
            self.in_transition.pop(publisher, None)
        return super().take_marker(cuts)

    def take_partial(self, marker: PivotMarker) -> None:
        """The word of a partial pivot."""
        for publisher in marker.cuts:
            if publisher not in self.starts:
                self._buffers.setdefault(publisher, [])
        self._markers[marker.broker] = marker.cuts

    def spoken(self, publisher: str) -> list[str]:
        """Who carries the publisher's events."""
        return [broker for broker, cuts in self._markers.items() if publisher in cuts]

    def take_pivots(self, publishers: Iterable[str], pivots: Iterable[str]) -> Cuts:
        """All partial pivots of all these publishers have spoken; returns the starts that it fixes.

        None if a publisher's own marker came first. The smallest story: q answers p:1 with q:1, and the own marker of q
        fixes its start at q:2. Then a third publisher leaves, and the partial pivots of p and q are the same at last:
        they would start p at p:1, and its effect q:1 would be missing.
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
        """The publisher has left: what was not complete will never be. A start that is fixed stays."""
        super().forget(publisher)
        self.in_transition.pop(publisher, None)
        self._markers = {
            broker: {other: cut for other, cut in cuts.items() if other != publisher}
            for broker, cuts in self._markers.items()
        }
