"""Closes the connections that a client does not need: all except the one to the broker that serves it.

While a client looks for its session it asks several brokers. Once the same broker has served it for a while, it
disconnects gracefully from the others. So brokers have no connections to clients that another broker serves.
"""

import asyncio

from gapless.protocol import ClientNode
from gapless.runtime.links import Links

__all__ = ["SpareLinks"]

LOOK_S = 1.0


class SpareLinks:
    """Closes the unneeded connections of one client."""

    def __init__(self, links: Links, node: ClientNode) -> None:
        self._links = links
        self._node = node
        self._served_by = ""
        self._looking = links.loop.call_later(LOOK_S, self._look)

    def close(self) -> None:
        self._looking.cancel()

    def _look(self) -> None:
        self._looking = asyncio.get_running_loop().call_later(LOOK_S, self._look)
        broker = self._node.broker if self._node.is_attached else ""
        if broker and broker == self._served_by:
            for peer in [name for name in self._links.links if name != broker]:
                self._links.part(peer)
        self._served_by = broker
