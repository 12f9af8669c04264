"""Graphs of brokers and their links: trees and general graphs, their shapes, neighbourhoods and paths."""

from gapless.overlay.disjoint_paths import disjoint_paths
from gapless.overlay.graph import Graph, make_overlay, with_bypasses
from gapless.overlay.shapes import binary, chain, from_edges, grid, kary, random_regular, random_tree, ring, star
from gapless.overlay.tree import Overlay

__all__ = [
    "Graph", "Overlay", "binary", "chain", "disjoint_paths", "from_edges", "grid", "kary", "make_overlay",
    "random_regular", "random_tree", "ring", "star", "with_bypasses",
]  # fmt: skip
