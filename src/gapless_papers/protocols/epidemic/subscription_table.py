"""Subscription forwarding on an unrooted tree (paper, section 2.1).

A pattern is the text of a filter. For each one the table contains the clients of this broker that subscribed to it, and
the neighbours behind which there are subscribers. A pattern is sent to a neighbour exactly if there is a subscriber
elsewhere, so subscriptions for the same pattern cross a link once, and every broker learns every pattern.

Patterns wanted behind a removed link are *held* for a while: events no longer go there, but other neighbours are not
notified, so that the patterns need not be withdrawn and sent again when the new link is up.
"""

from collections.abc import Iterable, Sequence

from gapless.events import Attributes
from gapless.filters import FilterIndex, parse
from gapless_papers.protocols.epidemic.link import Link

__all__ = ["Pattern", "SubscriptionTable"]


class Pattern:
    """All subscribers of one pattern."""

    __slots__ = ("clients", "held", "peers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.clients: dict[str, dict[int, None]] = {}
        """Clients of this broker, with the numbers of their subscriptions."""
        self.peers: dict[str, None] = {}
        """Neighbours with subscribers behind them."""
        self.held: dict[str, None] = {}
        """Former neighbours with subscribers behind them."""

    def is_wanted_beside(self, peer: str) -> bool:
        """Return whether the pattern has a subscriber that is not behind this neighbour."""
        others = len(self.peers) + len(self.held) - (peer in self.peers) - (peer in self.held)
        return others > 0 or bool(self.clients)


class SubscriptionTable:
    """All patterns, and the links over which they are sent to others."""

    def __init__(self, peers: Iterable[str]) -> None:
        self.links = {peer: Link(peer) for peer in peers}
        self._patterns: dict[str, Pattern] = {}
        self._index: FilterIndex[str] = FilterIndex()

    def __len__(self) -> int:
        return len(self._patterns)

    def match(self, attributes: Attributes) -> list[Pattern]:
        """Return the patterns that an event matches."""
        return [self._patterns[text] for text in self._index.match(attributes)]

    def peers(self, pattern: str, but: str = "") -> Sequence[str]:
        """Return the neighbours with subscribers of the pattern, except one."""
        entry = self._patterns.get(pattern)
        return () if entry is None else [peer for peer in entry.peers if peer != but]

    def has_peers(self, pattern: str) -> bool:
        """Return whether any neighbour has subscribers of the pattern."""
        return pattern in self._patterns and bool(self._patterns[pattern].peers)

    def has_clients(self, pattern: str) -> bool:
        """Return whether any client of this broker subscribed to the pattern."""
        return pattern in self._patterns and bool(self._patterns[pattern].clients)

    # ---- clients

    def subscribe(self, client: str, number: int, text: str) -> None:
        """Add a client's subscription."""
        pattern = self._entry(text)
        pattern.clients.setdefault(client, {})[number] = None
        self._settle(pattern)

    def unsubscribe(self, client: str, number: int, text: str) -> None:
        """Remove a client's subscription."""
        pattern = self._patterns[text]
        numbers = pattern.clients[client]
        del numbers[number]
        if not numbers:
            del pattern.clients[client]
        self._settle(pattern)

    # ---- neighbours

    def change(self, peer: str, whole: bool, added: Iterable[str], removed: Iterable[str]) -> None:
        """Apply a neighbour's change of the patterns wanted behind it."""
        if whole:
            kept = set(added)
            removed = [text for text, pattern in self._patterns.items() if peer in pattern.peers and text not in kept]
        for text in added:
            pattern = self._entry(text)
            pattern.peers[peer] = None
            pattern.held.pop(peer, None)
            self._settle(pattern)
        for text in removed:
            if peer in self._patterns[text].peers:
                del self._patterns[text].peers[peer]
                self._settle(self._patterns[text])

    def link(self, peer: str) -> Link:
        """Add a link; the peer must be sent everything."""
        link = self.links[peer] = Link(peer)
        link.restart()
        for pattern in self._patterns.values():
            link.want(pattern.text, pattern.is_wanted_beside(peer))
        return link

    def unlink(self, peer: str) -> None:
        """Remove a link, and hold the patterns wanted behind it."""
        self.links.pop(peer, None)
        for pattern in self._patterns.values():
            if peer in pattern.peers:
                del pattern.peers[peer]
                pattern.held[peer] = None

    def release(self, peer: str) -> None:
        """Stop holding the patterns of a removed link."""
        for pattern in [pattern for pattern in self._patterns.values() if peer in pattern.held]:
            del pattern.held[peer]
            self._settle(pattern)

    # ---- both

    def _entry(self, text: str) -> Pattern:
        pattern = self._patterns.get(text)
        if pattern is None:
            pattern = self._patterns[text] = Pattern(text)
            self._index.add(text, parse(text))
        return pattern

    def _settle(self, pattern: Pattern) -> None:
        """Recompute, after a change, which neighbours get the pattern, and drop it if it is unused."""
        for link in self.links.values():
            link.want(pattern.text, pattern.is_wanted_beside(link.peer))
        if not (pattern.clients or pattern.peers or pattern.held):
            del self._patterns[pattern.text]
            self._index.remove(pattern.text)
