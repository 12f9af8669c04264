"""Who subscribes and who publishes, as one broker knows it: what protocols that route along a tree look up."""

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex
from gapless.protocols.parts.filter_pairs import overlap

__all__ = ["Tables"]


class Filtered(Protocol):
    """What has a name and a filter."""

    @property
    def name(self) -> str:
        """Unique in the network."""
        ...

    @property
    def filter(self) -> Filter:
        """What it is about."""
        ...


class Offered(Filtered, Protocol):
    """An advertisement."""

    @property
    def publisher(self) -> str:
        """Whose it is."""
        ...

    @property
    def origin(self) -> Any:
        """The link that it came over, with the advertisements that did; None for a client of this broker."""
        ...


S = TypeVar("S", bound=Filtered)
A = TypeVar("A", bound=Offered)


class Tables(Generic[S, A]):
    """The subscriptions and the advertisements that are known here, in the order in which they became so."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, S] = {}
        self.advertisements: dict[str, A] = {}
        self._publishers: dict[str, dict[str, A]] = {}
        self._index: FilterIndex[str] = FilterIndex()

    # ---- subscriptions ------------------------------------------------------------------------------------

    def enter_subscription(self, subscription: S) -> None:
        """Make a subscription known."""
        self.subscriptions[subscription.name] = subscription
        self._index.add(subscription.name, subscription.filter)

    def drop_subscription(self, name: str) -> S:
        """Forget a subscription."""
        self._index.remove(name)
        return self.subscriptions.pop(name)

    def match(self, attributes: Attributes) -> Iterator[S]:
        """The subscriptions that the event matches, in the order in which they became known."""
        return map(self.subscriptions.__getitem__, self._index.match(attributes))

    # ---- advertisements -----------------------------------------------------------------------------------

    def enter_advertisement(self, advertisement: A) -> None:
        """Make an advertisement known."""
        self.advertisements[advertisement.name] = advertisement
        self._publishers.setdefault(advertisement.publisher, {})[advertisement.name] = advertisement
        if advertisement.origin is not None:
            advertisement.origin.advertisements[advertisement.name] = advertisement

    def drop_advertisement(self, name: str) -> A:
        """Forget an advertisement."""
        advertisement = self.advertisements.pop(name)
        of_publisher = self._publishers[advertisement.publisher]
        del of_publisher[name]
        if not of_publisher:
            del self._publishers[advertisement.publisher]
        if advertisement.origin is not None:
            del advertisement.origin.advertisements[name]
        return advertisement

    def advertised_by(self, publisher: str) -> Iterator[A]:
        """What the publisher may publish."""
        return iter(self._publishers.get(publisher, {}).values())

    def is_served(self, subscription: S) -> bool:
        """Whether any publisher known here may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())
