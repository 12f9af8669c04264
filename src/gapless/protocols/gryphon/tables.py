"""What one broker knows: its links, who subscribes, who publishes."""

from collections.abc import Iterator
from functools import lru_cache

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex
from gapless.protocols.gryphon.messages import Cuts

__all__ = ["Advertisement", "Link", "OwnSubscription", "Subscription", "Tables", "overlap"]

ANSWERS_MAX = 65_536
"""Pairs of filters whose relation is remembered: every broker on a subscription's way asks the same."""


@lru_cache(ANSWERS_MAX)
def overlap(one: Filter, other: Filter) -> bool:
    """Whether an event may match both."""
    return one.overlaps(other)


class Link:
    """The link to a neighbour, and what lies behind it."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.advertisements: dict[str, Advertisement] = {}
        """Those that came over the link."""
        self.sent: dict[str, Subscription] = {}
        """Those that went over the link: exactly what the neighbour has from here."""

    def needs(self, subscription: "Subscription") -> bool:
        """Whether anyone behind the link may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())


class Subscription:
    """A subscription known here. `origin` is the link it came over, None for a client of this broker."""

    def __init__(self, name: str, pattern: Filter, origin: Link | None) -> None:
        self.name = name
        self.filter = pattern
        self.origin = origin


class OwnSubscription(Subscription):
    """A subscription of a client of this broker, with its starting cut: one number for each publisher, fixed once."""

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


class Tables:
    """All tables of one broker."""

    def __init__(self, neighbours: tuple[str, ...]) -> None:
        self.links = {peer: Link(peer) for peer in neighbours}
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, Advertisement] = {}
        self.last: Cuts = {}
        """The number of the last event of each publisher that is attached here."""
        self._publishers: dict[str, dict[str, Advertisement]] = {}
        self._index: FilterIndex[str] = FilterIndex()

    # ---- subscriptions ------------------------------------------------------------------------------------

    def enter_subscription(self, subscription: Subscription) -> None:
        """Make a subscription known."""
        self.subscriptions[subscription.name] = subscription
        self._index.add(subscription.name, subscription.filter)

    def drop_subscription(self, name: str) -> None:
        """Forget a subscription."""
        self._index.remove(name)
        del self.subscriptions[name]

    def match(self, attributes: Attributes) -> Iterator[Subscription]:
        """The subscriptions that the event matches, in the order in which they became known."""
        return map(self.subscriptions.__getitem__, self._index.match(attributes))

    def own_subscriptions(self) -> Iterator[OwnSubscription]:
        """Those of the clients of this broker."""
        return (entry for entry in self.subscriptions.values() if isinstance(entry, OwnSubscription))

    # ---- advertisements -----------------------------------------------------------------------------------

    def enter_advertisement(self, advertisement: Advertisement) -> None:
        """Make an advertisement known."""
        self.advertisements[advertisement.name] = advertisement
        self._publishers.setdefault(advertisement.publisher, {})[advertisement.name] = advertisement
        if advertisement.origin is not None:
            advertisement.origin.advertisements[advertisement.name] = advertisement

    def drop_advertisement(self, advertisement: Advertisement) -> None:
        """Forget an advertisement."""
        del self.advertisements[advertisement.name]
        of_publisher = self._publishers[advertisement.publisher]
        del of_publisher[advertisement.name]
        if not of_publisher:
            del self._publishers[advertisement.publisher]
        if advertisement.origin is not None:
            del advertisement.origin.advertisements[advertisement.name]

    def advertised_by(self, publisher: str) -> Iterator[Advertisement]:
        """What the publisher may publish."""
        return iter(self._publishers.get(publisher, {}).values())

    def is_served(self, subscription: Subscription) -> bool:
        """Whether any publisher known here may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())
