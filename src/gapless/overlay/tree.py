"""Trees of brokers: fixed, rooted, and described in one file.

The root is a centre of the tree (halfway along a longest path), so the depth is minimal and the
root has at least two neighbours if there are three brokers. Neighbours and all other sequences are
in *rank* order (depth, then index in the list of brokers), so that every broker computes the same
precedence without communication.

Distances and paths climb parent pointers and never search, so they are cheap even in a tree of
10,000 brokers.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from gapless.errors import OverlayError

__all__ = ["Overlay"]

SHOWN_MAX = 10
"""The maximum number of edges that `repr` shows."""


class Overlay:
    """An immutable tree of named brokers, with fast distances and paths."""

    is_tree = True
    """Whether there is exactly one path between any two brokers."""

    def __init__(self, brokers: Sequence[str], edges: Iterable[tuple[str, str]]) -> None:
        self.brokers = tuple(brokers)
        self.edges = tuple(edges)
        adjacent: dict[str, list[str]] = {name: [] for name in self.brokers}
        if not self.brokers:
            raise OverlayError("an overlay needs at least one broker")
        if len(adjacent) != len(self.brokers):
            twice = next(name for name in adjacent if self.brokers.count(name) > 1)
            raise OverlayError(f"two brokers have the name {twice!r}; rename one")
        for a, b in self.edges:
            for name in (a, b):
                if name not in adjacent:
                    raise OverlayError(f"edge {a!r}–{b!r} names {name!r}, which is not among the brokers")
            adjacent[a].append(b)
            adjacent[b].append(a)
        if len(self.edges) != len(self.brokers) - 1:
            raise OverlayError(
                f"{len(self.brokers)} brokers need {len(self.brokers) - 1} edges to form a tree, "
                f"but {len(self.edges)} are given"
            )
        self.root = _centre(self.brokers[0], adjacent)
        self.parent: dict[str, str | None] = {self.root: None}
        self.depth: dict[str, int] = {self.root: 0}
        queue = [self.root]
        for name in queue:
            for other in adjacent[name]:
                if other == self.parent[name]:
                    continue
                if other in self.parent:
                    raise OverlayError(f"the edges form a cycle through {other!r}; remove one of them")
                self.parent[other] = name
                self.depth[other] = self.depth[name] + 1
                queue.append(other)
        if len(queue) != len(self.brokers):
            lost = next(name for name in self.brokers if name not in self.parent)
            raise OverlayError(f"broker {lost!r} is not connected to {self.root!r}; add an edge")
        place = {name: number for number, name in enumerate(self.brokers)}
        self.rank: dict[str, tuple[int, int]] = {name: (self.depth[name], place[name]) for name in self.brokers}
        self._neighbours = {name: tuple(sorted(others, key=self.rank.__getitem__)) for name, others in adjacent.items()}

    def __repr__(self) -> str:
        shown = ", ".join(f"{a}–{b}" for a, b in self.edges[:SHOWN_MAX]) or self.root
        more = ", …" if len(self.edges) > SHOWN_MAX else ""
        return f"<{type(self).__name__} of {len(self.brokers):,} brokers, {shown}{more}>"

    def __contains__(self, name: object) -> bool:
        return name in self.depth

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return the neighbours of a broker, its parent first."""
        return self._neighbours[name]

    def children(self, name: str) -> tuple[str, ...]:
        return self._neighbours[name] if self.parent[name] is None else self._neighbours[name][1:]

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """Return all brokers on the path from start to end, including both."""
        if self.parent[start] == end or self.parent[end] == start:
            return start, end
        up, down = [start], [end]
        while up[-1] != down[-1]:
            side = up if self.depth[up[-1]] >= self.depth[down[-1]] else down
            above = self.parent[side[-1]]
            assert above is not None
            side.append(above)
        return (*up, *reversed(down[:-1]))

    def wire(self, start: str, end: str) -> tuple[str, ...]:
        """Return the brokers on the path along which latencies between two brokers add up."""
        return self.path(start, end)

    def distance(self, start: str, end: str) -> int:
        """Return the number of edges between two brokers."""
        return len(self.path(start, end)) - 1

    def within(self, name: str, radius: int) -> tuple[str, ...]:
        """Return all other brokers at most `radius` links away, nearest first, then by rank."""
        known = self._within.get((name, radius))
        if known is None:
            known = self._within[name, radius] = self._find_within(name, radius)
        return known

    @cached_property
    def _within(self) -> dict[tuple[str, int], tuple[str, ...]]:
        """Return the cache of `within`, which brokers call with the same arguments at every crash and restart."""
        return {}

    def _find_within(self, name: str, radius: int) -> tuple[str, ...]:
        found: list[str] = []
        ring = [(name, "")]
        for _ in range(radius):
            ring = [(other, at) for at, back in ring for other in self._neighbours[at] if other != back]
            ring.sort(key=lambda step: self.rank[step[0]])
            found += [other for other, _ in ring]
        return tuple(found)

    @cached_property
    def diameter(self) -> int:
        """The largest distance between two brokers."""
        far, _ = _farthest(self.root, self._neighbours)
        return _farthest(far, self._neighbours)[1]


def _farthest(start: str, adjacent: dict[str, list[str]] | dict[str, tuple[str, ...]]) -> tuple[str, int]:
    """Return a broker farthest from `start`, and its distance. The graph may have cycles and missing parts."""
    seen = {start: 0}
    queue = [start]
    for name in queue:
        for other in adjacent[name]:
            if other not in seen:
                seen[other] = seen[name] + 1
                queue.append(other)
    return queue[-1], seen[queue[-1]]


def _centre(start: str, adjacent: dict[str, list[str]]) -> str:
    """Return the broker halfway along a longest path."""
    one_end, _ = _farthest(start, adjacent)
    came_from = {one_end: one_end}
    queue = [one_end]
    for name in queue:
        for other in adjacent[name]:
            if other not in came_from:
                came_from[other] = name
                queue.append(other)
    name = queue[-1]
    _, length = _farthest(one_end, adjacent)
    for _ in range(length // 2):
        name = came_from[name]
    return name
