"""Advertisements, subscriptions and starting cuts along the tree.

**Advertisements** are flooded. A broker answers one (`AdvertisementStable`) when all links behind it have, and
sends every overlapping subscription towards the publisher first; so when the publisher's broker has all answers,
it also has every subscription that was there before, and only then lets events out (the late publisher's repair).

An advertisement names the first number that relies on it. Whoever subscribed before it became known here starts with
that number: nothing under the advertisement leaves before the subscription is on its way. So the cut of a later
publisher needs no marker, and cannot be lost with one.

**Subscriptions** travel towards overlapping advertisements. On a link over which a covering subscription was sent
already, the new one is not sent: the older one *represents* it there.

**Cuts.** Where a subscription meets a publisher's broker, the cut is the publisher's next number. Where it is
represented on a link, this broker is its pivot for all publishers behind the link, and the cut for each is the
larger of "one after the last I passed on" and the representative's own cut. If that is not known yet, the
subscription inherits it when the representative's marker passes. So a pivot never speaks for a publisher that the
covering subscription has not reached, and the cuts it gives are those of one consistent cut: every event after
the representative's cut of one publisher reaches, on FIFO links, any other publisher behind the subscription.

**Make before break.** When a representative ends, those it represented are sent first. They keep the cuts they have,
inherit those that the representative has further on, and those of its markers that are still on their way. Where
another one covers such a subscription, inherits as well or knows all cuts that it lacks, it takes those and is
represented anew; but not where a cut is still open: the marker that is on its way would find nobody.

Markers go back to the subscriber alone; on a tree that is enough.

**The whole cut.** A stable advertisement is known everywhere. So the publishers that a subscription finds advertised
where it begins are all that may publish something for it unasked; when it has a cut for each of them, nothing that is
published from then on is left out.
"""

from collections.abc import Callable, Container, Iterable
from functools import lru_cache

from gapless.events import Event
from gapless.filters import Filter, FilterIndex, parse
from gapless.protocols.gapless.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    Cuts,
    Marker,
    RemoveAdvertisement,
    RemoveSubscription,
    TreeBody,
)  # fmt: skip
from gapless.protocols.gapless.routing.records import Advertisement, Link, Subscription
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["RoutingTable"]

SILENT_MAX = 10_000
"""Publishers that advertise nothing any more and are remembered: clients come and go all the time. One that comes back
after so many others is taken for a new one, whose events were all still to come."""
REMOVED_MAX = 1_000
"""Of how many subscriptions that were taken off a link it is known: for longer than a marker is on its way."""
COVER_CACHE = 65_536


@lru_cache(COVER_CACHE)
def _overlap(one: Filter, other: Filter) -> bool:
    return one.overlaps(other)


@lru_cache(COVER_CACHE)
def _cover(one: Filter, other: Filter) -> bool:
    return one.covers(other)


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
        self._has_former = False
        self._publishers: dict[str, dict[str, Advertisement]] = {}
        self._index: FilterIndex[str] = FilterIndex()
        self._send = send
        self._tell_client = tell_client
        self._advertisement_stable = advertisement_stable
        self._off = switched_off
        self._log_end = log_end

    # ---- events -------------------------------------------------------------------------------------------

    def match(self, event: Event) -> Iterable[Subscription]:
        """The subscriptions that the event matches, in the order in which they became known."""
        return map(self.subscriptions.__getitem__, self._index.match(event.attributes))

    def match_many(self, events: list[Event]) -> list[list[str]]:
        """The names of the subscriptions that each of the events matches, in the same order."""
        if len(events) == 1:
            return [self._index.match(events[0].attributes)]
        return self._index.match_many([event.attributes for event in events])

    def covering(self, pattern: Filter) -> Iterable[Subscription]:
        """The subscriptions that cover the filter, in the order in which they became known."""
        for name in self._index.may_cover(pattern):
            subscription = self.subscriptions[name]
            if _cover(subscription.filter, pattern):
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
        self._report(subscription, self._inheritable(subscription, cuts))

    def restore_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """What the client knows of its cuts counts, for the publishers that are still there."""
        subscription.cuts.update({p: cut for p, cut in cuts.items() if self._is_onward(p, subscription)})

    def take_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        """Believe the cuts that the subscription brings, for the publishers that lie further on."""
        subscription.cuts.update(self._inheritable(subscription, cuts))

    def spread(self, subscription: Subscription) -> None:
        """Send the subscription over every link that needs it."""
        for link in self.links.values():
            self._offer(link, subscription)

    def answer(self, subscription: Subscription) -> None:
        """Fix the cuts that this broker can fix now, and report them as one message.

        Whoever the subscription represents is answered in turn: a pivot looks again when more becomes stable.
        """
        news: Cuts = {}
        for advertisement in self.advertisements.values():
            publisher = advertisement.publisher
            if publisher in subscription.cuts or publisher in news or self._is_same_side(advertisement, subscription):
                continue
            if not _overlap(advertisement.filter, subscription.filter):
                continue
            next_one = self.passed.get(publisher, 0) + 1
            if advertisement.origin is None:
                if self.is_intact or publisher not in self.moved:
                    news[publisher] = next_one
                continue
            representative = self._representative(advertisement.origin, subscription)
            if representative is not None and publisher in representative.cuts:
                news[publisher] = max(next_one, representative.cuts[publisher])
        self._report(subscription, news)

    def await_cuts(self, subscription: Subscription) -> None:
        """Note which publishers' cuts a client's subscription has to wait for."""
        subscription.awaited = None
        if self.is_complete:
            subscription.awaited = {
                ad.publisher: None
                for ad in self.advertisements.values()
                if ad.publisher not in subscription.cuts and _overlap(ad.filter, subscription.filter)
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
            self._withdraw(link, subscription)

    def receive_marker(self, link: Link, name: str, cuts: Cuts) -> None:
        """A marker came over the link for a subscription that was sent over it."""
        behind = {ad.publisher for ad in link.advertisements.values()}
        news = {publisher: cut for publisher, cut in cuts.items() if publisher in behind}
        subscription = self.subscriptions.get(name)
        if name not in link.sent_again:
            if subscription is not None and name in link.sent:
                self._report(subscription, {p: cut for p, cut in news.items() if p not in subscription.cuts})
            for other in link.represents.get(name, ()):
                if other in self.subscriptions:
                    self.inherit_passing(self.subscriptions[other], news)
        for other in link.ghosts.get(name, ()):
            if other in self.subscriptions:
                self._inherit_late(self.subscriptions[other], news)

    def inherit_passing(self, subscription: Subscription, cuts: Cuts) -> None:
        """Take the cuts of a representative, as its marker passes."""
        news = self._inheritable(subscription, cuts)
        self._report(subscription, {p: max(cut, self.passed.get(p, 0) + 1) for p, cut in news.items()})

    def _inherit_late(self, subscription: Subscription, cuts: Cuts) -> None:
        """Take the cuts of a representative that has ended.

        They are passed on also where a cut is known here: it may be one that the subscription brought from where the
        publisher's latest advertisement was not known yet, and where it counts no more.
        """
        known = {p: cut for p, cut in cuts.items() if p in subscription.cuts and self._is_onward(p, subscription)}
        self.inherit_passing(subscription, cuts)
        if known and subscription.origin is not None and subscription.origin.peer in self.links:
            self._send(subscription.origin, Marker(subscription.name, known))

    def _inheritable(self, subscription: Subscription, cuts: Cuts) -> Cuts:
        """Of these cuts, those of publishers that lie further on, match, and have none yet."""
        return {p: cut for p, cut in cuts.items() if p not in subscription.cuts and self._is_onward(p, subscription)}

    def receive_gone(self, link: Link, name: str) -> None:
        """No more markers of an ended subscription will come over the link."""
        if link.ghosts.pop(name, None) is None and name in link.sent_again:
            link.sent_again[name] -= 1
            if not link.sent_again[name]:
                del link.sent_again[name]

    # ---- advertisements -----------------------------------------------------------------------------------

    def add_advertisement(self, name: str, publisher: str, text: str, origin: Link | None, first: int) -> Advertisement:
        """A new advertisement: flood it, send what subscribes to it towards it, answer when all others have."""
        advertisement = self.enter_advertisement(name, publisher, text, origin, first)
        self.start_with(advertisement, list(self.subscriptions.values()))
        self.flood(advertisement)
        self.attract(advertisement)
        self.conclude(advertisement)
        return advertisement

    def enter_advertisement(
        self, name: str, publisher: str, text: str, origin: Link | None, first: int
    ) -> Advertisement:
        """Make an advertisement known, and no more."""
        advertisement = self.advertisements[name] = Advertisement(name, publisher, parse(text), origin, first)
        self._publishers.setdefault(publisher, {})[name] = advertisement
        if origin is not None:
            origin.advertisements[name] = advertisement
        return advertisement

    def start_with(self, advertisement: Advertisement, subscriptions: Iterable[Subscription]) -> None:
        """Let subscriptions that were there before the advertisement start with its first event.

        No markers: further on towards the subscriber they know it from the advertisement itself, which is flooded.
        """
        publisher, link = advertisement.publisher, advertisement.origin
        others = [ad.filter for ad in self._publishers[publisher].values() if ad is not advertisement]
        for subscription in subscriptions:
            if (
                publisher not in subscription.cuts
                and (link is None or subscription.origin is not link)
                and _overlap(advertisement.filter, subscription.filter)
                and not any(_overlap(pattern, subscription.filter) for pattern in others)
            ):
                subscription.cuts[publisher] = advertisement.first
                if subscription.origin is None:
                    self._tell_client(subscription, {publisher: advertisement.first})

    def move_advertisement(self, advertisement: Advertisement, origin: Link | None) -> None:
        """The advertisement comes over another link now."""
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
        self._send(link, AddAdvertisement(ad.name, ad.publisher, ad.filter.text, ad.first))

    def attract(self, advertisement: Advertisement) -> None:
        """Send matching subscriptions towards the publisher, or, if it is ours, answer them."""
        link = advertisement.origin
        for subscription in list(self.subscriptions.values()):
            if not _overlap(advertisement.filter, subscription.filter):
                continue
            if subscription.origin is not link or link is None:
                if link is not None and link.peer in self.links:
                    self._offer(link, subscription)
                self.answer(subscription)

    def receive_stable(self, link: Link, name: str) -> None:
        """The peer has answered the advertisement."""
        advertisement = self.advertisements.get(name)
        if advertisement is not None and link.peer in advertisement.waiting:
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
            self._send(advertisement.origin, AdvertisementStable(advertisement.name))

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

    def remove_advertisement(self, name: str) -> None:
        """The publisher will publish nothing more under the advertisement."""
        advertisement = self.advertisements.pop(name)
        others = self._publishers[advertisement.publisher]
        del others[name]
        if not others:
            del self._publishers[advertisement.publisher]
        if advertisement.origin is not None:
            advertisement.origin.advertisements.pop(name, None)
        for link in self.links.values():
            if link is not advertisement.origin:
                self._send(link, RemoveAdvertisement(name))
        for subscription in self.subscriptions.values():
            if advertisement.publisher in subscription.cuts and not any(
                _overlap(other.filter, subscription.filter) for other in others.values()
            ):
                cut = subscription.cuts.pop(advertisement.publisher)
                subscription.former.setdefault(advertisement.publisher, cut)
                self._has_former = True
        if advertisement.origin is not None and advertisement.origin.peer in self.links:
            self._prune(advertisement.origin)

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
        """Nothing of publishers that left is under way any more."""
        if self._has_former:
            self._has_former = False
            for subscription in self.subscriptions.values():
                subscription.former.clear()

    # ---- links --------------------------------------------------------------------------------------------

    def mark_sent(self, link: Link, subscription: Subscription) -> None:
        """Note that the subscription is known at the other end of the link."""
        if subscription.name not in link.sent:
            link.last_place += 1
            link.places[subscription.name] = link.last_place
        link.sent[subscription.name] = subscription
        link.by_text.setdefault(subscription.filter.text, subscription.name)

    # ---- inside -------------------------------------------------------------------------------------------

    def _is_onward(self, publisher: str, subscription: Subscription) -> bool:
        """Whether the publisher may match the subscription and does not lie where that comes from."""
        return any(
            not self._is_same_side(advertisement, subscription) and _overlap(advertisement.filter, subscription.filter)
            for advertisement in self._publishers.get(publisher, {}).values()
        )

    def _is_same_side(self, advertisement: Advertisement, subscription: Subscription) -> bool:
        return advertisement.origin is not None and advertisement.origin is subscription.origin

    def _needs(self, link: Link, subscription: Subscription) -> bool:
        return any(_overlap(ad.filter, subscription.filter) for ad in link.advertisements.values())

    def _offer(self, link: Link, subscription: Subscription, inherits: str = "", heirs: Container[str] = ()) -> None:
        """Send the subscription over the link if it is needed there and nothing represents it.

        It may inherit from one that represented it and has ended, as the other heirs do.
        """
        name = subscription.name
        if subscription.origin is link or name in link.sent or name in link.represented:
            return
        if not self._needs(link, subscription):
            return
        cover = self._find_cover(link, subscription)
        if cover is not None and inherits and cover.name not in heirs and self._leaves_open(link, cover, subscription):
            cover = None
        if cover is not None and "coverage" not in self._off:
            if not self._speaks_for_some_only(link, cover, subscription):
                link.represented[name] = cover.name
                link.represents.setdefault(cover.name, {})[name] = None
                if inherits:
                    self.answer(subscription)
                return
            self._report(subscription, self._stable_cuts(link, cover, subscription))
        self._send_subscription(link, subscription, inherits)

    def _leaves_open(self, link: Link, cover: Subscription, subscription: Subscription) -> bool:
        """Whether there is a publisher behind the link that neither of the two has a cut of."""
        return any(
            ad.publisher not in cover.cuts
            and ad.publisher not in subscription.cuts
            and _overlap(ad.filter, subscription.filter)
            for ad in link.advertisements.values()
        )

    def _speaks_for_some_only(self, link: Link, cover: Subscription, subscription: Subscription) -> bool:
        """Without the pivots' repair: send also what is represented, where not all its publishers are stable."""
        return "pivots" in self._off and any(
            ad.publisher not in cover.cuts and _overlap(ad.filter, subscription.filter)
            for ad in link.advertisements.values()
        )

    def _stable_cuts(self, link: Link, cover: Subscription, subscription: Subscription) -> Cuts:
        """Without the pivots' repair: the cuts that can be given at once; for the others it asks for itself."""
        behind = {ad.publisher for ad in link.advertisements.values()}
        cuts = {p: max(self.passed.get(p, 0) + 1, cut) for p, cut in cover.cuts.items() if p in behind}
        return self._inheritable(subscription, cuts)

    def _send_subscription(self, link: Link, subscription: Subscription, inherits: str) -> None:
        if subscription.name in link.removed:
            del link.removed[subscription.name]
            link.sent_again[subscription.name] = link.sent_again.get(subscription.name, 0) + 1
            self._send(link, RemoveSubscription(subscription.name, answer=True))
        self.mark_sent(link, subscription)
        cuts = dict(subscription.cuts)
        self._send(link, AddSubscription(subscription.name, subscription.filter.text, cuts, inherits))

    def _find_cover(self, link: Link, subscription: Subscription) -> Subscription | None:
        equal = link.by_text.get(subscription.filter.text)
        if equal is not None:
            return link.sent[equal]
        for name in sorted(
            (name for name in self._index.may_cover(subscription.filter) if name in link.sent),
            key=link.places.__getitem__,
        ):
            if _cover(link.sent[name].filter, subscription.filter):
                return link.sent[name]
        return None

    def _representative(self, link: Link, subscription: Subscription) -> Subscription | None:
        name = link.represented.get(subscription.name)
        return None if name is None else link.sent[name]

    def _withdraw(self, link: Link, subscription: Subscription) -> None:
        """Take the subscription off the link, after those it represented."""
        name = subscription.name
        self._unrepresent(link, name)
        if link.sent.pop(name, None) is None:
            return
        del link.places[name]
        if link.by_text.get(subscription.filter.text) == name:
            del link.by_text[subscription.filter.text]
            for other in link.sent.values():
                if other.filter.text == subscription.filter.text:
                    link.by_text[other.filter.text] = other.name
                    break
        orphaned = link.represents.pop(name, {})
        for other_name in orphaned:
            del link.represented[other_name]
            if "make-before-break" not in self._off and other_name in self.subscriptions:
                self._offer(link, self.subscriptions[other_name], name, orphaned)
        for heirs in link.ghosts.values():
            if name in heirs:
                heirs.update(orphaned)
        if orphaned:
            link.ghosts[name] = orphaned
        self.take_off(link, name, bool(orphaned))

    def take_off(self, link: Link, name: str, answer: bool = False) -> None:
        """Tell the peer that the subscription is over."""
        link.removed[name] = None
        forget_oldest(link.removed, REMOVED_MAX)
        self._send(link, RemoveSubscription(name, answer))

    def _unrepresent(self, link: Link, name: str) -> None:
        cover = link.represented.pop(name, None)
        if cover is not None:
            del link.represents[cover][name]
            if not link.represents[cover]:
                del link.represents[cover]

    def _prune(self, link: Link) -> None:
        """Take off the link what no publisher behind it needs any more."""
        for name in list(link.represented):
            if name not in self.subscriptions or not self._needs(link, self.subscriptions[name]):
                self._unrepresent(link, name)
        for subscription in list(link.sent.values()):
            if not self._needs(link, subscription):
                self._withdraw(link, subscription)

    def _report(self, subscription: Subscription, news: Cuts) -> None:
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

    def _links_towards(self, publishers: Iterable[str]) -> list[Link]:
        """The links over which these publishers' events come."""
        found: dict[str, Link] = {}
        for publisher in publishers:
            for advertisement in self._publishers.get(publisher, {}).values():
                if advertisement.origin is not None:
                    found[advertisement.origin.peer] = advertisement.origin
        return list(found.values())
