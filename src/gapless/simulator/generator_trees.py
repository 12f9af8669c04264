"""Draws random trees of every shape: chains, stars, combs, spiders, bushes, dumb-bells, and mixtures of these.

A tree grows broker by broker; its shape is the rule that chooses the parent of each. No broker is
deeper than `depth` (`DEPTH` by default), so no diameter exceeds twice that. Finally names are
permuted, because ranks depend on names.
"""

import random
from collections.abc import Callable

from gapless.overlay import Overlay

__all__ = ["DEPTH", "draw_tree"]

DEPTH = 6
Rule = Callable[["_Growing"], int]


class _Growing:
    """A tree that is being drawn."""

    def __init__(self, rng: random.Random, depth_max: int) -> None:
        self.rng = rng
        self.depth_max = depth_max
        self.parents: list[int] = [-1]
        self.depths = [0]
        self.children = [0]
        self.degree_max = rng.choice([3, 4, 100])
        self.spine = rng.randint(2, 2 * depth_max - 1)
        self.legs = rng.randint(3, 8)

    def add(self, rule: Rule) -> None:
        parent = rule(self)
        if self.depths[parent] == self.depth_max:
            parent = self.rng.choice(self.room())
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.children.append(0)
        self.children[parent] += 1

    def room(self) -> list[int]:
        """Return the brokers that can have another child."""
        return [number for number, depth in enumerate(self.depths) if depth < self.depth_max]

    @property
    def size(self) -> int:
        return len(self.parents)


def draw_tree(rng: random.Random, brokers: int, depth: int = DEPTH) -> Overlay:
    """Return a random tree with this number of brokers, named b0, b1, b2… in random order."""
    rules = [_chain] if brokers <= 2 * depth + 1 else []
    rules += [_star, _bush, _deep, _regular, _comb, _spider, _barbell, _random, _random]
    chosen = rng.choice(rules)
    other = rng.choice(rules) if rng.random() < 0.3 else chosen
    growing = _Growing(rng, depth)
    for _ in range(brokers - 1):
        growing.add(chosen if rng.random() < 0.7 else other)
    names = [f"b{number}" for number in range(brokers)]
    rng.shuffle(names)
    return Overlay(
        [f"b{number}" for number in range(brokers)],
        [(names[parent], names[child]) for child, parent in enumerate(growing.parents) if parent >= 0],
    )


def _chain(tree: _Growing) -> int:
    return max(0, tree.size - 2)


def _star(tree: _Growing) -> int:
    return 0


def _random(tree: _Growing) -> int:
    """Return any broker that can have another child."""
    free = [number for number in tree.room() if tree.children[number] < tree.degree_max]
    return tree.rng.choice(free)


def _bush(tree: _Growing) -> int:
    """Return a broker near the first one as the next parent."""
    return tree.rng.randrange(min(tree.size, 4))


def _deep(tree: _Growing) -> int:
    return tree.rng.randrange(max(0, tree.size - 4), tree.size)


def _regular(tree: _Growing) -> int:
    return (tree.size - 1) // min(3, tree.degree_max - 1)


def _comb(tree: _Growing) -> int:
    """Return the next parent: first the end of a chain, then any broker of that chain."""
    return _chain(tree) if tree.size <= tree.spine else tree.rng.randrange(tree.spine)


def _spider(tree: _Growing) -> int:
    return max(0, tree.size - tree.legs)


def _barbell(tree: _Growing) -> int:
    """Return the next parent: in a chain, or in a cluster at one of its ends."""
    return _chain(tree) if tree.size <= tree.spine else tree.rng.choice([tree.spine - 1, max(0, tree.spine - 2)])
