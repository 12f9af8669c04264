"""Chooses the kind of broker for a place in the network.

On the bare tree, `broker` relies on the tree's order. On a graph, and on a tree whose links bypass f brokers,
`path_broker` relies on the causal multicast.
"""

from functools import lru_cache

import msgspec

from gapless.overlay import Overlay, with_bypasses
from gapless.protocol import BrokerNode, BrokerPlace
from gapless_papers.protocols.locaps.broker import LocapsBroker
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.path_broker import PathBroker

__all__ = ["make_broker"]


def make_broker(place: BrokerPlace, options: LocapsOptions) -> BrokerNode:
    """Return a broker for this place."""
    if place.overlay.is_tree and (options.paths == "one" or place.f == 0 or len(place.overlay.brokers) < 3):
        return LocapsBroker(place, options)
    f = place.f if options.paths == "f+1" else 0
    overlay = _with_links(place.overlay, f) if place.overlay.is_tree else place.overlay
    return PathBroker(msgspec.structs.replace(place, overlay=overlay, f=f), options)


@lru_cache(16)
def _with_links(overlay: Overlay, f: int) -> Overlay:
    """Return the tree with its bypasses; all brokers of one process share it."""
    return with_bypasses(overlay, f)
