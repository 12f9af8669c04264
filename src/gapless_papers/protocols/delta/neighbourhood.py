"""A broker's view of the primary tree: all brokers at distance up to Δ = δ + 1, and which of them are unreachable.

The **active sessions** of a broker are those to the nearest reachable brokers: to X if it can reach X and no broker in
between. A message for a broker beyond takes the active session on the path. Failed brokers in between are bypassed.

A **gate** is how far a broker sees on the path to some place: the broker Δ away, or the place itself if it is nearer.
All destinations with the same gate use the same session, whichever brokers fail, so routes are kept by gate.
"""

from gapless.overlay import Overlay

__all__ = ["Neighbourhood"]


class Neighbourhood:
    """The tree around one broker."""

    def __init__(self, name: str, overlay: Overlay, radius: int) -> None:
        self.radius = radius
        self.paths: dict[str, tuple[str, ...]] = {}
        """Every broker in the neighbourhood, nearest first, with the path to it. The path excludes this
        broker and includes the other.
        """
        self._onward: dict[str, tuple[str, ...]] = {}
        ring: list[tuple[str, tuple[str, ...], str]] = [(other, (other,), name) for other in overlay.neighbours(name)]
        self._nearest = tuple([other for other, _, _ in ring])
        for distance in range(1, radius + 1):
            further = []
            for node, path, back in ring:
                self.paths[node] = path
                if distance < radius:
                    onward = tuple([other for other in overlay.neighbours(node) if other != back])
                    self._onward[node] = onward
                    further += [(other, (*path, other), node) for other in onward]
            ring = further
        self.suspected: dict[str, None] = {}
        self.active: dict[str, None] = {}
        """The active sessions."""
        self.failed: list[tuple[str, ...]] = []
        """The paths to the brokers that have to be bypassed."""
        self._hops: dict[str, str] = {}
        self.survey()

    def suspect(self, node: str) -> bool:
        """Mark the node as unreachable; return whether that changes the active sessions."""
        self.suspected[node] = None
        return node in self.active

    def trust(self, node: str) -> bool:
        """Mark the node as reachable; return whether that changes the active sessions."""
        del self.suspected[node]
        return all(between in self.suspected for between in self.paths[node][:-1])

    def survey(self) -> None:
        """Compute the active sessions."""
        self.active = {}
        self.failed = []
        self._hops = {}
        ring = list(self._nearest)
        for node in ring:
            if node not in self.suspected:
                self.active[node] = None
            else:
                self.failed.append(self.paths[node])
                ring += self._onward.get(node, ())

    def hop(self, gate: str) -> str:
        """Return the next hop of messages to the gate or beyond; empty if no broker on the path is reachable."""
        found = self._hops.get(gate)
        if found is None:
            found = next((node for node in self.paths[gate] if node not in self.suspected), "")
            self._hops[gate] = found
        return found

    def direction(self, node: str) -> str:
        """Return the neighbour on the path to the node."""
        return self.paths[node][0]

    def gate(self, path: tuple[str, ...]) -> str:
        """Return the gate on the reverse of this path, which ends with a neighbour."""
        return path[-min(self.radius, len(path))]
