"""The tree of brokers: its shapes, neighbourhoods and paths."""

from gapless.overlay.shapes import binary, chain, from_edges, kary, random_tree, star
from gapless.overlay.tree import Overlay

__all__ = ["Overlay", "binary", "chain", "from_edges", "kary", "random_tree", "star"]
