"""Ready-made trees: the shapes that the papers measure, and seeded random ones.

Brokers are called b0, b1, b2… A regular tree is numbered level by level from its top, so broker i of a tree with
fanout k hangs below broker (i - 1) // k. A random tree grows broker by broker, each joined to one drawn uniformly
from those that still have room; the same seed gives the same tree on every machine.
"""

import random
from collections.abc import Iterable

from gapless.errors import OverlayError
from gapless.overlay.tree import Overlay

__all__ = ["binary", "chain", "from_edges", "kary", "random_tree", "star"]


def binary(depth: int) -> Overlay:
    """A full binary tree; `depth` counts the edges from its top to a leaf, so `binary(3)` has 15 brokers."""
    return kary(2, depth)


def kary(fanout: int, depth: int) -> Overlay:
    """A full tree in which every broker above the lowest level has `fanout` children."""
    _at_least("fanout", fanout, 1)
    _at_least("depth", depth, 0)
    count = sum(fanout**level for level in range(depth + 1))
    return _grown(count, ((child - 1) // fanout for child in range(1, count)))


def chain(brokers: int) -> Overlay:
    """All brokers in one line, b0 at an end."""
    _at_least("brokers", brokers, 1)
    return _grown(brokers, range(brokers - 1))


def star(brokers: int) -> Overlay:
    """b0 in the middle and all others around it."""
    _at_least("brokers", brokers, 1)
    return _grown(brokers, (0 for _ in range(brokers - 1)))


def random_tree(brokers: int, seed: int, max_degree: int | None = None) -> Overlay:
    """A tree drawn by the seed, in which no broker has more than `max_degree` neighbours."""
    _at_least("brokers", brokers, 1)
    if max_degree is not None and brokers > 2:
        _at_least("max_degree", max_degree, 2)
    return _grown(brokers, _drawn_parents(brokers, random.Random(f"{seed}/tree"), max_degree))


def from_edges(edges: Iterable[tuple[str, str]]) -> Overlay:
    """The tree of these edges; brokers stand in the order in which the edges first name them."""
    kept = [(a, b) for a, b in edges]
    return Overlay(list(dict.fromkeys(name for edge in kept for name in edge)), kept)


def _drawn_parents(brokers: int, rng: random.Random, max_degree: int | None) -> Iterable[int]:
    """For each broker after the first, the earlier one that it joins."""
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


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise OverlayError(f"{name} is {value}, but must be at least {least}")
