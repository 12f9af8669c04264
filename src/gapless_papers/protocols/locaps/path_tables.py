"""The state of one broker of a graph: the subscriptions whose paths include it, and all advertisements."""

from collections.abc import Iterator

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex
from gapless.protocols.parts.filter_pairs import overlap
from gapless_papers.protocols.locaps.messages import Cuts
from gapless_papers.protocols.locaps.path_start import PathStart

__all__ = ["OwnPathSubscription", "PathAdvertisement", "PathSubscription", "PathTables"]


class PathSubscription:
    """A subscription whose path includes this broker."""

    def __init__(self, name: str, pattern: Filter, home: str) -> None:
        self.name = name
        self.filter = pattern
        self.home = home
        self.cuts: Cuts = {}
        """Where it is stable: the number in the marker of each publisher whose own marker has passed here."""
        self.is_ending = False
        self.carried: dict[str, None] = {}
        """The publishers whose events this broker carries to the subscription, as one of its partial pivots."""


class OwnPathSubscription(PathSubscription):
    """A subscription of a client of this broker."""

    def __init__(self, name: str, pattern: Filter, home: str, client: str, number: int, start: PathStart) -> None:
        super().__init__(name, pattern, home)
        self.client = client
        self.number = number
        self.start = start
        self.is_active = False
        self.sent: dict[str, None] = {}
        """The publishers' brokers to which the subscription was sent."""


class PathAdvertisement:
    """An advertisement, and the broker of its publisher; `waiting` are the brokers that have not answered it."""

    def __init__(self, name: str, publisher: str, pattern: Filter, broker: str, epoch: int) -> None:
        self.name = name
        self.publisher = publisher
        self.filter = pattern
        self.broker = broker
        self.epoch = epoch
        self.waiting: dict[str, None] = {}


class PathTables:
    """All tables of one broker."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, PathSubscription] = {}
        self.advertisements: dict[str, PathAdvertisement] = {}
        self.orphaned: dict[str, PathAdvertisement] = {}
        """Advertisements of publishers whose broker has failed and that have not moved to another yet."""
        self.passed: Cuts = {}
        """The last event of each publisher that was processed here."""
        self._index: FilterIndex[str] = FilterIndex()

    def enter_subscription(self, subscription: PathSubscription) -> None:
        """Add a subscription."""
        self.subscriptions[subscription.name] = subscription
        self._index.add(subscription.name, subscription.filter)

    def drop_subscription(self, name: str) -> PathSubscription | None:
        """Remove the subscription and return it; None if it is unknown."""
        found = self.subscriptions.pop(name, None)
        if found is not None:
            self._index.remove(name)
        return found

    def match(self, attributes: Attributes) -> Iterator[PathSubscription]:
        """Return the subscriptions that the event matches, oldest first."""
        return map(self.subscriptions.__getitem__, self._index.match(attributes))

    def own(self) -> Iterator[OwnPathSubscription]:
        """Return the subscriptions of this broker's clients."""
        return (sub for sub in self.subscriptions.values() if isinstance(sub, OwnPathSubscription))

    def wanted(self, subscription: PathSubscription) -> dict[str, str]:
        """Return the publishers that may match the subscription, with their brokers."""
        pattern = subscription.filter
        ads = self.advertisements.values()
        return {ad.publisher: ad.broker for ad in ads if overlap(ad.filter, pattern)}

    def may_be_missed(self, subscription: PathSubscription) -> bool:
        """Return whether a publisher whose broker is unknown may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.orphaned.values())

    def advertised_by(self, publisher: str) -> list[PathAdvertisement]:
        """Return the publisher's advertisements."""
        return [ad for ad in self.advertisements.values() if ad.publisher == publisher]

    def publishes_for(self, publisher: str, subscription: PathSubscription) -> bool:
        """Return whether the publisher may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertised_by(publisher))
