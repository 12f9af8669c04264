"""What a broker knows of the primary tree: everyone at most Δ = δ + 1 away, and who of them cannot be reached.

The **active sessions** of a broker are those to the nearest brokers that it can reach: to X if it can reach X and no
one between. A message for somewhere beyond takes the active session on the way there. Failed brokers in between are
bypassed.

A **gate** is how far a broker sees on the way to some place: the broker Δ away, or the place itself if it is nearer.
Whatever has the same gate takes the same session, whoever fails, so routes are kept by gate.
"""

from gapless.overlay import Overlay

__all__ = ["Neighbourhood"]


class Neighbourhood:
    """The tree around one broker."""

    def __init__(self, name: str, overlay: Overlay, radius: int) -> None:
        self.radius = radius
        self.paths: dict[str, tuple[str, ...]] = {}
        """Everyone in the neighbourhood, nearest first, with the way there: without this broker, with the other."""
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
        """The ways to those that have to be bypassed."""
        self._hops: dict[str, str] = {}
        self.survey()

    def suspect(self, node: str) -> bool:
        """The node cannot be reached; returns whether that changes the active sessions."""
        self.suspected[node] = None
        return node in self.active

    def trust(self, node: str) -> bool:
        """The node can be reached again; returns whether that changes the active sessions."""
        del self.suspected[node]
        return all(between in self.suspected for between in self.paths[node][:-1])

    def survey(self) -> None:
        """Find the active sessions."""
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
        """Whom to send to what is meant for the gate or beyond; nobody (the empty name) if nobody can be reached."""
        found = self._hops.get(gate)
        if found is None:
            found = next((node for node in self.paths[gate] if node not in self.suspected), "")
            self._hops[gate] = found
        return found

    def direction(self, node: str) -> str:
        """The neighbour behind which the node stands."""
        return self.paths[node][0]

    def gate(self, path: tuple[str, ...]) -> str:
        """The gate on the way back along the path, which ends with a neighbour."""
        return path[-min(self.radius, len(path))]
