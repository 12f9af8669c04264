"""What all recoveries share: what a broker knows, how gossip finds its way, and how much of it there was.

Gossip about a pattern takes the ways of events that match it, but at each hop only some of them, drawn at random.
Requests and events that were missing go straight to whom they concern.
"""

from collections.abc import Callable
from typing import Any

from gapless_papers.protocols.epidemic.cache import EventCache
from gapless_papers.protocols.epidemic.dice import Dice
from gapless_papers.protocols.epidemic.messages import PushDigest, Request, Retransmission, Stamped, SubscriberPull
from gapless_papers.protocols.epidemic.options import EpidemicOptions
from gapless_papers.protocols.epidemic.received import Received
from gapless_papers.protocols.epidemic.subscription_table import SubscriptionTable

__all__ = ["Surroundings"]


class Surroundings:
    """What a recovery sees of its broker."""

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
        """Send towards some of those who subscribed to the pattern, but not back."""
        for peer in self.dice.sample(self.table.peers(pattern, but), self.options.fanout):
            self.send_gossip(peer, message)

    def send_gossip(self, peer: str, message: Any) -> None:
        """Send one gossip message."""
        self.gossip_sent += 1
        self._send(peer, message)

    def request(self, peer: str, message: Request) -> None:
        """Ask for what is missing."""
        self.requests_sent += 1
        self._send(peer, message)

    def retransmit(self, peer: str, stamped: Stamped) -> None:
        """Send an event to one that lacks it."""
        self.retransmissions_sent += 1
        self._send(peer, Retransmission(stamped))
