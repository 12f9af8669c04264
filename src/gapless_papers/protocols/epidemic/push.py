"""Push with positive digests (paper, section 4.1, Figure 2).

In each round a broker draws a pattern and sends some of its subscribers the names of the matching events in its cache.
A receiver that lacks some requests them, and gets them directly from the initiator's cache. The pattern is drawn from
the whole table, not only from the patterns of this broker's clients, which informs more brokers. A pattern without
cached events, or without another subscriber, is not drawn.
"""

from typing import assert_never

from gapless_papers.protocols.epidemic.gossip import BrokerView
from gapless_papers.protocols.epidemic.messages import PushDigest, Pushing, Request

__all__ = ["Push"]


class Push:
    """The gossip of one broker."""

    def __init__(self, around: BrokerView) -> None:
        self._around = around

    def receive(self, peer: str, message: Pushing) -> None:
        """Process gossip of another broker, or its answer to ours."""
        match message:
            case PushDigest():
                self._on_digest(peer, message)
            case Request():
                self._on_request(peer, message)
            case _:
                assert_never(message)

    def start_round(self) -> None:
        """Send the digest of one pattern."""
        around = self._around
        patterns = [pattern for pattern in around.cache.patterns() if around.table.has_peers(pattern)]
        if patterns:
            pattern = around.dice.choice(patterns)
            around.gossip(pattern, PushDigest(around.name, pattern, around.cache.digest(pattern)))

    def _on_digest(self, peer: str, digest: PushDigest) -> None:
        around = self._around
        if around.table.has_clients(digest.pattern):
            lacking = around.received.lacking(digest.events)
            if lacking:
                around.request(digest.initiator, Request(lacking))
        if around.dice.happens(around.options.forward_probability):
            around.gossip(digest.pattern, digest, but=peer)

    def _on_request(self, peer: str, request: Request) -> None:
        for event in request.events:
            stamped = self._around.cache.find(event)
            if stamped is not None:
                self._around.retransmit(peer, stamped)
