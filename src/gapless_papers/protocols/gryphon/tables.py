"""The state of one broker: its links, subscriptions, and advertisements."""

from collections.abc import Iterator

from gapless.filters import Filter
from gapless.protocols.parts.filter_pairs import overlap
from gapless_papers.protocols.gryphon.messages import Cuts
from gapless_papers.protocols.parts import tables as parts

__all__ = ["Advertisement", "Link", "OwnSubscription", "Subscription", "Tables"]


class Link:
    """The link to a neighbour, and everything behind it."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.advertisements: dict[str, Advertisement] = {}
        """The advertisements received over the link."""
        self.sent: dict[str, Subscription] = {}
        """The subscriptions sent over the link: exactly the neighbour's state from here."""

    def needs(self, subscription: "Subscription") -> bool:
        """Return whether a publisher behind the link may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())


class Subscription:
    """A subscription known here. `origin` is the link that it arrived over, None for a client of this broker."""

    def __init__(self, name: str, pattern: Filter, origin: Link | None) -> None:
        self.name = name
        self.filter = pattern
        self.origin = origin


class OwnSubscription(Subscription):
    """A subscription of a client of this broker, with its starting cut: one number for each publisher, set once."""

    def __init__(self, name: str, pattern: Filter, client: str, number: int) -> None:
        super().__init__(name, pattern, None)
        self.client = client
        self.number = number
        self.starts: Cuts = {}
        self.is_active = False


class Advertisement:
    """An advertisement known here. Over the links in `unanswered` its events flood."""

    def __init__(self, name: str, publisher: str, pattern: Filter, since: int, origin: Link | None) -> None:
        self.name = name
        self.publisher = publisher
        self.filter = pattern
        self.since = since
        self.origin = origin
        self.unanswered: dict[str, None] = {}


class Tables(parts.Tables[Subscription, Advertisement]):
    """All tables of one broker."""

    def __init__(self, neighbours: tuple[str, ...]) -> None:
        super().__init__()
        self.links = {peer: Link(peer) for peer in neighbours}
        self.last: Cuts = {}
        """The number of the last event of each publisher that is attached here."""

    def own_subscriptions(self) -> Iterator[OwnSubscription]:
        """Return the subscriptions of this broker's clients."""
        return (entry for entry in self.subscriptions.values() if isinstance(entry, OwnSubscription))
