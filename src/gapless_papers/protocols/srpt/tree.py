"""The tree of a topic: the hypercube's broadcast tree of the topic's root, over all brokers.

The root of a topic follows from its name by a hash that mixes, so that similar names have unrelated roots. (With a
linear one, such as a CRC, the roots of `t1`, `t2`… have the same relation whatever the prefix.) On the path from the
root r to a node k the bits in which they differ change one by one, the highest first, so the parent of k differs from
it in the lowest of them. The nodes below k are those of a sub-cube around it, of as many dimensions as there are equal
bits below that one.
"""

from functools import lru_cache
from hashlib import blake2b

from gapless_papers.protocols.topics.hypercube import sub_cube

__all__ = ["children", "parent_of", "root_of"]


@lru_cache(maxsize=4096)
def root_of(topic: str, brokers: int) -> int:
    """Return the root node of a topic."""
    return int.from_bytes(blake2b(topic.encode(), digest_size=8).digest(), "big") % brokers


def parent_of(node: int, root: int) -> int:
    """Return the next node on the path to the root; the node must not be the root itself."""
    difference = node ^ root
    assert difference, "the root has no parent"
    return node ^ (difference & -difference)


def children(node: int, root: int, dimension: int, members: int, *, largest_first: bool = True) -> list[int]:
    """Return the next nodes on the paths to these members, given as bits of the whole cube; longest paths first, or
    last."""
    difference = node ^ root
    height = (difference & -difference).bit_length() - 1 if difference else dimension
    levels = range(height)
    return [
        node ^ 1 << level
        for level in (reversed(levels) if largest_first else levels)
        if sub_cube(members, node ^ 1 << level, level)
    ]
