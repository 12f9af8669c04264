"""How advertisements, subscriptions and markers travel on a graph: Algorithms 1 and 2 on top of the causal multicast.

**Advertisements** go to all brokers. Each sends the publisher's broker the matching subscriptions, and then answers.

**Subscriptions** go to the brokers of all matching publishers in one message. So all brokers on all paths get it, and
their later messages arrive at the others after it. (Repair `together`; switched off, each publisher gets a message of
its own, as if brokers forwarded a subscription link by link.)

**Markers** start where a subscription meets a publisher, and go to its home; brokers on the path note that it is
stable. With `cascade` they go to all subscribers of the publisher, and a publisher that learns of a subscription from a
marker answers with its own (Algorithm 1, lines 14 to 21). That is needed only without `together`.

**Partial pivots** (`Regions.frontier`). A subscription S passes; X covers it and is stable here for a publisher, and
this broker is among the first of those on X's paths that S meets. So all events of the publisher that S wants arrive
here, for X. From now on this broker carries them to S, until the publisher's broker knows S itself; a partial marker
reports the first number to S's home.

**Ending.** A broker that carries events for S relies on X, so X must not vanish before S is known to the publisher.
First all brokers on X's paths are notified that it ends. When all have answered, its home has in its past everything
they had processed by then, S included, and asks them to forget X: causal order brings S to the publisher first.
(Repair `two-steps`.)
"""

from collections.abc import Callable, Iterable

from gapless.filters import parse
from gapless.protocols.parts.filter_pairs import cover, overlap
from gapless_papers.protocols.locamu.multicast import CausalMulticast
from gapless_papers.protocols.locamu.regions import Regions
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AdvertisementStable,
    Cuts,
    EndSubscription,
    ForgetSubscription,
    PathMarker,
    PathSubscribe,
    PivotMarker,
    RemoveAdvertisement,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.path_keeping import Streams
from gapless_papers.protocols.locaps.path_tables import (
    OwnPathSubscription,
    PathAdvertisement,
    PathSubscription,
    PathTables,
)

__all__ = ["PathRouting"]


class PathRouting:
    """The rules that propagate advertisements, subscriptions and markers."""

    def __init__(
        self,
        name: str,
        f: int,
        everyone: tuple[str, ...],
        regions: Regions,
        options: LocapsOptions,
        tables: PathTables,
        multicast: CausalMulticast,
        started: Callable[[OwnPathSubscription, Cuts], None],
        stable: Callable[[PathAdvertisement], None],
        streams: Streams,
    ) -> None:
        self._name = name
        self._everyone = everyone
        self._regions = regions
        self._tables = tables
        self._multicast = multicast
        self._started = started
        self._stable = stable
        self._streams = streams
        self._covers = options.coverage
        self._at_least = 1 if options.full_markers else f + 1
        self._cascades = options.cascade
        self._together = "together" not in options.switched_off
        self._speaks_for_all = "pivots" not in options.switched_off
        self._in_two_steps = "two-steps" not in options.switched_off
        self._answers: dict[str, str] = {}
        """Advertisements, with their brokers, to be answered when no subscription here is in transition."""
        self._ended: dict[int, tuple[OwnPathSubscription, tuple[str, ...]]] = {}
        """Ended subscriptions to be forgotten, by the number of the message that announced the end."""

    # ---- advertisements -----------------------------------------------------------------------------------

    def advertise(self, name: str, publisher: str, text: str) -> None:
        """Announce a publisher of this broker, and send its markers to the subscriptions known here."""
        epoch = self._streams.epoch(publisher)
        ad = PathAdvertisement(name, publisher, parse(text), self._name, epoch)
        self._tables.advertisements[name] = ad
        dead = self._multicast.dead
        ad.waiting = dict.fromkeys(other for other in self._everyone if other != self._name and other not in dead)
        self._multicast.say(ad.waiting, AddAdvertisement(name, publisher, text, epoch))
        for subscription in list(self._tables.subscriptions.values()):
            self._mark(subscription, [ad])
        if not ad.waiting:
            self._stable(ad)

    def receive_advertisement(self, origin: str, content: AddAdvertisement) -> None:
        """Send matching subscriptions to the publisher's broker, and answer its advertisement."""
        ad = PathAdvertisement(content.advertisement, content.publisher, parse(content.filter), origin, content.epoch)
        former = self._tables.advertisements.get(ad.name)
        if origin in self._multicast.dead or (former is not None and former.epoch > ad.epoch):
            return
        self._tables.advertisements[ad.name] = ad
        self._tables.orphaned.pop(ad.name, None)
        if former is not None:
            self._unmark(ad.publisher)
        for own in list(self._tables.own()):
            if not own.is_ending and origin not in own.sent and overlap(ad.filter, own.filter):
                own.sent[origin] = None
                self._multicast.say([origin], PathSubscribe(own.name, own.filter.text, self._name, False))
        self._answers[ad.name] = origin
        self.answer_advertisements()

    def answer_advertisements(self) -> None:
        """Answer the waiting advertisements, unless a subscription of this broker is still served by partial pivots:
        their publishers' events would take other paths than the events that the pivots carry."""
        if any(own.start.in_transition for own in self._tables.own()):
            return
        answers, self._answers = self._answers, {}
        for name, broker in answers.items():
            self._multicast.say([broker], AdvertisementStable(name))

    def receive_stable(self, sender: str, name: str) -> None:
        """Process a broker's answer to an advertisement."""
        ad = self._tables.advertisements.get(name)
        if ad is not None and ad.broker == self._name and sender in ad.waiting:
            del ad.waiting[sender]
            if not ad.waiting:
                self._stable(ad)

    def unadvertise(self, name: str) -> None:
        """Withdraw an advertisement of a publisher of this broker."""
        self._multicast.say(self._everyone, RemoveAdvertisement(name))
        self.drop_advertisement(name)

    def drop_advertisement(self, name: str) -> None:
        """Remove an advertisement."""
        ad = self._tables.advertisements.pop(name, None)
        self._answers.pop(name, None)
        if ad is None:
            return
        if ad.broker in self._multicast.dead:
            self._unmark(ad.publisher)
        for subscription in list(self._tables.subscriptions.values()):
            if not self._tables.publishes_for(ad.publisher, subscription):
                subscription.cuts.pop(ad.publisher, None)
                if isinstance(subscription, OwnPathSubscription):
                    subscription.start.forget(ad.publisher)
        self.answer_advertisements()

    def _unmark(self, publisher: str) -> None:
        """Mark all subscriptions unstable for a publisher whose broker has failed, until it has moved to another."""
        for subscription in self._tables.subscriptions.values():
            subscription.cuts.pop(publisher, None)
            if isinstance(subscription, OwnPathSubscription):
                subscription.start.forget(publisher)

    # ---- subscriptions ------------------------------------------------------------------------------------

    def subscribe(self, own: OwnPathSubscription) -> None:
        """Add a subscription of a client of this broker."""
        wanted = self._tables.wanted(own)
        own.sent = dict.fromkeys(broker for broker in wanted.values() if broker != self._name)
        content = PathSubscribe(own.name, own.filter.text, self._name, True)
        if self._together:
            self._multicast.say(own.sent, content)
        else:
            for broker in own.sent:
                self._multicast.say([broker], content)
        self._tables.enter_subscription(own)
        self._mark(own, self._own_advertisements())
        self._take_part(own)

    def receive_subscription(self, content: PathSubscribe) -> None:
        """Process a subscription whose path includes this broker."""
        subscription = self._known(content.subscription, content.filter, content.home)
        if subscription is None:
            return
        self._mark(subscription, self._own_advertisements())
        if content.is_new:
            self._take_part(subscription)

    def _known(self, name: str, text: str, home: str) -> PathSubscription | None:
        """Return the subscription after adding it if it is new; None if its home has failed."""
        if home in self._multicast.dead:
            return None
        found = self._tables.subscriptions.get(name)
        if found is None:
            found = PathSubscription(name, parse(text), home)
            self._tables.enter_subscription(found)
        return found

    def end(self, own: OwnPathSubscription) -> None:
        """End a subscription on its client's request."""
        self._tables.drop_subscription(own.name)
        ends = tuple(own.sent)
        if self._in_two_steps and ends:
            self._ended[self._multicast.say(ends, EndSubscription(own.name))] = (own, ends)
        else:
            self._multicast.say(ends, ForgetSubscription(own.name))
        self.answer_advertisements()

    def settled(self, number: int) -> None:
        """Record that all brokers have processed this broker's messages up to this number."""
        for ended in [ended for ended in self._ended if ended <= number]:
            own, ends = self._ended.pop(ended)
            self._multicast.say(ends, ForgetSubscription(own.name))

    def receive_end(self, name: str) -> None:
        """Record that other subscriptions can no longer rely on this one."""
        found = self._tables.subscriptions.get(name)
        if found is not None:
            found.is_ending = True

    def exclude(self, broker: str) -> None:
        """Handle a failed broker: its subscriptions stay for a while, but no broker can rely on them. Its publishers
        have to move to others, and its answers are not awaited."""
        for subscription in self._tables.subscriptions.values():
            if subscription.home == broker:
                subscription.is_ending = True
        for ad in list(self._tables.advertisements.values()):
            if ad.broker == broker:
                self._tables.orphaned[ad.name] = ad
                self.drop_advertisement(ad.name)
            elif ad.broker == self._name and broker in ad.waiting:
                self.receive_stable(broker, ad.name)

    # ---- markers ------------------------------------------------------------------------------------------

    def _own_advertisements(self) -> list[PathAdvertisement]:
        return [ad for ad in self._tables.advertisements.values() if ad.broker == self._name]

    def _mark(self, subscription: PathSubscription, ads: Iterable[PathAdvertisement]) -> None:
        """Fix the cuts of publishers that are attached here: from their next event on."""
        for publisher in dict.fromkeys(ad.publisher for ad in ads if overlap(ad.filter, subscription.filter)):
            if publisher not in subscription.cuts:
                self._say_cut(subscription, {publisher: self._streams.accepted(publisher) + 1})

    def _say_cut(self, subscription: PathSubscription, cuts: Cuts) -> None:
        subscription.cuts.update(cuts)
        if isinstance(subscription, OwnPathSubscription):
            self._started(subscription, subscription.start.take_marker(cuts))
        (publisher,) = cuts
        if not self._cascades:
            self._streams.put(publisher, PathMarker(subscription.name, cuts), [subscription.home])
            return
        marker = PathMarker(subscription.name, cuts, subscription.filter.text, subscription.home)
        homes = {other.home for other in self._tables.subscriptions.values() if self._gets(other, cuts)}
        self._streams.put(publisher, marker, homes | {subscription.home})

    def _gets(self, other: PathSubscription, cuts: Cuts) -> bool:
        return any(publisher in other.cuts for publisher in cuts)

    def receive_marker(self, origin: str, content: PathMarker) -> None:
        """Process a publisher's own marker: the subscription is stable here if the publisher is still attached to the
        origin.

        A broker that takes over a publisher sends the former broker's markers to all brokers. They still fix starts,
        but most of their receivers are not on a path from the publisher to the subscription, so they make nothing
        stable.
        """
        subscription = self._tables.subscriptions.get(content.subscription)
        if subscription is None and content.home:
            subscription = self._known(content.subscription, content.filter, content.home)
        if subscription is None:
            return
        for publisher, cut in content.cuts.items():
            if any(ad.broker == origin for ad in self._tables.advertised_by(publisher)):
                subscription.cuts.setdefault(publisher, cut)
        if content.home:
            self._mark(subscription, self._own_advertisements())
        if isinstance(subscription, OwnPathSubscription):
            self._started(subscription, subscription.start.take_marker(content.cuts))
            self.answer_advertisements()

    # ---- partial pivots -----------------------------------------------------------------------------------

    def _take_part(self, subscription: PathSubscription) -> None:
        """Carry events to a new subscription, and send a partial marker, if this broker is one of its partial
        pivots."""
        if not self._covers:
            return
        cuts: Cuts = {}
        for other in self._tables.subscriptions.values():
            if other is not subscription and not other.is_ending and cover(other.filter, subscription.filter):
                self._add_cuts(subscription, other, cuts)
        if not cuts:
            return
        marker = PivotMarker(subscription.name, self._name, cuts)
        if subscription.home == self._name:
            self.receive_pivot(marker)
        else:
            subscription.carried.update(dict.fromkeys(cuts))
            self._multicast.say([subscription.home], marker)

    def _add_cuts(self, subscription: PathSubscription, other: PathSubscription, cuts: Cuts) -> None:
        """Add the numbers from which on this broker can carry the covering subscription's events to this one."""
        for publisher, broker in self._tables.wanted(subscription).items():
            if publisher in other.cuts and publisher not in cuts and broker != self._name:
                covered = self._regions.way(broker, other.home).brokers
                pivots = self._regions.frontier(broker, subscription.home, covered, self._at_least)
                if pivots is not None and self._name in pivots:
                    cuts[publisher] = max(self._tables.passed.get(publisher, 0) + 1, other.cuts[publisher])

    def receive_pivot(self, content: PivotMarker) -> None:
        """Process a partial marker for a subscription of this broker: start it, if no event can avoid the pivots that
        answered.

        It does not start while a matching publisher's broker has failed. The smallest counterexample: p answers q:1
        with p:1, and its broker b7 fails. s would start with q:1 by its partial pivots, because no other matching
        publisher is known; then p continues elsewhere, after p:1, and s starts with p:2. q's own marker arrives in any
        case.
        """
        own = self._tables.subscriptions.get(content.subscription)
        if not isinstance(own, OwnPathSubscription):
            return
        own.start.take_partial(content)
        if self._speaks_for_all and self._tables.may_be_missed(own):
            return
        wanted = self._tables.wanted(own)
        for group in [wanted] if self._speaks_for_all else [{p: broker} for p, broker in wanted.items()]:
            sets = {self._answered(own, publisher, broker) for publisher, broker in group.items()}
            pivots = sets.pop() if len(sets) == 1 else None
            news = {} if pivots is None else own.start.take_pivots(group, pivots)
            if news:
                self._started(own, news)

    def _answered(self, own: OwnPathSubscription, publisher: str, broker: str) -> tuple[str, ...] | None:
        """Return the partial pivots of a publisher, if all of them have sent their markers."""
        if broker == self._name:
            return None
        answered = own.start.answered(publisher)
        pivots = self._regions.frontier(broker, self._name, answered, self._at_least)
        return pivots if pivots is not None and all(name in answered for name in pivots) else None
