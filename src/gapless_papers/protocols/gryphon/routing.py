"""How advertisements and subscriptions travel along the tree, and where a subscription starts.

**Advertisements** are flooded. A broker answers one (`Answered`) when all its other neighbours have, and before that
sends the publisher every matching subscription. So a broker with the answer of a link has every subscription behind it
that the flood met.

**Subscriptions** go to every publisher that may match, covered or not. `Link.sent` is exactly the neighbour's state
from here, because every change to it travels on the same ordered link.

**The start** of a subscription with a publisher is one of the publisher's numbers, its logical clock. It is set once,
in one of two cases:

- *The path is stable.* The subscription reached the publisher's broker, which answers with the publisher's next number
  (`PathStable`). Later events find the subscription at every broker on their path.
- *The advertisement is new.* An older subscription that does not wait for this publisher starts with the first event
  under the advertisement: as long as a link has not answered, events under it flood (`floods`).
"""

from collections.abc import Callable, Iterable, Iterator

from gapless.events import Event
from gapless.filters import parse
from gapless.protocols.parts.filter_pairs import overlap
from gapless_papers.protocols.gryphon.messages import (
    AddAdvertisement,
    AddSubscription,
    Answered,
    Body,
    Cuts,
    PathStable,
    RemoveAdvertisement,
    RemoveSubscription,
)
from gapless_papers.protocols.gryphon.tables import Advertisement, Link, OwnSubscription, Subscription, Tables

__all__ = ["Routing"]


class Routing:
    """The rules that propagate advertisements and subscriptions."""

    def __init__(
        self,
        tables: Tables,
        send: Callable[[str, Body], None],
        begin: Callable[[OwnSubscription, Cuts], None],
        offered: Callable[[Advertisement], None],
    ) -> None:
        self._tables = tables
        self._send = send
        self._begin = begin
        self._offered = offered

    # ---- events -------------------------------------------------------------------------------------------

    def floods(self, event: Event) -> Iterator[str]:
        """Yield the neighbours that may have matching subscriptions not known here yet.

        One answered advertisement of the publisher that allows the event suffices: a subscription that matches the
        event overlaps the advertisement, so it arrived before the answer.
        """
        advertised = list(self._tables.advertised_by(event.publisher))
        for peer in {peer: None for ad in advertised for peer in ad.unanswered}:
            if not any(peer not in ad.unanswered and ad.filter.matches(event.attributes) for ad in advertised):
                yield peer

    # ---- subscriptions ------------------------------------------------------------------------------------

    def add_subscription(self, subscription: Subscription) -> None:
        """Report the starts with publishers attached here to a new subscription, and forward it towards the others."""
        self._tables.enter_subscription(subscription)
        last = self._tables.last
        cuts = {ad.publisher: last.get(ad.publisher, 0) + 1 for ad in self._advertised_here(subscription)}
        if cuts:
            self._start(subscription, cuts)
        for link in self._tables.links.values():
            if link is not subscription.origin and link.needs(subscription):
                self._pass_on(link, subscription)
        if isinstance(subscription, OwnSubscription):
            self._begin_if_unserved(subscription)

    def remove_subscription(self, name: str) -> None:
        """Remove a subscription."""
        self._tables.drop_subscription(name)
        for link in self._tables.links.values():
            if name in link.sent:
                self._withdraw(link, name)

    def receive_stable(self, link: Link, message: PathStable) -> None:
        """Process the report that the path from some publishers to the subscription is stable."""
        subscription = link.sent.get(message.subscription)
        if subscription is not None:
            self._start(subscription, message.cuts)

    # ---- advertisements -----------------------------------------------------------------------------------

    def add_advertisement(self, message: AddAdvertisement, origin: Link | None) -> None:
        """Flood a new advertisement, send matching subscriptions towards its publisher, and answer it."""
        name, publisher = message.advertisement, message.publisher
        advertisement = Advertisement(name, publisher, parse(message.filter), message.since, origin)
        self._start_with(advertisement)
        self._tables.enter_advertisement(advertisement)
        for link in self._tables.links.values():
            if link is not origin:
                advertisement.unanswered[link.peer] = None
                self._send(link.peer, message)
        if origin is not None:
            self._send_matching(advertisement, origin)
        self._conclude(advertisement)

    def receive_answer(self, link: Link, name: str) -> None:
        """Process a neighbour's answer to the advertisement."""
        advertisement = self._tables.advertisements.get(name)
        if advertisement is not None:
            advertisement.unanswered.pop(link.peer, None)
            self._conclude(advertisement)

    def remove_advertisement(self, name: str) -> None:
        """Remove an advertisement that has been withdrawn."""
        origin = self._tables.drop_advertisement(name).origin
        for link in self._tables.links.values():
            if link is not origin:
                self._send(link.peer, RemoveAdvertisement(name))
        if origin is not None:
            for unneeded in [sent.name for sent in origin.sent.values() if not origin.needs(sent)]:
                self._withdraw(origin, unneeded)
        for subscription in self._tables.own_subscriptions():
            self._begin_if_unserved(subscription)

    # ---- internals -------------------------------------------------------------------------------------------

    def _advertised_here(self, subscription: Subscription) -> Iterable[Advertisement]:
        """Return the advertisements by publishers at this broker that overlap the subscription."""
        every = self._tables.advertisements.values()
        return (ad for ad in every if ad.origin is None and overlap(ad.filter, subscription.filter))

    def _pass_on(self, link: Link, subscription: Subscription) -> None:
        link.sent[subscription.name] = subscription
        self._send(link.peer, AddSubscription(subscription.name, subscription.filter.text))

    def _withdraw(self, link: Link, name: str) -> None:
        del link.sent[name]
        self._send(link.peer, RemoveSubscription(name))

    def _start(self, subscription: Subscription, cuts: Cuts) -> None:
        """Report the start to the subscriber. Numbers that are already set do not change."""
        if subscription.origin is not None:
            self._send(subscription.origin.peer, PathStable(subscription.name, cuts))
            return
        assert isinstance(subscription, OwnSubscription)
        news = {publisher: cut for publisher, cut in cuts.items() if publisher not in subscription.starts}
        if news:
            self._begin(subscription, news)

    def _start_with(self, advertisement: Advertisement) -> None:
        """Start own subscriptions that wait for no path to this publisher with the first event under the
        advertisement."""
        publisher = advertisement.publisher
        for subscription in list(self._tables.own_subscriptions()):
            wanted = subscription.filter
            waits = any(overlap(earlier.filter, wanted) for earlier in self._tables.advertised_by(publisher))
            if not waits and overlap(advertisement.filter, wanted):
                self._start(subscription, {publisher: advertisement.since})

    def _begin_if_unserved(self, subscription: OwnSubscription) -> None:
        """Start a subscription at once if no publisher matches it."""
        if not subscription.is_active and not self._tables.is_served(subscription):
            self._begin(subscription, {})

    def _send_matching(self, advertisement: Advertisement, link: Link) -> None:
        """Send the publisher all matching subscriptions."""
        for subscription in self._tables.subscriptions.values():
            unsent = subscription.origin is not link and subscription.name not in link.sent
            if unsent and overlap(advertisement.filter, subscription.filter):
                self._pass_on(link, subscription)

    def _conclude(self, advertisement: Advertisement) -> None:
        """Answer the advertisement if no neighbour's answer is missing."""
        if advertisement.unanswered:
            return
        if advertisement.origin is None:
            self._offered(advertisement)
        else:
            self._send(advertisement.origin.peer, Answered(advertisement.name))
