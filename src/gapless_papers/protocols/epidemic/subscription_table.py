"""Who wants what: subscription forwarding on an unrooted tree (paper, section 2.1).

A pattern is the text of a filter. For each one the table says which clients of this broker subscribed to it and behind
which neighbours someone did. A neighbour is told of a pattern exactly if somebody else wants it, so subscriptions for
the same pattern go over a link once and every broker comes to know every pattern.

What was wanted behind a link that went is *held* for a while: no event goes there any more, but other neighbours are
not told, so that they need not unlearn what they learn again over the new link.
"""

from collections.abc import Iterable, Sequence

from gapless.events import Attributes
from gapless.filters import FilterIndex, parse
from gapless_papers.protocols.epidemic.link import Link

__all__ = ["Pattern", "SubscriptionTable"]


class Pattern:
    """Everyone who wants one pattern."""

    __slots__ = ("clients", "held", "peers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.clients: dict[str, dict[int, None]] = {}
        """Clients of this broker, with the numbers of their subscriptions."""
        self.peers: dict[str, None] = {}
        """Neighbours behind which it is wanted."""
        self.held: dict[str, None] = {}
        """Former neighbours behind which it was."""

    def is_wanted_beside(self, peer: str) -> bool:
        """Does anyone but this neighbour want it?"""
        others = len(self.peers) + len(self.held) - (peer in self.peers) - (peer in self.held)
        return others > 0 or bool(self.clients)


class SubscriptionTable:
    """All patterns, and the links over which others are told of them."""

    def __init__(self, peers: Iterable[str]) -> None:
        self.links = {peer: Link(peer) for peer in peers}
        self._patterns: dict[str, Pattern] = {}
        self._index: FilterIndex[str] = FilterIndex()

    def __len__(self) -> int:
        return len(self._patterns)

    def match(self, attributes: Attributes) -> list[Pattern]:
        """The patterns that an event matches."""
        return [self._patterns[text] for text in self._index.match(attributes)]

    def peers(self, pattern: str, but: str = "") -> Sequence[str]:
        """The neighbours behind which the pattern is wanted, but one."""
        entry = self._patterns.get(pattern)
        return () if entry is None else [peer for peer in entry.peers if peer != but]

    def has_peers(self, pattern: str) -> bool:
        """Is it wanted behind a neighbour?"""
        return pattern in self._patterns and bool(self._patterns[pattern].peers)

    def has_clients(self, pattern: str) -> bool:
        """Did a client of this broker subscribe to it?"""
        return pattern in self._patterns and bool(self._patterns[pattern].clients)

    # ---- clients

    def subscribe(self, client: str, number: int, text: str) -> None:
        """A client wants it."""
        pattern = self._entry(text)
        pattern.clients.setdefault(client, {})[number] = None
        self._settle(pattern)

    def unsubscribe(self, client: str, number: int, text: str) -> None:
        """A client ends a subscription."""
        pattern = self._patterns[text]
        numbers = pattern.clients[client]
        del numbers[number]
        if not numbers:
            del pattern.clients[client]
        self._settle(pattern)

    # ---- neighbours

    def change(self, peer: str, whole: bool, added: Iterable[str], removed: Iterable[str]) -> None:
        """A neighbour says what is wanted behind it."""
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
        """A link comes: its other end must be told everything."""
        link = self.links[peer] = Link(peer)
        link.restart()
        for pattern in self._patterns.values():
            link.want(pattern.text, pattern.is_wanted_beside(peer))
        return link

    def unlink(self, peer: str) -> None:
        """A link goes: what was wanted behind it is held."""
        self.links.pop(peer, None)
        for pattern in self._patterns.values():
            if peer in pattern.peers:
                del pattern.peers[peer]
                pattern.held[peer] = None

    def release(self, peer: str) -> None:
        """Hold nothing any longer for a link that went."""
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
        """After a change: decide anew whom to tell, and drop what nobody wants."""
        for link in self.links.values():
            link.want(pattern.text, pattern.is_wanted_beside(link.peer))
        if not (pattern.clients or pattern.peers or pattern.held):
            del self._patterns[pattern.text]
            self._index.remove(pattern.text)
