"""The tree of a topic: the hypercube's broadcast tree of one node, the topic's root, over all brokers.

The root of a topic follows from its name. On the way from the root r to a node k the bits in which they differ change
one by one, the highest first, so the parent of k differs from it in the lowest of them. The nodes below k are those
of a sub-cube around it, of as many dimensions as there are equal bits below that one.
"""

from zlib import crc32

from gapless.protocols.vcube.hypercube import sub_cube

__all__ = ["children", "parent_of", "root_of"]


def root_of(topic: str, brokers: int) -> int:
    """The node through which everything of a topic goes."""
    return crc32(topic.encode()) % brokers


def parent_of(node: int, root: int) -> int:
    """The next node on the way to the root; the node is not the root itself."""
    difference = node ^ root
    assert difference, "the root has no parent"
    return node ^ (difference & -difference)


def children(node: int, root: int, dimension: int, members: int) -> list[int]:
    """The next nodes on the ways to these members, given as bits of the whole cube; the longest ways first."""
    difference = node ^ root
    height = (difference & -difference).bit_length() - 1 if difference else dimension
    below = []
    for level in reversed(range(height)):
        child = node ^ 1 << level
        if sub_cube(members, child, level):
            below.append(child)
    return below
