"""Advertisements, subscriptions and starting cuts along the tree.

**Advertisements** are flooded. A broker answers one (`AdvertisementStable`) when all links behind it have, and
sends every overlapping subscription towards the publisher first; so when the publisher's broker has all answers,
it also has every subscription that was there before, and only then lets events out (the late publisher's repair).

An advertisement names the first number that relies on it. Whoever subscribed before it became known here starts with
that number: nothing under the advertisement leaves before the subscription is on its way. So the cut of a later
publisher needs no marker, and cannot be lost with one.

**Subscriptions** travel towards overlapping advertisements. On a link over which a covering subscription was sent
already, the new one is not sent: the older one *represents* it there (`representation`).

**Cuts.** Where a subscription meets a publisher's broker, the cut is the publisher's next number. Where it is
represented on a link, this broker is its pivot for all publishers behind the link, and the cut for each is the
larger of "one after the last I passed on" and the representative's own cut. If that is not known yet, the
subscription inherits it when the representative's marker passes. So a pivot never speaks for a publisher that the
covering subscription has not reached, and the cuts it gives are those of one consistent cut: every event after
the representative's cut of one publisher reaches, on FIFO links, any other publisher behind the subscription.

Markers go back to the subscriber alone; on a tree that is enough.

**The whole cut.** A stable advertisement is known everywhere. So the publishers that a subscription finds advertised
where it begins are all that may publish something for it unasked; when it has a cut for each of them, nothing that is
published from then on is left out.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping

from gapless.events import Attributes, Event
from gapless.filters import Filter, FilterIndex, parse
from gapless.protocols.gapless.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    Cuts,
    Marker,
    RemoveAdvertisement,
    TreeBody,
)  # fmt: skip
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.routing.records import Advertisement, Link, Subscription
from gapless.protocols.gapless.routing.representation import Representation
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.filter_pairs import cover, overlap
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["RoutingTable"]

AT_ONCE = 4
"""Subscriptions that are compared with an advertisement in a piece of work."""
LOST_MAX = 10_000
"""Publishers that were lost with their sessions and are remembered."""
SILENT_MAX = 10_000
"""Publishers that advertise nothing any more and are remembered: clients come and go all the time. One that comes back
after so many others is taken for a new one, whose events were all still to come."""


def _no(_: Subscription) -> bool:
    return False


def _nothing(_: Subscription) -> Cuts:
    return {}


class RoutingTable:
    """What one broker knows of who publishes and who subscribes, and the rules that spread it."""

    def __init__(
        self,
        send: Callable[[Link, TreeBody], None],
        tell_client: Callable[[Subscription, Cuts], None],
        advertisement_stable: Callable[[Advertisement], None],
        switched_off: frozenset[str] = frozenset(),
        log_end: Callable[[], int] = lambda: 0,
    ) -> None:
        self.links: dict[str, Link] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.advertisements: dict[str, Advertisement] = {}
        self.passed: Cuts = {}
        """The last event of each publisher that this broker processed."""
        self.moved: dict[str, None] = {}
        """Clients of this broker that were another's before: what they published there, others may know first."""
        self.is_intact = True
        self.is_complete = True
        """Whether every stable advertisement is known here; a broker that returns has to learn them first."""
        self.has_former = False
        """Whether any subscription has cuts of publishers that have left."""
        self.is_put_off: Callable[[Subscription], bool] = _no
        """Whether a subscription gets no cuts from us now (see `takeover`)."""
        self._still_gets: Callable[[Subscription], Cuts] = _nothing
        """By publisher: the first event that has come by here, and is still to go the subscription's way."""
        self._entered = 0
        """How many advertisements were entered."""
        self._lost: dict[str, None] = {}
        """The publishers whose sessions were lost with more than f brokers."""
        self._publishers: dict[str, dict[str, Advertisement]] = {}
        self._index: FilterIndex[str] = FilterIndex()
        self._send = send
        self._tell_client = tell_client
        self._advertisement_stable = advertisement_stable
        self._switched_off = switched_off
        self._representation = Representation(self, send, switched_off)
        self._log_end = log_end

    # ---- events -------------------------------------------------------------------------------------------

    def match(self, event: Event) -> Iterable[Subscription]:
        """The subscriptions that the event matches, in the order in which they became known."""
        if is_lost(event.attributes):
            return list(self.subscriptions.values())
        return map(self.subscriptions.__getitem__, self._index.match(event.attributes))

    def match_names(self, attributes: Attributes) -> list[str]:
        """The names of the subscriptions that events with these attributes match, in the same order."""
        if is_lost(attributes):
            return list(self.subscriptions)
        return self._index.match(attributes)

    def match_many(self, batch: list[Attributes]) -> list[list[str]]:
        """The same for each of some attributes."""
        if any(map(is_lost, batch)):
            return [self.match_names(attributes) for attributes in batch]
        return self._index.match_many(batch)

    @property
    def has_searches(self) -> bool:
        """Whether long strings may take long to match."""
        return self._index.has_searches

    def foresee(self, attributes: Attributes) -> Iterator[int]:
        """Do what takes long of a match beforehand, some milliseconds at a time; yields the steps that it took."""
        return self._index.precompute(attributes)

    def covering(self, pattern: Filter) -> Iterable[Subscription]:
        """The subscriptions that cover the filter, in the order in which they became known."""
        for name in self._index.may_cover(pattern):
            subscription = self.subscriptions[name]
            if cover(subscription.filter, pattern):
                yield subscription

    # ---- subscriptions ------------------------------------------------------------------------------------

    def receive_subscription(self, link: Link, message: AddSubscription) -> None:
        """A new subscription: pass it on where it is needed, answer for the publishers it reached."""
        subscription = self.enter_subscription(message.subscription, message.filter, link, message.cuts)
        self.spread(subscription)
        predecessor = self.subscriptions.get(message.inherits)
        if not message.inherits:
            self.note_arrival(subscription)
        if predecessor is not None:
            subscription.entered_at = predecessor.entered_at
            self.inherit_cuts(subscription, predecessor.cuts)
        self.answer(subscription)

    def enter_subscription(
        self, name: str, text: str, origin: Link | None, cuts: Cuts, client: str = ""
    ) -> Subscription:
        """Make a subscription known, and no more."""
        subscription = self.subscriptions[name] = Subscription(name, parse(text), origin, client)
        self._index.add(name, subscription.filter)
        self.take_cuts(subscription, cuts)
        return subscription

    def note_arrival(self, subscription: Subscription) -> None:
        """A subscription that nothing has represented here comes after all that was processed so far."""
        subscription.entered_at = self._log_end()

    def inherit_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """Take over cuts as they are, and report them."""
        self.report(subscription, self.inheritable(subscription, cuts))

    def restore_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """What the client knows of its cuts counts, for the publishers that are still there."""
        subscription.cuts.update({p: cut for p, cut in cuts.items() if self._is_onward(p, subscription)})

    def keep_former(self, subscription: Subscription, cuts: Cuts) -> None:
        """Of publishers that were lost, keep the cuts that a client brings: their events may be found on a disk."""
        subscription.former.update(
            {p: cut for p, cut in cuts.items() if p in self._lost and p not in subscription.cuts}
        )
        self.has_former |= bool(subscription.former)

    def take_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """Believe the cuts that the subscription brings, for the publishers that lie further on."""
        subscription.cuts.update(self.inheritable(subscription, cuts))

    def spread(self, subscription: Subscription) -> None:
        """Send the subscription over every link that needs it."""
        for link in self.links.values():
            self._representation.offer(link, subscription)

    def go_on(self, still_gets: Callable[[Subscription], Cuts] = _nothing) -> None:
        """Put no subscription off any more; but events that have come by may still be on their way to some."""
        self.is_put_off = _no
        self._still_gets = still_gets

    def answer(self, subscription: Subscription) -> None:
        """Fix the cuts that this broker can fix now, and report them as one message.

        Whoever the subscription represents is answered in turn: a pivot looks again when more becomes stable.
        """
        if self.is_put_off(subscription):
            return
        news: Cuts = {}
        for advertisement in self.advertisements.values():
            publisher = advertisement.publisher
            if publisher in subscription.cuts or publisher in news or self._is_same_side(advertisement, subscription):
                continue
            if not overlap(advertisement.filter, subscription.filter):
                continue
            if advertisement.origin is None:
                if self.is_intact or publisher not in self.moved:
                    news[publisher] = self._next_for(subscription, publisher)
                continue
            representative = self._representation.representative(advertisement.origin, subscription)
            if representative is not None and publisher in representative.cuts:
                news[publisher] = max(self._next_for(subscription, publisher), representative.cuts[publisher])
        self.report(subscription, news)

    def await_cuts(self, subscription: Subscription) -> None:
        """Note which publishers' cuts a client's subscription has to wait for."""
        subscription.awaited = None
        if self.is_complete:
            subscription.awaited = {
                ad.publisher: None
                for ad in self.advertisements.values()
                if ad.publisher not in subscription.cuts and overlap(ad.filter, subscription.filter)
            }

    def is_whole(self, subscription: Subscription) -> bool:
        """Whether a client's subscription has the cut of every publisher that it has to wait for."""
        if subscription.awaited is None:
            return False
        for publisher in list(subscription.awaited):
            if publisher in subscription.cuts or not self._is_onward(publisher, subscription):
                del subscription.awaited[publisher]
        return not subscription.awaited

    def remove_subscription(self, name: str) -> None:
        """The subscription is over: what it represented takes its place first."""
        subscription = self.subscriptions.pop(name)
        self._index.remove(name)
        for link in self.links.values():
            self._representation.withdraw(link, subscription)

    def receive_marker(self, link: Link, name: str, cuts: Cuts) -> None:
        """A marker came over the link for a subscription that was sent over it."""
        behind = {ad.publisher for ad in link.advertisements.values()}
        news = {publisher: cut for publisher, cut in cuts.items() if publisher in behind}
        subscription = self.subscriptions.get(name)
        ghosts = link.ghosts.get(name)
        if ghosts is None:
            if subscription is not None and name in link.sent:
                self.report(subscription, {p: cut for p, cut in news.items() if p not in subscription.cuts})
            for other in link.represents.get(name, ()):
                if other in self.subscriptions:
                    self.inherit_passing(self.subscriptions[other], news)
        for other in ghosts[0] if ghosts else ():
            if other in self.subscriptions:
                self._inherit_late(self.subscriptions[other], news)

    def inherit_passing(self, subscription: Subscription, cuts: Cuts) -> None:
        """Take the cuts of a representative, as its marker passes."""
        if self.is_put_off(subscription):
            return
        news = self.inheritable(subscription, cuts)
        self.report(subscription, {p: max(cut, self._next_for(subscription, p)) for p, cut in news.items()})

    def _inherit_late(self, subscription: Subscription, cuts: Cuts) -> None:
        """Take the cuts of a representative that has ended.

        They are passed on also where a cut is known here: it may be one that the subscription brought from where the
        publisher's latest advertisement was not known yet, and where it counts no more.
        """
        known = {p: cut for p, cut in cuts.items() if p in subscription.cuts and self._is_onward(p, subscription)}
        self.inherit_passing(subscription, cuts)
        if known and subscription.origin is not None and subscription.origin.peer in self.links:
            self._send(subscription.origin, Marker(subscription.name, known))

    def report(self, subscription: Subscription, news: Cuts) -> None:
        """Cuts of a subscription became known: tell where it came from, and answer those that it represents."""
        if not news:
            return
        subscription.cuts.update(news)
        if subscription.origin is None:
            self._tell_client(subscription, news)
        elif subscription.origin.peer in self.links:
            self._send(subscription.origin, Marker(subscription.name, news))
        for link in self._links_towards(news):
            for other in list(link.represents.get(subscription.name, ())):
                if other in self.subscriptions:
                    self.answer(self.subscriptions[other])

    def inheritable(self, subscription: Subscription, cuts: Cuts) -> Cuts:
        """Of these cuts, those of publishers that lie further on, match, and have none yet."""
        return {p: cut for p, cut in cuts.items() if p not in subscription.cuts and self._is_onward(p, subscription)}

    def receive_gone(self, link: Link, name: str) -> None:
        """No more markers of an ended subscription will come over the link."""
        ghosts = link.ghosts.get(name)
        if ghosts:
            del ghosts[0]
            if not ghosts:
                del link.ghosts[name]

    # ---- advertisements -----------------------------------------------------------------------------------

    def receive_advertisement(self, link: Link, told: AddAdvertisement) -> Pieces[None]:
        """A peer has told an advertisement."""
        known = self.advertisements.get(told.advertisement)
        if known is None:
            advertisement = self.enter_advertisement(told.advertisement, told.publisher, told.filter, link, told.first)
            advertisement.told_number = told.number
            yield from self.spread_advertisement(advertisement)
        elif known.origin is link:
            known.told_number = told.number

    def spread_advertisement(self, advertisement: Advertisement) -> Pieces[None]:
        """A new advertisement: flood it, send what subscribes to it towards it, answer when all others have.

        It is compared with every subscription, so this is done in pieces.
        """
        subscriptions = list(self.subscriptions.values())
        for place in range(0, len(subscriptions), AT_ONCE):
            self.start_with(advertisement, subscriptions[place : place + AT_ONCE])
            yield 1
        self.flood(advertisement)
        for place in range(0, len(subscriptions), AT_ONCE):
            self._attract(advertisement, subscriptions[place : place + AT_ONCE])
            yield 1
        if advertisement.origin is None and "late-publishers" in self._switched_off:
            advertisement.waiting.clear()
        self.conclude(advertisement)

    def enter_advertisement(
        self, name: str, publisher: str, text: str, origin: Link | None, first: int
    ) -> Advertisement:
        """Make an advertisement known, and no more."""
        advertisement = self.advertisements[name] = Advertisement(name, publisher, parse(text), origin, first)
        self._entered += 1
        advertisement.number = self._entered
        self._publishers.setdefault(publisher, {})[name] = advertisement
        if origin is not None:
            origin.advertisements[name] = advertisement
        return advertisement

    def next_number(self, publisher: str) -> int:
        """From which number on events of the publisher may still come here.

        The smallest story: p publishes p:1 to p:6, and p's session and this broker's memory are lost together. p
        advertises again, from p:7 on; s was there before, and keeps its cut, p:1. Whoever s represents starts with p:7.
        """
        first = min((ad.first for ad in self._publishers.get(publisher, {}).values()), default=0)
        return max(first, self.passed.get(publisher, 0) + 1)

    def _next_for(self, subscription: Subscription, publisher: str) -> int:
        """From which number on events of the publisher may still go where the subscription came from."""
        following = self.next_number(publisher)
        return min(following, self._still_gets(subscription).get(publisher, following))

    def take_back(self, publisher: str, last: int) -> None:
        """Nothing counts that the publisher said after a number: it may say it again."""
        self.passed[publisher] = min(last, self.passed.get(publisher, 0))
        for advertisement in self._publishers.get(publisher, {}).values():
            advertisement.first = min(advertisement.first, last + 1)

    def advertises(self, publisher: str) -> bool:
        """Whether the publisher is known here, by an advertisement."""
        return publisher in self._publishers

    def start_with(
        self,
        advertisement: Advertisement,
        subscriptions: Iterable[Subscription],
        missed: Mapping[str, int] | None = None,
    ) -> None:
        """Let subscriptions that were there before the advertisement start with its first event; those that have
        missed an effect of what came before, with what follows (`missed`, by subscription).

        No markers: further on towards the subscriber they know it from the advertisement itself, which is flooded.
        If the publisher was lost with its broker, and is found again, the cut that was there before counts: nobody had
        taken its advertisement back.
        """
        publisher, link = advertisement.publisher, advertisement.origin
        others = [ad.filter for ad in self._publishers[publisher].values() if ad is not advertisement]
        for subscription in subscriptions:
            if (
                publisher not in subscription.cuts
                and (link is None or subscription.origin is not link)
                and overlap(advertisement.filter, subscription.filter)
                and not any(overlap(pattern, subscription.filter) for pattern in others)
            ):
                first = min(advertisement.first, subscription.former.get(publisher, advertisement.first))
                first = max(first, (missed or {}).get(subscription.name, 0) + 1)
                subscription.cuts[publisher] = first
                if subscription.origin is None:
                    self._tell_client(subscription, {publisher: first})

    def move_advertisement(self, advertisement: Advertisement, origin: Link | None) -> None:
        """The advertisement comes over another link now."""
        if origin is not advertisement.origin:
            advertisement.told_number = 0
        advertisement.origin = origin
        if origin is not None:
            origin.advertisements[advertisement.name] = advertisement
            advertisement.waiting.pop(origin.peer, None)  # who told it has nothing to answer

    def flood(self, advertisement: Advertisement) -> None:
        """Send the advertisement over all other links and wait for their answers."""
        for link in self.links.values():
            if link is not advertisement.origin:
                advertisement.waiting[link.peer] = None
                self.send_advertisement(link, advertisement)

    def send_advertisement(self, link: Link, advertisement: Advertisement) -> None:
        """Send the advertisement over one link."""
        ad = advertisement
        self._send(link, AddAdvertisement(ad.name, ad.publisher, ad.filter.text, ad.first, ad.number))

    def _attract(self, advertisement: Advertisement, subscriptions: Iterable[Subscription]) -> None:
        """Send matching subscriptions towards the publisher, or, if it is ours, answer them."""
        link = advertisement.origin
        for subscription in subscriptions:
            if not overlap(advertisement.filter, subscription.filter):
                continue
            if subscription.origin is not link or link is None:
                if link is not None and link.peer in self.links:
                    self._representation.offer(link, subscription)
                self.answer(subscription)

    def receive_stable(self, link: Link, name: str, number: int) -> None:
        """The peer has answered the advertisement; or an earlier one of that name.

        The smallest story: b1 answers p's advertisement. Meanwhile it was lost with p's session, p comes to b0, and
        advertises again. b0 gets the answer. If it counted, p would publish before those who subscribe behind b1 are
        known at b0.
        """
        advertisement = self.advertisements.get(name)
        if advertisement is None or (number and number != advertisement.number):
            return
        if link.peer in advertisement.waiting:
            del advertisement.waiting[link.peer]
            self.conclude(advertisement)

    def conclude(self, advertisement: Advertisement) -> None:
        """Answer the advertisement if nobody is left to wait for; not while a part of the tree is handed over."""
        advertisement.is_deferred = not self.is_intact
        if advertisement.waiting or advertisement.is_deferred:
            return
        if advertisement.origin is None:
            self._advertisement_stable(advertisement)
        elif advertisement.origin.peer in self.links:
            self._send(advertisement.origin, AdvertisementStable(advertisement.name, advertisement.told_number))

    def set_intact(self, is_intact: bool) -> list[Subscription]:
        """A hand-over began, or none is left: what was deferred is answered then. Returns whom to `answer`, too."""
        was_intact, self.is_intact = self.is_intact, is_intact
        if is_intact and not was_intact:
            for advertisement in list(self.advertisements.values()):
                if advertisement.is_deferred:
                    self.conclude(advertisement)
            if self.moved:
                return list(self.subscriptions.values())
        return []

    def remove_advertisement(self, name: str, *, was_lost: bool = False) -> None:
        """The publisher will publish nothing more under the advertisement; or it `was_lost` with its session.

        Then the cuts of subscriptions that were told them are kept for longer. The smallest story: p:1 is on its way to
        c, and p's session is lost with more than f brokers. Far from there, c's broker hears that p has left. The
        session is found on a disk, with p:1, and is entered again. If c's cut were that of a new publisher, c would
        not get p:1.
        """
        advertisement = self.advertisements.pop(name)
        if was_lost:
            self._lost[advertisement.publisher] = None
            forget_oldest(self._lost, LOST_MAX)
        others = self._publishers[advertisement.publisher]
        del others[name]
        if not others:
            del self._publishers[advertisement.publisher]
        if advertisement.origin is not None:
            advertisement.origin.advertisements.pop(name, None)
        for link in self.links.values():
            if link is not advertisement.origin:
                self._send(link, RemoveAdvertisement(name, was_lost))
        for subscription in self.subscriptions.values():
            if advertisement.publisher in subscription.cuts and not any(
                overlap(other.filter, subscription.filter) for other in others.values()
            ):
                cut = subscription.cuts.pop(advertisement.publisher)
                subscription.former.setdefault(advertisement.publisher, cut)
                self.has_former = True
        if advertisement.origin is not None and advertisement.origin.peer in self.links:
            self._representation.prune(advertisement.origin)

    def forget_silent(self, kept: Callable[[], Container[str]]) -> None:
        """Of publishers that advertise nothing, remember the last event only of the latest `SILENT_MAX`.

        `kept` tells who is not to be forgotten: clients of this broker, and those of whom an event is still kept.
        """
        surplus = len(self.passed) - len(self._publishers) - SILENT_MAX
        if surplus > 0:
            names = kept()
            silent = [name for name in self.passed if name not in self._publishers and name not in names]
            for publisher in silent[:surplus]:
                del self.passed[publisher]

    def forget_former(self) -> None:
        """Nothing of publishers that left is under way any more. Those that were lost may be found again."""
        self.has_former = False
        for subscription in self.subscriptions.values():
            former = subscription.former
            for publisher in [name for name in former if name not in self._lost]:
                del former[publisher]

    # ---- links --------------------------------------------------------------------------------------------

    def mark_sent(self, link: Link, subscription: Subscription) -> None:
        """Note that the subscription is known at the other end of the link."""
        self._representation.mark_sent(link, subscription)

    def take_off(self, link: Link, name: str) -> None:
        """Tell the peer that the subscription is over."""
        self._representation.take_off(link, name)

    # ---- inside -------------------------------------------------------------------------------------------

    def _is_onward(self, publisher: str, subscription: Subscription) -> bool:
        """Whether the publisher may match the subscription and does not lie where that comes from."""
        return any(
            not self._is_same_side(advertisement, subscription) and overlap(advertisement.filter, subscription.filter)
            for advertisement in self._publishers.get(publisher, {}).values()
        )

    def _is_same_side(self, advertisement: Advertisement, subscription: Subscription) -> bool:
        return advertisement.origin is not None and advertisement.origin is subscription.origin

    def _links_towards(self, publishers: Iterable[str]) -> list[Link]:
        """The links over which these publishers' events come."""
        found: dict[str, Link] = {}
        for publisher in publishers:
            for advertisement in self._publishers.get(publisher, {}).values():
                if advertisement.origin is not None:
                    found[advertisement.origin.peer] = advertisement.origin
        return list(found.values())
