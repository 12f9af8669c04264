"""One broker's subscriptions and advertisements, for protocols that route along a tree."""

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex
from gapless.protocols.parts.filter_pairs import overlap

__all__ = ["Tables"]


class Filtered(Protocol):
    """An object with a name and a filter."""

    @property
    def name(self) -> str:
        """The name, unique in the network."""
        ...

    @property
    def filter(self) -> Filter:
        """The filter."""
        ...


class Offered(Filtered, Protocol):
    """An advertisement."""

    @property
    def publisher(self) -> str:
        """The publisher."""
        ...

    @property
    def origin(self) -> Any:
        """The link that it arrived over; None for a client of this broker."""
        ...


S = TypeVar("S", bound=Filtered)
A = TypeVar("A", bound=Offered)


class Tables(Generic[S, A]):
    """The known subscriptions and advertisements, oldest first."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, S] = {}
        self.advertisements: dict[str, A] = {}
        self._publishers: dict[str, dict[str, A]] = {}
        self._index: FilterIndex[str] = FilterIndex()

    # ---- subscriptions ------------------------------------------------------------------------------------

    def enter_subscription(self, subscription: S) -> None:
        """Add a subscription."""
        self.subscriptions[subscription.name] = subscription
        self._index.add(subscription.name, subscription.filter)

    def drop_subscription(self, name: str) -> S:
        """Remove a subscription."""
        self._index.remove(name)
        return self.subscriptions.pop(name)

    def match(self, attributes: Attributes) -> Iterator[S]:
        """Return the subscriptions that the event matches, oldest first."""
        return map(self.subscriptions.__getitem__, self._index.match(attributes))

    # ---- advertisements -----------------------------------------------------------------------------------

    def enter_advertisement(self, advertisement: A) -> None:
        """Add an advertisement."""
        self.advertisements[advertisement.name] = advertisement
        self._publishers.setdefault(advertisement.publisher, {})[advertisement.name] = advertisement
        if advertisement.origin is not None:
            advertisement.origin.advertisements[advertisement.name] = advertisement

    def drop_advertisement(self, name: str) -> A:
        """Remove an advertisement."""
        advertisement = self.advertisements.pop(name)
        of_publisher = self._publishers[advertisement.publisher]
        del of_publisher[name]
        if not of_publisher:
            del self._publishers[advertisement.publisher]
        if advertisement.origin is not None:
            del advertisement.origin.advertisements[name]
        return advertisement

    def advertised_by(self, publisher: str) -> Iterator[A]:
        """Yield the publisher's advertisements."""
        return iter(self._publishers.get(publisher, {}).values())

    def is_served(self, subscription: S) -> bool:
        """Return whether any publisher known here may match the subscription."""
        return any(overlap(ad.filter, subscription.filter) for ad in self.advertisements.values())
