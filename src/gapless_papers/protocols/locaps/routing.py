"""How advertisements, subscriptions and markers travel along the tree (the paper's Algorithm 1, and the hooks of 2).

**Advertisements** are flooded. A broker answers one (`AdvertisementStable`) when all its other neighbours have, and
before that sends the publisher every matching subscription. So when the publisher's broker has all answers it also has
every subscription that the flood met, and any later one follows the advertisement's own path.

**Subscriptions** go to every publisher that may match, covered or not. `Link.sent` is exactly the neighbour's state
from here, because every change to it is a message on the same FIFO link.

**Markers** start where a subscription meets a publisher: from the next number on that leaves the publisher's broker,
every event finds the subscription at every broker on its path. They return along the subscription's path only. Each
broker that a marker passes notes that the subscription is stable for the publisher.
"""

from collections.abc import Callable, Iterable
from typing import Any

from gapless.filters import parse
from gapless.protocols.parts.filter_pairs import overlap
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    Marker,
    PartialMarker,
    RemoveAdvertisement,
    RemoveSubscription,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.pivots import Pivots
from gapless_papers.protocols.locaps.tables import Advertisement, Link, OwnSubscription, Subscription, Tables

__all__ = ["Routing"]


class Routing:
    """The rules that propagate advertisements, subscriptions and markers."""

    def __init__(
        self,
        name: str,
        f: int,
        options: LocapsOptions,
        tables: Tables,
        send: Callable[[str, Any], None],
        answered: Callable[[OwnSubscription, Marker | PartialMarker], None],
        stable: Callable[[Advertisement], None],
    ) -> None:
        self._tables = tables
        self._send = send
        self._answered = answered
        self._stable = stable
        self._pivots = Pivots(name, f, options, tables, lambda link, ask: send(link.peer, ask), self._answer)

    # ---- subscriptions ------------------------------------------------------------------------------------

    def add_subscription(self, subscription: Subscription, pivot: str = "", left: int = 0) -> None:
        """Send a new subscription the markers of publishers attached here, and forward it towards the others."""
        self._tables.enter_subscription(subscription)
        self._answer_for(self._tables.advertisements.values(), subscription)
        for link in self._tables.links.values():
            if link is not subscription.origin and link.needs(subscription):
                self._pass_on(link, subscription, *self._pivots.take_part(link, subscription, pivot, left))

    def remove_subscription(self, name: str) -> None:
        """Remove a subscription."""
        subscription = self._tables.drop_subscription(name)
        for link in self._tables.links.values():
            if name in link.sent:
                self._withdraw(link, subscription)

    def receive_marker(self, link: Link, marker: Marker) -> None:
        """Process a publisher's own marker, which makes the subscription stable here."""
        subscription = link.sent.get(marker.subscription)
        if subscription is not None:
            subscription.cuts.update(marker.cuts)
            self._answer(subscription, marker)
            self._pivots.look_again(link, subscription)

    def receive_partial(self, link: Link, marker: PartialMarker) -> None:
        """Process a partial marker on its way to the subscriber, which shows that the subscription has a pivot."""
        subscription = link.sent.get(marker.subscription)
        if subscription is not None:
            link.unanswered.pop(subscription.name, None)
            self._answer(subscription, marker)

    def join_pivot(self, name: str, pivot: str, left: int) -> None:
        """Send the partial marker that a pivot asks for."""
        subscription = self._tables.subscriptions.get(name)
        if subscription is not None:
            self._pivots.join(subscription, pivot, left)

    # ---- advertisements -----------------------------------------------------------------------------------

    def add_advertisement(self, name: str, publisher: str, text: str, origin: Link | None) -> None:
        """Flood a new advertisement, send matching subscriptions towards its publisher, and answer it."""
        advertisement = Advertisement(name, publisher, parse(text), origin)
        self._tables.enter_advertisement(advertisement)
        for link in self._tables.links.values():
            if link is not origin:
                advertisement.waiting[link.peer] = None
                self._send(link.peer, AddAdvertisement(name, publisher, text))
        self._send_matching(advertisement)
        self._conclude(advertisement)

    def receive_stable(self, link: Link, name: str) -> None:
        """Process a neighbour's answer to the advertisement."""
        advertisement = self._tables.advertisements.get(name)
        if advertisement is not None:
            advertisement.waiting.pop(link.peer, None)
            self._conclude(advertisement)

    def remove_advertisement(self, name: str) -> str:
        """Remove a withdrawn advertisement; return its publisher."""
        advertisement = self._tables.drop_advertisement(name)
        publisher, origin = advertisement.publisher, advertisement.origin
        for link in self._tables.links.values():
            if link is not origin:
                self._send(link.peer, RemoveAdvertisement(name))
        for subscription in self._tables.subscriptions.values():
            if publisher in subscription.cuts and not self._tables.publishes_for(publisher, subscription):
                del subscription.cuts[publisher]
        if origin is not None:
            for subscription in [sent for sent in origin.sent.values() if not origin.needs(sent)]:
                self._withdraw(origin, subscription)
        return publisher

    # ---- internals -------------------------------------------------------------------------------------------

    def _pass_on(self, link: Link, subscription: Subscription, pivot: str = "", left: int = 0) -> None:
        link.sent[subscription.name] = subscription
        self._send(link.peer, AddSubscription(subscription.name, subscription.filter.text, pivot, left))

    def _withdraw(self, link: Link, subscription: Subscription) -> None:
        del link.sent[subscription.name]
        link.unanswered.pop(subscription.name, None)
        self._send(link.peer, RemoveSubscription(subscription.name))

    def _answer(self, subscription: Subscription, marker: Marker | PartialMarker) -> None:
        """Send a marker towards the subscriber."""
        if subscription.origin is not None:
            self._send(subscription.origin.peer, marker)
        else:
            assert isinstance(subscription, OwnSubscription)
            self._answered(subscription, marker)

    def _answer_for(self, advertisements: Iterable[Advertisement], subscription: Subscription) -> None:
        """Send a marker with the next event number of each advertised publisher that is attached here."""
        cuts = {
            ad.publisher: self._tables.passed.get(ad.publisher, 0) + 1
            for ad in advertisements
            if ad.origin is None and ad.publisher not in subscription.cuts and overlap(ad.filter, subscription.filter)
        }
        if cuts:
            subscription.cuts.update(cuts)
            self._answer(subscription, Marker(subscription.name, cuts))

    def _send_matching(self, advertisement: Advertisement) -> None:
        """Send the publisher all matching subscriptions; if it is attached here, answer them instead."""
        link = advertisement.origin
        for subscription in self._tables.subscriptions.values():
            if not overlap(advertisement.filter, subscription.filter):
                continue
            if link is None:
                self._answer_for([advertisement], subscription)
            elif subscription.origin is not link and subscription.name not in link.sent:
                self._pass_on(link, subscription)

    def _conclude(self, advertisement: Advertisement) -> None:
        """Answer the advertisement if no neighbour's answer is missing."""
        if advertisement.waiting:
            return
        if advertisement.origin is None:
            self._stable(advertisement)
        else:
            self._send(advertisement.origin.peer, AdvertisementStable(advertisement.name))
