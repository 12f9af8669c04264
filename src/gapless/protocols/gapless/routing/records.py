"""What the routing table knows: links, subscriptions and advertisements."""

from gapless.filters import Filter
from gapless.filters.cover_index import CoverIndex
from gapless.protocols.gapless.messages import Cuts

__all__ = ["Advertisement", "Link", "Subscription"]


class Link:
    """One installation of a link of the contracted tree: `via` is the first broker of the full tree on the way."""

    def __init__(self, peer: str, via: str, tag: int) -> None:
        self.peer = peer
        self.via = via
        self.tag = tag
        self.sent: dict[str, Subscription] = {}
        """Subscriptions sent over the link."""
        self.covers: CoverIndex[str] = CoverIndex()
        """Their filters, in the order in which they were sent."""
        self.represented: dict[str, str] = {}
        """Subscriptions not sent, each with the one that represents it."""
        self.represents: dict[str, dict[str, None]] = {}
        self.ghosts: dict[str, list[dict[str, None]]] = {}
        """Subscriptions that ended, for each time that the peer has not answered yet, with those they represented.

        Until it says that it knows no more of the first of these, its markers are of that. The smallest story of one
        that is sent again: a subscription that no backup knows dies with its broker, is taken back everywhere, and
        comes again under its name; a marker that it had asked for before is met on the way."""
        self.advertisements: dict[str, Advertisement] = {}
        """Those that came over the link."""
        self.removed: dict[str, None] = {}
        """Subscriptions that were taken off the link; the latest of them."""


class Subscription:
    """A subscription known here. `origin` is the link it came over, or None for a client of this broker."""

    def __init__(self, name: str, pattern: Filter, origin: Link | None, client: str = "") -> None:
        self.name = name
        self.filter = pattern
        self.origin = origin
        self.client = client
        self.cuts: Cuts = {}
        self.former: Cuts = {}
        """Cuts of publishers that have left, for as long as their events may still be under way."""
        self.awaited: dict[str, None] | None = None
        """Of a client of this broker: the publishers whose cuts are on their way, and maybe some that have left or
        whose cuts have come. None while the broker does not know all advertisements."""
        self.entered_at = 0
        """What this broker had processed before this place of its log came from elsewhere before the subscription did:
        if it came from the same side, the subscription does not get it. 0 if nothing can be said."""

    def still_awaited(self) -> list[str] | None:
        """The publishers whose cuts are on their way; None if they are not known."""
        return None if self.awaited is None else [p for p in self.awaited if p not in self.cuts]


class Advertisement:
    """An advertisement known here; `waiting` are the peers that have not answered it yet."""

    def __init__(self, name: str, publisher: str, pattern: Filter, origin: Link | None, first: int) -> None:
        self.name = name
        self.publisher = publisher
        self.filter = pattern
        self.origin = origin
        self.first = first
        """The first number that relies on it."""
        self.waiting: dict[str, None] = {}
        self.number = 0
        """How it is counted here."""
        self.told_number = 0
        """How whoever told it counts it; 0 if it is known from a hand-over."""
        self.is_deferred = False
        """Its answer waits for a hand-over."""
