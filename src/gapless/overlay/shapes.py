"""Creates common trees and graphs: the shapes that the papers measure, and seeded random ones.

Brokers are called b0, b1, b2… A regular tree is numbered level by level from its top, so the parent
of broker i in a tree with fanout k is broker (i - 1) // k. A random tree grows broker by broker,
each joined to one drawn uniformly from those that still have room; the same seed gives the same
tree on every machine. A random regular graph is drawn by pairing, repeatedly until it is simple and
connected.
"""

import random
from collections.abc import Iterable

from gapless.errors import OverlayError
from gapless.overlay.graph import Graph, make_overlay
from gapless.overlay.tree import Overlay

__all__ = ["binary", "chain", "from_edges", "grid", "kary", "random_regular", "random_tree", "ring", "star"]

_DRAWS_MAX = 10_000
"""The maximum number of attempts to draw a random regular graph. Degree 5 takes a few hundred at most."""


def binary(depth: int) -> Overlay:
    """Return a full binary tree; `depth` counts the edges from its top to a leaf, so `binary(3)`
    has 15 brokers.
    """
    return kary(2, depth)


def kary(fanout: int, depth: int) -> Overlay:
    """Return a full tree in which every broker above the lowest level has `fanout` children."""
    _at_least("fanout", fanout, 1)
    _at_least("depth", depth, 0)
    count = sum(fanout**level for level in range(depth + 1))
    return _grown(count, ((child - 1) // fanout for child in range(1, count)))


def chain(brokers: int) -> Overlay:
    """Return a tree in which all brokers form one line, with b0 at an end."""
    _at_least("brokers", brokers, 1)
    return _grown(brokers, range(brokers - 1))


def star(brokers: int) -> Overlay:
    """Return a tree with b0 in the middle and all other brokers around it."""
    _at_least("brokers", brokers, 1)
    return _grown(brokers, (0 for _ in range(brokers - 1)))


def random_tree(brokers: int, seed: int, max_degree: int | None = None) -> Overlay:
    """Return a tree drawn from the seed, in which no broker has more than `max_degree` neighbours."""
    _at_least("brokers", brokers, 1)
    if max_degree is not None and brokers > 2:
        _at_least("max_degree", max_degree, 2)
    return _grown(brokers, _drawn_parents(brokers, random.Random(f"{seed}/tree"), max_degree))


def from_edges(edges: Iterable[tuple[str, str]]) -> Overlay:
    """Return the tree or graph of these edges, with brokers in the order in which the edges first
    name them.
    """
    kept = [(a, b) for a, b in edges]
    return make_overlay(list(dict.fromkeys(name for edge in kept for name in edge)), kept)


def ring(brokers: int) -> Overlay:
    """Return a graph in which all brokers form a circle."""
    _at_least("brokers", brokers, 3)
    return _graph(brokers, [(number, (number + 1) % brokers) for number in range(brokers)])


def grid(rows: int, columns: int) -> Overlay:
    """Return a grid in which each broker is linked to its neighbours in both directions. b0 is a corner."""
    _at_least("rows", rows, 2)
    _at_least("columns", columns, 2)
    beside = [(n, n + 1) for n in range(rows * columns) if (n + 1) % columns]
    return _graph(rows * columns, beside + [(n, n + columns) for n in range((rows - 1) * columns)])


def random_regular(brokers: int, degree: int, seed: int) -> Overlay:
    """Return a graph drawn from the seed, in which every broker has `degree` neighbours."""
    _at_least("degree", degree, 2)
    _at_least("brokers", brokers, degree + 1)
    if brokers * degree % 2:
        raise OverlayError(f"{brokers} brokers cannot have {degree} neighbours each; make one of the numbers even")
    rng = random.Random(f"{seed}/regular/{brokers}/{degree}")
    for _ in range(_DRAWS_MAX):
        edges = _drawn_pairs(brokers, degree, rng)
        if edges is not None and _is_connected(brokers, edges):
            return _graph(brokers, edges)
    raise OverlayError(f"no graph of {brokers} brokers with {degree} neighbours each was found; choose a lower degree")


def _drawn_parents(brokers: int, rng: random.Random, max_degree: int | None) -> Iterable[int]:
    """Yield, for each broker after the first, the earlier broker that it joins."""
    with_room = [0]
    degree = [0] * brokers
    for child in range(1, brokers):
        place = rng.randrange(len(with_room))
        parent = with_room[place]
        degree[parent] += 1
        degree[child] = 1
        if degree[parent] == max_degree:
            with_room[place] = with_room[-1]
            with_room.pop()
        if max_degree != 1:
            with_room.append(child)
        yield parent


def _grown(brokers: int, parents: Iterable[int]) -> Overlay:
    edges = [(f"b{parent}", f"b{child}") for child, parent in enumerate(parents, start=1)]
    return Overlay([f"b{number}" for number in range(brokers)], edges)


def _graph(brokers: int, edges: list[tuple[int, int]]) -> Overlay:
    return Graph([f"b{number}" for number in range(brokers)], [(f"b{a}", f"b{b}") for a, b in edges])


def _drawn_pairs(brokers: int, degree: int, rng: random.Random) -> list[tuple[int, int]] | None:
    """Return random pairs of brokers to link, or None if a pair has one broker twice or occurs twice."""
    ends = [number for number in range(brokers) for _ in range(degree)]
    edges: dict[tuple[int, int], None] = {}
    while ends:
        rng.shuffle(ends)
        left = []
        for a, b in zip(ends[::2], ends[1::2], strict=True):
            pair = (min(a, b), max(a, b))
            if a == b or pair in edges:
                left += [a, b]
            else:
                edges[pair] = None
        if len(left) == len(ends):
            return None
        ends = left
    return sorted(edges)


def _is_connected(brokers: int, edges: list[tuple[int, int]]) -> bool:
    adjacent: list[list[int]] = [[] for _ in range(brokers)]
    for a, b in edges:
        adjacent[a].append(b)
        adjacent[b].append(a)
    found = {0}
    queue = [0]
    for number in queue:
        for other in adjacent[number]:
            if other not in found:
                found.add(other)
                queue.append(other)
    return len(found) == brokers


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise OverlayError(f"{name} is {value}, but must be at least {least}")
