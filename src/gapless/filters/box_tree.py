"""A tree of numbered boxes, which finds the lowest-numbered box that contains a given one.

A box has a low and a high side in each of some dimensions; it contains another if no low side of it
is higher and no high side lower. Sides can have any ordered type, the same for all boxes of a tree
in the same dimension.

The tree is a B-tree over the boxes, sorted by their sides. Each node stores the lowest low and the
highest high sides and the least number of all boxes below it. A search skips nodes that cannot
contain the box, or only have larger numbers than one found already. In one dimension every visited
node leads to a containing box, except at the two ends of the search, so a search takes O(log n),
unless the caller rejects boxes. In more dimensions the first one does most of the work. Adding and
removing touch one path: no call ever rebuilds much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import ge, le
from typing import Any

Sides = tuple[Any, ...]
Key = tuple[Sides, Sides, int]
"""The low sides, the high sides and the number of a box."""

NODE_MAX = 32


class _Node:
    """A node of the tree, with up to NODE_MAX boxes or child nodes, of which `keys` are lower bounds."""

    __slots__ = ("below", "first", "highs", "keys", "lows")

    def __init__(self, keys: list[Key], below: list[_Node] | None) -> None:
        self.keys = keys
        self.below = below
        self.refresh()

    def refresh(self) -> None:
        """Recompute the bounds of the boxes below this node."""
        lows: list[Sides] = [node.lows for node in self.below] if self.below else [key[0] for key in self.keys]
        highs: list[Sides] = [node.highs for node in self.below] if self.below else [key[1] for key in self.keys]
        self.lows: Sides = tuple(map(min, zip(*lows, strict=True)))
        self.highs: Sides = tuple(map(max, zip(*highs, strict=True)))
        self.first: int = min(node.first for node in self.below) if self.below else min(key[2] for key in self.keys)

    def add(self, key: Key) -> _Node | None:
        """Add a box. Return a new right neighbour if the node was split, else None."""
        if self.below is None:
            self.keys.insert(bisect_right(self.keys, key), key)
        else:
            place = self._place(key)
            split = self.below[place].add(key)
            if split is not None:
                self.below.insert(place + 1, split)
                self.keys.insert(place + 1, split.least)
        if len(self.keys) > NODE_MAX:
            return self._split()
        self.lows = tuple(map(min, self.lows, key[0]))
        self.highs = tuple(map(max, self.highs, key[1]))
        self.first = min(self.first, key[2])
        return None

    def remove(self, key: Key) -> None:
        """Remove a box, and nodes that become empty."""
        if self.below is None:
            place = bisect_left(self.keys, key)
            assert self.keys[place] == key
            del self.keys[place]
        else:
            place = self._place(key)
            self.below[place].remove(key)
            if not self.below[place].keys:
                del self.below[place], self.keys[place]
        if self.keys:
            self.refresh()

    @property
    def least(self) -> Key:
        node = self
        while node.below:
            node = node.below[0]
        return node.keys[0]

    def _place(self, key: Key) -> int:
        return max(0, bisect_right(self.keys, key) - 1)

    def _split(self) -> _Node:
        half = len(self.keys) // 2
        right = _Node(self.keys[half:], self.below[half:] if self.below else None)
        del self.keys[half:]
        if self.below:
            del self.below[half:]
        self.refresh()
        return right


class BoxTree:
    """A set of numbered boxes that is searched for containing boxes."""

    __slots__ = ("_root",)

    def __init__(self, lows: Sides, highs: Sides, number: int) -> None:
        """Create a tree with one box."""
        self._root = _Node([(lows, highs, number)], None)

    def __bool__(self) -> bool:
        return bool(self._root.keys)

    def add(self, lows: Sides, highs: Sides, number: int) -> None:
        """Add a box with a unique number."""
        if not self:
            self._root = _Node([(lows, highs, number)], None)
            return
        split = self._root.add((lows, highs, number))
        if split is not None:
            self._root = _Node([self._root.least, split.least], [self._root, split])

    def remove(self, lows: Sides, highs: Sides, number: int) -> None:
        """Remove the box with these sides and this number."""
        self._root.remove((lows, highs, number))
        while self._root.below and len(self._root.below) == 1:
            self._root = self._root.below[0]

    def first(self, lows: Sides, highs: Sides, best: int, holds: Callable[[int], bool]) -> int:
        """Return the least number below `best` of a box that contains the given one and passes `holds`. Return `best`
        if there is none.
        """
        return _search(self._root, lows, highs, best, holds)


def _search(node: _Node, lows: Sides, highs: Sides, best: int, holds: Callable[[int], bool]) -> int:
    if node.below is None:
        found = [
            number
            for low, high, number in node.keys
            if number < best and all(map(le, low, lows)) and all(map(ge, high, highs))
        ]
        return next(filter(holds, sorted(found)), best)
    for child in sorted(node.below, key=_first_number):
        if child.first >= best:
            break
        if all(map(le, child.lows, lows)) and all(map(ge, child.highs, highs)):
            best = _search(child, lows, highs, best, holds)
    return best


def _first_number(node: _Node) -> int:
    return node.first
