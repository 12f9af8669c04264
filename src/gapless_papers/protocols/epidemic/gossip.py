"""The interface between a broker and its recovery method: routing of gossip, and message counts.

Gossip about a pattern takes the paths of events that match it, but each hop forwards it only to some neighbours, drawn
at random. Requests and recovered events go directly to their receivers.
"""

from collections.abc import Callable
from typing import Any

from gapless_papers.protocols.epidemic.cache import EventCache
from gapless_papers.protocols.epidemic.dice import Dice
from gapless_papers.protocols.epidemic.messages import PushDigest, Request, Retransmission, Stamped, SubscriberPull
from gapless_papers.protocols.epidemic.options import EpidemicOptions
from gapless_papers.protocols.epidemic.received import Received
from gapless_papers.protocols.epidemic.subscription_table import SubscriptionTable

__all__ = ["BrokerView"]


class BrokerView:
    """A recovery's view of its broker."""

    def __init__(
        self, name: str, options: EpidemicOptions, table: SubscriptionTable, cache: EventCache, received: Received,
        dice: Dice, send: Callable[[str, Any], None],
    ) -> None:  # fmt: skip
        self.name = name
        self.options = options
        self.table = table
        self.cache = cache
        self.received = received
        self.dice = dice
        self.gossip_sent = 0
        self.requests_sent = 0
        self.retransmissions_sent = 0
        self._send = send

    def gossip(self, pattern: str, message: PushDigest | SubscriberPull, but: str = "") -> None:
        """Send gossip towards some of the pattern's subscribers, but not back to `but`."""
        for peer in self.dice.sample(self.table.peers(pattern, but), self.options.fanout):
            self.send_gossip(peer, message)

    def send_gossip(self, peer: str, message: Any) -> None:
        """Send one gossip message."""
        self.gossip_sent += 1
        self._send(peer, message)

    def request(self, peer: str, message: Request) -> None:
        """Send a request for missing events."""
        self.requests_sent += 1
        self._send(peer, message)

    def retransmit(self, peer: str, stamped: Stamped) -> None:
        """Send an event to a broker that lacks it."""
        self.retransmissions_sent += 1
        self._send(peer, Retransmission(stamped))
