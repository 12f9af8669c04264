"""The state of one broker: its links, subscriptions, advertisements, and the last event of each publisher."""

from gapless.filters import Filter
from gapless.protocols.parts.filter_pairs import overlap
from gapless_papers.protocols.locaps.messages import Cuts
from gapless_papers.protocols.locaps.starting_cut import StartingCut
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
        self.unanswered: dict[str, Subscription] = {}
        """Subscriptions that were sent without a pivot, to be checked again."""

    def publishers(self, subscription: "Subscription") -> dict[str, None]:
        """Return the publishers behind the link that may match the subscription."""
        wanted = subscription.filter
        return {ad.publisher: None for ad in self.advertisements.values() if overlap(ad.filter, wanted)}

    def needs(self, subscription: "Subscription") -> bool:
        """Return whether a publisher behind the link may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())


class Subscription:
    """A subscription known here. `origin` is the link that it arrived over, None for a client of this broker."""

    def __init__(self, name: str, pattern: Filter, origin: Link | None) -> None:
        self.name = name
        self.filter = pattern
        self.origin = origin
        self.cuts: Cuts = {}
        """Where it is stable: the number in the marker of each publisher whose own marker has passed here."""


class OwnSubscription(Subscription):
    """A subscription of a client of this broker."""

    def __init__(self, name: str, pattern: Filter, client: str, number: int, start: StartingCut) -> None:
        super().__init__(name, pattern, None)
        self.client = client
        self.number = number
        self.start = start
        self.is_active = False


class Advertisement:
    """An advertisement known here; `waiting` are the neighbours that have not answered it yet."""

    def __init__(self, name: str, publisher: str, pattern: Filter, origin: Link | None) -> None:
        self.name = name
        self.publisher = publisher
        self.filter = pattern
        self.origin = origin
        self.waiting: dict[str, None] = {}


class Tables(parts.Tables[Subscription, Advertisement]):
    """All tables of one broker."""

    def __init__(self, neighbours: tuple[str, ...]) -> None:
        super().__init__()
        self.links = {peer: Link(peer) for peer in neighbours}
        self.passed: Cuts = {}
        """The last event of each publisher that this broker forwarded."""

    def enter_subscription(self, subscription: Subscription) -> None:
        """Add a subscription."""
        assert subscription.name not in self.subscriptions, f"{subscription.name} is already known"
        super().enter_subscription(subscription)

    def drop_advertisement(self, name: str) -> Advertisement:
        """Remove an advertisement, and with the last one of a publisher elsewhere, the number of its last event."""
        advertisement = super().drop_advertisement(name)
        is_last = next(self.advertised_by(advertisement.publisher), None) is None
        if is_last and advertisement.origin is not None:
            self.passed.pop(advertisement.publisher, None)
        return advertisement

    def publishes_for(self, publisher: str, subscription: Subscription) -> bool:
        """Return whether the publisher may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertised_by(publisher))
