"""How the tree is rearranged: one link goes, another comes, and what results is a tree again.

Without the old link the tree falls into two parts; the new one must join them. From the moment on at which the old
link goes, the tree is the one with the new link in it: that is what a broker that starts is told, and how long direct
messages take. The new link itself may come a while later, and until then it cannot be replaced in turn.
"""

from collections.abc import Iterable
from itertools import pairwise

from gapless.errors import OverlayError
from gapless.overlay import Overlay
from gapless.simulator.scenario import Fault, Relink

__all__ = ["ChangingTree", "misfits"]


class ChangingTree:
    """The tree of a run while links are replaced."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self._coming: dict[frozenset[str], None] = {}

    def take_away(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """The old link goes, to be replaced; an `OverlayError` if that cannot be."""
        gone, wanted = "–".join(old), "–".join(new)
        if frozenset(old) in self._coming:
            raise OverlayError(f"{gone} cannot go: it has not come yet")
        if old[1] not in self.overlay.neighbours(old[0]):
            near = ", ".join(self.overlay.neighbours(old[0]))
            raise OverlayError(f"{gone} is no link of the tree at that time; {old[0]!r} is linked to {near}")
        if set(old) == set(new):
            raise OverlayError(f"{gone} would replace itself; name another link in 'new'")
        if not any(set(edge) == set(old) for edge in pairwise(self.overlay.path(*new))):
            raise OverlayError(f"without {gone} the tree falls into two parts, and {wanted} does not join them")
        edges = [new if set(edge) == set(old) else edge for edge in self.overlay.edges]
        self.overlay = Overlay(self.overlay.brokers, edges)
        self._coming[frozenset(new)] = None

    def bring(self, new: tuple[str, str]) -> None:
        """The new link is there."""
        del self._coming[frozenset(new)]


def misfits(overlay: Overlay, faults: Iterable[Fault]) -> dict[int, str]:
    """The relinks that cannot be, by their places among the faults, each with a sentence; the others are played."""
    tree = ChangingTree(overlay)
    found: dict[int, str] = {}
    relinks = [(number, fault) for number, fault in enumerate(faults) if isinstance(fault, Relink)]
    steps = [(fault.at_ms, number, False, fault) for number, fault in relinks]
    steps += [(fault.at_ms + fault.gap_ms, number, True, fault) for number, fault in relinks]
    for _, number, comes, fault in sorted(steps, key=lambda step: step[:3]):
        if number in found:
            continue
        try:
            if comes:
                tree.bring(fault.new)
            else:
                tree.take_away(fault.old, fault.new)
        except OverlayError as error:
            found[number] = str(error)
    return found
