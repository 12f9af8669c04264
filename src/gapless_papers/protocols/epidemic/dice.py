"""Pseudo-random draws that depend on a name alone, so that a state machine can gossip at random and still be
repeatable.

The generator is SplitMix64: a counter with an odd increment, mixed; its output is uniform and passes the usual tests.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

__all__ = ["Dice"]

Item = TypeVar("Item")

_MASK = (1 << 64) - 1


class Dice:
    """The pseudo-random draws of one node."""

    def __init__(self, name: str) -> None:
        self._state = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")

    def below(self, bound: int) -> int:
        """Return a number from 0 up to, but not including, the bound."""
        return self._next() * bound >> 64

    def happens(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._next() < probability * 2**64

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], most: int) -> Sequence[Item]:
        """Return `count` of the items, or all if there are no more."""
        if len(items) <= most:
            return items
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(most)]

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return mixed ^ mixed >> 31
