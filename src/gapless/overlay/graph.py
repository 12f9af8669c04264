"""General graphs of brokers: a primary tree with additional links.

The **primary tree** is a breadth-first tree from a centre, or the tree that the graph was made
from. Root, parents, children, depth and rank are those of the tree; neighbours, paths and distances
are those of the graph. Additional links make brokers neighbours, but do not change their rank.

A graph made by `with_bypasses` is a tree in which each broker is also linked to all at most `1 +
extra` hops away: the links by which a path bypasses `extra` failed brokers in a row. Such a link is
as long as the path that it bypasses.
"""

from collections.abc import Iterable, Sequence

from gapless.errors import OverlayError
from gapless.overlay.tree import Overlay

__all__ = ["Graph", "make_overlay", "with_bypasses"]


class Graph(Overlay):
    """An immutable connected graph of named brokers with cycles."""

    is_tree = False

    def __init__(
        self, brokers: Sequence[str], edges: Iterable[tuple[str, str]], tree: Overlay | None = None, reach: int = 1
    ) -> None:
        links = _checked(brokers, edges)
        self.tree = tree or _spanning_tree(brokers, links)
        self.bypass = 0 if tree is None else reach - 1
        """The number of consecutive brokers that a link can bypass, in a tree with bypasses."""
        super().__init__(self.tree.brokers, self.tree.edges)
        self.edges = tuple(links)
        adjacent: dict[str, list[str]] = {name: [] for name in self.brokers}
        for a, b in links:
            adjacent[a].append(b)
            adjacent[b].append(a)
        self._neighbours = {name: tuple(sorted(others, key=self.rank.__getitem__)) for name, others in adjacent.items()}
        self._towards: dict[str, dict[str, str]] = {}

    def children(self, name: str) -> tuple[str, ...]:
        """Return the children of a broker in the primary tree."""
        return self.tree.children(name)

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """Return all brokers on a shortest path between two brokers. If there are several such paths, prefer lower
        ranks."""
        towards = self._towards.get(end)
        if towards is None:
            towards = self._towards[end] = _search(end, self._neighbours)
        found = [start]
        while found[-1] != end:
            found.append(towards[found[-1]])
        return tuple(found)

    def wire(self, start: str, end: str) -> tuple[str, ...]:
        """Return the brokers on the path along which latencies between two brokers add up."""
        return self.tree.path(start, end) if self.bypass else self.path(start, end)

    def within(self, name: str, radius: int) -> tuple[str, ...]:
        """Return all other brokers at most `radius` links away, nearest first, then by rank."""
        seen = {name}
        found: list[str] = []
        ring = [name]
        for _ in range(radius):
            ring = sorted({other for at in ring for other in self._neighbours[at]} - seen, key=self.rank.__getitem__)
            seen.update(ring)
            found += ring
        return tuple(found)

    @property
    def diameter(self) -> int:
        """Return the largest distance between two brokers."""
        return max(_eccentricity(name, self._neighbours) for name in self.brokers)


def make_overlay(brokers: Sequence[str], edges: Iterable[tuple[str, str]]) -> Overlay:
    """Return the tree with these edges, or the graph if they contain cycles."""
    kept = list(edges)
    return Graph(brokers, kept) if len(kept) >= len(brokers) > 1 else Overlay(brokers, kept)


def with_bypasses(tree: Overlay, extra: int) -> Overlay:
    """Return the tree with a link between any two brokers that are at most `1 + extra` hops apart."""
    if extra < 0:
        raise OverlayError(f"bypass is {extra}, but must be at least 0")
    if not tree.is_tree:
        raise OverlayError("'bypass' needs a tree, and this graph has cycles; leave it out")
    reach = extra + 1
    place = {name: number for number, name in enumerate(tree.brokers)}
    links = [(a, b) for a in tree.brokers for b in tree.within(a, reach) if place[a] < place[b]]
    return Graph(tree.brokers, links, tree, reach) if len(links) > len(tree.edges) else tree


def _checked(brokers: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    known = set(brokers)
    seen: set[frozenset[str]] = set()
    kept = []
    for a, b in edges:
        for name in (a, b):
            if name not in known:
                raise OverlayError(f"edge {a!r}–{b!r} names {name!r}, which is not among the brokers")
        if a == b:
            raise OverlayError(f"edge {a!r}–{b!r} joins a broker with itself; remove it")
        if frozenset((a, b)) in seen:
            raise OverlayError(f"edge {a!r}–{b!r} occurs twice; remove one of the two")
        seen.add(frozenset((a, b)))
        kept.append((a, b))
    return kept


def _spanning_tree(brokers: Sequence[str], links: list[tuple[str, str]]) -> Overlay:
    """Return a breadth-first tree whose root has the smallest possible distance to the farthest broker."""
    adjacent: dict[str, list[str]] = {name: [] for name in brokers}
    if len(adjacent) != len(brokers):
        twice = next(name for name in adjacent if list(brokers).count(name) > 1)
        raise OverlayError(f"two brokers have the name {twice!r}; rename one")
    for a, b in links:
        adjacent[a].append(b)
        adjacent[b].append(a)
    reached = _search(brokers[0], adjacent)
    if len(reached) != len(brokers):
        lost = next(name for name in brokers if name not in reached)
        raise OverlayError(f"broker {lost!r} is not connected to {brokers[0]!r}; add an edge")
    centre = min(brokers, key=lambda name: _eccentricity(name, adjacent))
    parents = _search(centre, adjacent)
    return Overlay(brokers, [(parent, child) for child, parent in parents.items() if child != centre])


def _search(start: str, adjacent: dict[str, list[str]] | dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Return, for each reachable broker in breadth-first order, the broker before it on a path from the start."""
    found = {start: start}
    queue = [start]
    for name in queue:
        for other in adjacent[name]:
            if other not in found:
                found[other] = name
                queue.append(other)
    return found


def _eccentricity(start: str, adjacent: dict[str, list[str]] | dict[str, tuple[str, ...]]) -> int:
    before = _search(start, adjacent)
    far: dict[str, int] = {start: 0}
    for name, parent in before.items():
        if name != start:
            far[name] = far[parent] + 1
    return max(far.values())
