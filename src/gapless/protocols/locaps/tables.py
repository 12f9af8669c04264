"""What one broker knows: its links, who subscribes, who publishes, and how far each publisher's events have come."""

from collections.abc import Iterator
from functools import lru_cache

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex
from gapless.protocols.locaps.messages import Cuts
from gapless.protocols.locaps.starting_cut import StartingCut

__all__ = ["Advertisement", "Link", "OwnSubscription", "Subscription", "Tables", "cover", "overlap"]

ANSWERS_MAX = 65_536
"""Pairs of filters whose relation is remembered: every broker on a subscription's way asks the same."""


@lru_cache(ANSWERS_MAX)
def overlap(one: Filter, other: Filter) -> bool:
    """Whether an event may match both."""
    return one.overlaps(other)


@lru_cache(ANSWERS_MAX)
def cover(one: Filter, other: Filter) -> bool:
    """Whether every event that matches the other matches this one."""
    return one.covers(other)


class Link:
    """The link to a neighbour, and what lies behind it."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.advertisements: dict[str, Advertisement] = {}
        """Those that came over the link."""
        self.sent: dict[str, Subscription] = {}
        """Those that went over the link: exactly what the neighbour has from here."""
        self.unspoken: dict[str, Subscription] = {}
        """Of these, those for which no pivot spoke when they passed: to be looked at again."""

    def publishers(self, subscription: "Subscription") -> dict[str, None]:
        """The publishers behind the link that may match the subscription."""
        wanted = subscription.filter
        return {ad.publisher: None for ad in self.advertisements.values() if overlap(ad.filter, wanted)}

    def needs(self, subscription: "Subscription") -> bool:
        """Whether anyone behind the link may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())


class Subscription:
    """A subscription known here. `origin` is the link it came over, None for a client of this broker."""

    def __init__(self, name: str, pattern: Filter, origin: Link | None) -> None:
        self.name = name
        self.filter = pattern
        self.origin = origin
        self.cuts: Cuts = {}
        """Where it is stable: the number in the marker of each publisher whose own marker has been here."""


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


class Tables:
    """All tables of one broker."""

    def __init__(self, neighbours: tuple[str, ...]) -> None:
        self.links = {peer: Link(peer) for peer in neighbours}
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, Advertisement] = {}
        self.passed: Cuts = {}
        """The last event of each publisher that this broker passed on."""
        self._publishers: dict[str, dict[str, Advertisement]] = {}
        self._index: FilterIndex[str] = FilterIndex()

    # ---- subscriptions ------------------------------------------------------------------------------------

    def enter_subscription(self, subscription: Subscription) -> None:
        """Make a subscription known."""
        assert subscription.name not in self.subscriptions, f"{subscription.name} is known already"
        self.subscriptions[subscription.name] = subscription
        self._index.add(subscription.name, subscription.filter)

    def drop_subscription(self, name: str) -> Subscription:
        """Forget a subscription."""
        self._index.remove(name)
        return self.subscriptions.pop(name)

    def match(self, attributes: Attributes) -> Iterator[Subscription]:
        """The subscriptions that the event matches, in the order in which they became known."""
        return map(self.subscriptions.__getitem__, self._index.match(attributes))

    # ---- advertisements -----------------------------------------------------------------------------------

    def enter_advertisement(self, advertisement: Advertisement) -> None:
        """Make an advertisement known."""
        self.advertisements[advertisement.name] = advertisement
        self._publishers.setdefault(advertisement.publisher, {})[advertisement.name] = advertisement
        if advertisement.origin is not None:
            advertisement.origin.advertisements[advertisement.name] = advertisement

    def drop_advertisement(self, name: str) -> Advertisement:
        """Forget an advertisement, and with the last one of a publisher elsewhere, how far it had come."""
        advertisement = self.advertisements.pop(name)
        publisher, origin = advertisement.publisher, advertisement.origin
        del self._publishers[publisher][name]
        if origin is not None:
            del origin.advertisements[name]
        if not self._publishers[publisher]:
            del self._publishers[publisher]
            if origin is not None:
                self.passed.pop(publisher, None)
        return advertisement

    def advertised_by(self, publisher: str) -> Iterator[Advertisement]:
        """What the publisher may publish."""
        return iter(self._publishers.get(publisher, {}).values())

    def publishes_for(self, publisher: str, subscription: Subscription) -> bool:
        """Whether the publisher may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertised_by(publisher))

    def is_served(self, subscription: Subscription) -> bool:
        """Whether any publisher known here may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())
