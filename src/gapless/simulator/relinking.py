"""Replaces one link of the tree by another, so that the result is a tree again.

Without the old link the tree has two parts; the new one must join them. As soon as the old link is
removed, the tree counts as the one with the new link: a starting broker is given this tree, and
direct messages take its latencies. The new link itself may come later, and cannot be replaced until
then.
"""

from collections.abc import Iterable
from itertools import pairwise

from gapless.errors import OverlayError
from gapless.overlay import Overlay
from gapless.simulator.scenario import Fault, Relink

__all__ = ["ChangingTree", "misfits"]


class ChangingTree:
    """The tree of a run in which links are replaced."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self._coming: dict[frozenset[str], None] = {}

    def take_away(self, old: tuple[str, str], new: tuple[str, str]) -> None:
        """Remove a link that is to be replaced. Raise an `OverlayError` if that is impossible."""
        gone, wanted = "–".join(old), "–".join(new)
        if frozenset(old) in self._coming:
            raise OverlayError(f"{gone} cannot be removed: it was not added yet")
        if old[1] not in self.overlay.neighbours(old[0]):
            near = ", ".join(self.overlay.neighbours(old[0]))
            raise OverlayError(f"{gone} is not a link of the tree at that time; {old[0]!r} is linked to {near}")
        if set(old) == set(new):
            raise OverlayError(f"{gone} would replace itself; name another link in 'new'")
        if not any(set(edge) == set(old) for edge in pairwise(self.overlay.path(*new))):
            raise OverlayError(f"without {gone} the tree has two parts, and {wanted} does not join them")
        edges = [new if set(edge) == set(old) else edge for edge in self.overlay.edges]
        self.overlay = Overlay(self.overlay.brokers, edges)
        self._coming[frozenset(new)] = None

    def bring(self, new: tuple[str, str]) -> None:
        """Add the new link, after the old one was removed."""
        del self._coming[frozenset(new)]


def misfits(overlay: Overlay, faults: Iterable[Fault]) -> dict[int, str]:
    """Return an explanation for each impossible relink, by its index among the faults."""
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
