"""The virtual hypercube (section II of the paper): how a broadcast is forwarded.

Brokers have the numbers 0 … n - 1, in the order of the overlay, and n is a power of two. From the view of node i the
others form log2 n clusters. Cluster s contains the 2^(s-1) nodes whose numbers differ from i's in bit s, counted from
1, and in no higher one, in the order of their distance `k XOR i`. So a cluster is one half of a sub-cube of 2^s nodes
whose other half is i's own, and every sub-cube is a range of consecutive numbers.

A broadcast is split, never flooded: the node responsible for a sub-cube of 2^h nodes hands each of its clusters 1 … h
to the first member there, which is then responsible for that cluster, a sub-cube of half the size. So every member gets
one copy, over at most log2 n hops, and no other node gets any.

Members of a sub-cube are the bits of one integer, bit k for its k-th node: finding the first in a cluster takes a shift
and a mask if all nodes are members, and at most log2 n of them if few are.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from gapless.errors import ProtocolError
from gapless.overlay import Overlay

__all__ = [
    "BROKERS_MAX", "branches", "cluster", "cluster_of", "first_member", "mask_of", "numbering", "pack", "refusal",
    "sub_cube", "unpack",
]  # fmt: skip

BROKERS_MAX = 1 << 16

_FULL = tuple((1 << (1 << height)) - 1 for height in range(17))
"""By height, the bits of all nodes of a sub-cube of 2^height nodes."""


def refusal(overlay: Overlay, _f: int = 0, _options: Any = None) -> str | None:
    """Return why there is no hypercube of these brokers; None if there is."""
    count = len(overlay.brokers)
    if count & (count - 1):
        below, above = 1 << (count.bit_length() - 1), 1 << count.bit_length()
        return f"the number of brokers of a hypercube must be a power of two, but is {count}; use {below} or {above}"
    if count > BROKERS_MAX:
        return f"the maximum number of brokers is {BROKERS_MAX:,}, but there are {count:,}; use fewer"
    return None


@lru_cache(maxsize=16)
def numbering(brokers: tuple[str, ...]) -> Mapping[str, int]:
    """Return the number of each broker; one table for all brokers of a run."""
    return MappingProxyType({name: number for number, name in enumerate(brokers)})


@lru_cache(maxsize=1024)
def mask_of(brokers: tuple[str, ...], members: tuple[str, ...]) -> int:
    """Return these brokers as bits of the whole cube."""
    numbers = numbering(brokers)
    mask = 0
    for name in members:
        if name not in numbers:
            raise ProtocolError(f"initial_members: there is no broker {name!r}; they are {brokers[0]} … {brokers[-1]}")
        mask |= 1 << numbers[name]
    return mask


def cluster(i: int, s: int) -> tuple[int, ...]:
    """Return c(i, s): the nodes of cluster s from the view of i, in order."""
    first = i ^ (1 << (s - 1))
    return tuple(first ^ k for k in range(1 << (s - 1)))


def cluster_of(i: int, j: int) -> int:
    """Return CLUSTER: in which of i's clusters j is, and i in which of j's."""
    return (i ^ j).bit_length()


def first_member(members: int, place: int, height: int) -> int:
    """Return the member nearest to a place of a sub-cube, by XOR; there must be one."""
    if members >> place & 1:
        return place
    start = 0
    while height:
        height -= 1
        half = 1 << height
        start |= place & half
        if not members >> start & _FULL[height]:
            start ^= half
    return start


def branches(i: int, height: int, members: int, *, largest_first: bool = True) -> list[tuple[int, int]]:
    """Return NEIGHBORHOOD: the nodes to which i forwards a message for members of its sub-cube of 2^height nodes.

    Each next node (FF_NEIGHBOR: the first member of a cluster) is returned with the members behind it, as bits of its
    own sub-cube. The largest cluster comes first by default, because its copy has the longest path.
    """
    found: list[tuple[int, int]] = []
    if not members:
        return found
    place = i & (1 << height) - 1
    base = i ^ place
    for level in reversed(range(height)) if largest_first else range(height):
        size = 1 << level
        start = (place ^ size) & -size
        inside = members >> start & _FULL[level]
        if inside:
            first = first_member(inside, place & size - 1, level)
            found.append((base + start + first, inside ^ 1 << first))
    return found


def sub_cube(members: int, i: int, height: int) -> int:
    """Return the members of i's sub-cube of 2^height nodes, as bits of that sub-cube."""
    return members >> (i >> height << height) & _FULL[height]


def pack(members: int) -> bytes:
    """Return members as bytes for a message."""
    return members.to_bytes((members.bit_length() + 7) >> 3, "little")


def unpack(members: bytes) -> int:
    """Return the members in a message."""
    return int.from_bytes(members, "little")
