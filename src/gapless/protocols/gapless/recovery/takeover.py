"""Completing a hand-over at one member: the steps that `handover` explains, on this broker's state, by a plan.

The steps are pieces of one whole: the broker takes no other input before the last of them is done. Until `_install` the
region's links are not among the table's, so whatever the rules of the table send goes to this broker's own side alone.
"""

from collections.abc import Callable, Iterable

from gapless.events import Event
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.messages import (
    Cuts,
    Marker,
    Publication,
    RemoveAdvertisement,
    SideAdvertisement,
)  # fmt: skip
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.recovery.contribution import is_inside
from gapless.protocols.gapless.recovery.handover import Handover, Inheritance, alias_of
from gapless.protocols.gapless.recovery.merge import merge_cuts
from gapless.protocols.gapless.recovery.plan import TakeoverPlan
from gapless.protocols.gapless.recovery.starting_cut import find_effects, last_missed
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.retention.event_log import Logged
from gapless.protocols.gapless.routing.records import Advertisement, Link, Subscription

__all__ = ["Takeover"]

NEVER = 1 << 62
LOOKED_AT = 16
"""Small things that are looked at, for one unit of work."""
PROCESSED = 2
"""Units of work for an event of the merged log, which is matched twice."""
ENTERED = 4
"""Units of work for a subscription that is entered and passed on."""


class Takeover:
    """One completion."""

    def __init__(
        self, state: BrokerState, outlets: Outlets, handover: Handover, plan: TakeoverPlan, retired: dict[str, Link]
    ) -> None:
        self.plan = plan
        self.sessions: dict[str, Session] = {}
        """The sessions inherited here."""
        self._name = state.name
        self._table = state.table
        self._clients = state.clients
        self._journal = state.journal
        self._log = state.log
        self._outlets = outlets
        self._handover = handover
        self._own = plan.contributions[state.name]
        self._retired = retired
        self._links = {peer: Link(peer, via, plan.region.tag) for peer, via in plan.links.items()}
        self._ended: dict[str, list[str]] = {}
        """By peer: the subscriptions that ended on this side since it sent its contribution."""

    def apply(self) -> Pieces[None]:
        """All steps, in order."""
        try:
            yield from self._apply()
        finally:
            self._table.go_on()

    def _apply(self) -> Pieces[None]:
        lasting = self._yield_sessions() + self._give_up_unaware()
        lasting += self._outdate_sessions() + self._revive_ended()
        yield 1 + len(lasting)
        self._table.is_put_off = self._is_others
        sent = self._sent()
        yield from self._take_known_cuts()
        gone_advertisements = yield from self._enter_advertisements()
        gone_subscriptions = yield from self._enter_subscriptions()
        yield from self._inherit()
        yield from self._note_known_cuts()
        yield from self._process_logs()
        self._table.go_on(self._still_gets(sent))
        yield from self._answer_all()
        yield from self._remove_subscriptions(gone_subscriptions)
        for name in gone_advertisements:
            was_lost = self._table.advertisements[name].publisher in self.plan.gone
            self._table.remove_advertisement(name, was_lost=was_lost)
            yield 1 + len(self._table.subscriptions) // LOOKED_AT
        yield from self._install()
        yield from self._remove_subscriptions(lasting)
        yield from self._send_late_cuts()
        self._answer_advertisements()
        yield from self._pass_on_late()
        if not self._table.is_complete:
            self._table.is_complete = True
            self._clients.readiness.all_known()

    def _still_gets(self, sent: set[tuple[str, str]]) -> Callable[[Subscription], Cuts]:
        """What came by since this broker sent its contribution has not gone to the others yet.

        The smallest story: behind b0, S represents T, which has its cut of q, and gets q:1. S is on its way to p, which
        answers q:1 with p:1. b0 dies, b1 contributes, and then S's cut of p comes by, p:1, and p:1 itself. If b1 gave T
        a cut after p:1, because p:1 has come by, T would miss the answer.

        But all cuts that T gets here have to be of one time. If it has none of this side, or is sent on only now (over
        others than the links in `sent`), or somebody has left who published meanwhile, it starts after what came by.
        """
        first: Cuts = {}
        for event in self._handover.late:
            first.setdefault(event.publisher, event.seq)
        if not all(map(self._table.advertises, first)):
            return lambda subscription: {}
        here = {ad.publisher for ad in self._table.advertisements.values() if not self._is_inside(ad.origin)}
        begun = {name for name, cuts in self.plan.known_cuts.items() if not here.isdisjoint(cuts)}
        for share in self.plan.inherited:
            begun |= {name for name, cuts in share.record.cuts.items() if not here.isdisjoint(cuts)}
        for member in self._others():
            items = self.plan.contributions[member].subscriptions
            begun |= {item.subscription for item in items if not here.isdisjoint(item.cuts)}
        begun -= {name for _, name in self._sent() - sent}
        return lambda subscription: first if subscription.name in begun and self._is_others(subscription) else {}

    def _sent(self) -> set[tuple[str, str]]:
        """What is known over which links of this side; not asked if nothing is late."""
        links = self._table.links.values() if self._handover.late else ()
        return {(link.peer, name) for link in links for name in link.sent}

    def _answer_all(self) -> Pieces[None]:
        cost = 1 + len(self._table.advertisements) // LOOKED_AT
        for subscription in list(self._table.subscriptions.values()):
            self._table.answer(subscription)
            yield cost

    def _remove_subscriptions(self, names: Iterable[str]) -> Pieces[None]:
        for name in names:
            self._table.remove_subscription(name)
            yield ENTERED

    def _is_others(self, subscription: Subscription) -> bool:
        """Whether it is of another member's side, which takes what is in the logs with the cuts that all know: it gets
        further ones after that.

        The smallest story: b0 has returned, and is to be taken in once more. Behind b2, T is represented at b0 by S. A
        contribution tells S's cut of p, p:1, and p:1 is in the logs. b2 takes p:1 without a cut of T. If b0 gave T the
        cut p:1, T would miss it.
        """
        return self._is_inside(subscription.origin)

    def _is_inside(self, link: Link | None) -> bool:
        return link is not None and is_inside(self.plan.region, self._name, link.via)

    def _link_to(self, member: str) -> Link:
        return self._links[self.plan.towards[member]]

    def _others(self) -> list[str]:
        return [member for member in self.plan.region.group if member != self._name]

    def _yield_sessions(self) -> list[str]:
        """Give up the sessions that another member keeps: what their clients subscribe and publish comes from there.

        Their subscriptions may represent others. They go on here, under the names that this returns, until the links
        are installed.
        """
        aliases = []
        for client, owner in self.plan.owners.items():
            if owner == self._name:
                continue
            session = self._clients.yield_session(client, owner)
            if session is not None:
                aliases += self._enter_aliases(session)
                for subscription in session.subscriptions.values():
                    subscription.origin = self._link_to(owner)
                    subscription.client = ""
                for advertisement in session.advertisements.values():
                    self._table.move_advertisement(advertisement, self._link_to(owner))
        return aliases

    def _give_up_unaware(self) -> list[str]:
        """Let the clients come anew, if their sessions are from a life that others went round.

        They may represent others, too, and go on under the names that this returns until the links are installed.
        """
        aliases = []
        published, late = self.plan.published, self._handover.late
        for publisher, last in published.items():
            self._table.take_back(publisher, last)
        if published:
            self._log.void(published)
            self._journal.void(published)
            late[:] = [event for event in late if event.seq <= published.get(event.publisher, NEVER)]
        for session in list(self._clients.sessions.values()) if self._name in self.plan.unaware else ():
            aliases += self._enter_aliases(session)
            self._clients.lose_all(session, self.plan.published.get(session.client, session.admitted))
        return aliases

    def _enter_aliases(self, session: Session) -> list[str]:
        """Let the session's subscriptions go on here under other names: which ones?"""
        aliases = []
        for subscription in session.subscriptions.values():
            aliases.append(alias_of(subscription.name, self._name))
            self._table.enter_subscription(aliases[-1], subscription.filter.text, None, subscription.cuts)
        return aliases

    def _outdate_sessions(self) -> list[str]:
        """End what a client has ended elsewhere, if its session is inherited in a newer state than the one held here.

        Its smallest story: this broker holds a session. Its client goes back to an excluded broker that has not noticed
        that, and ends a subscription there. The session is inherited from there: the subscription must not live on.
        Returns the names of these subscriptions. They go on here until the links are installed.
        """
        ended = []
        for share in self._own_shares():
            session = self._clients.sessions.get(share.record.client)
            if session is not None:
                for name in session.subscriptions.keys() - share.record.subscriptions.keys():
                    session.subscriptions[name].client = ""
                    ended.append(name)
        return sorted(ended)

    def _revive_ended(self) -> list[str]:
        """Bring back what ended here since this broker sent its contribution.

        Its smallest story: S covers T, and this broker contributes S alone, so S represents T at the other members. S
        ends before the hand-over is complete. If S just went, T would reach the others as a new one, with later cuts.
        Returns the names of these subscriptions. They are removed when the links are installed and T has inherited.
        """
        alive = {
            item.subscription for member in self._others() for item in self.plan.contributions[member].subscriptions
        }
        alive |= {name for share in self.plan.inherited for name in share.record.subscriptions}
        alive |= self._table.subscriptions.keys()
        ended = [item for item in self._own.subscriptions if item.subscription not in alive]
        for item in ended:
            self._table.enter_subscription(item.subscription, item.filter, None, item.cuts)
        return [item.subscription for item in ended]

    # ---- 1: markers ---------------------------------------------------------------------------------------

    def _take_known_cuts(self) -> Pieces[None]:
        links = [link for link in self._retired.values() if self._is_inside(link)]
        for name, cuts in self.plan.known_cuts.items():
            for link in links:
                self._table.receive_marker(link, name, cuts)
                yield 1 + len(link.advertisements) // LOOKED_AT

    # ---- 2: who publishes and who subscribes --------------------------------------------------------------

    def _enter_advertisements(self) -> Pieces[list[str]]:
        """Enter the others' advertisements; return those that have ended."""
        arriving: dict[str, tuple[SideAdvertisement, Link]] = {}
        for member in self._others():
            for item in self.plan.contributions[member].advertisements:
                arriving[item.advertisement] = (item, self._link_to(member))
        kept = {}
        for share in self.plan.inherited:
            for name, (text, first, is_stable) in share.record.advertisements.items():
                if share.heir == self._name:
                    if not self._is_outdated(share):
                        kept[name] = (share.record.client, text, first)
                else:
                    item = SideAdvertisement(name, share.record.client, text, first, not is_stable)
                    arriving[name] = (item, self._link_to(share.heir))
        own = {share.record.client for share in self._own_shares()}
        gone = []
        for advertisement in list(self._table.advertisements.values()):
            if advertisement.origin is None and advertisement.publisher in own and advertisement.name not in kept:
                gone.append(advertisement.name)
            elif not self._is_inside(advertisement.origin):
                arriving.pop(advertisement.name, None)
            elif advertisement.name in arriving:
                self._table.move_advertisement(advertisement, arriving[advertisement.name][1])
            elif advertisement.name in kept:
                self._table.move_advertisement(advertisement, None)
            else:
                gone.append(advertisement.name)
        for name, (item, link) in arriving.items():
            self._enter_advertisement(name, item.publisher, item.filter, link, item.first)
            yield 1 + len(self._table.subscriptions) // LOOKED_AT
        for name, (client, text, first) in kept.items():
            self._enter_advertisement(name, client, text, None, first)
            yield 1 + len(self._table.subscriptions) // LOOKED_AT
        return gone

    def _enter_advertisement(self, name: str, publisher: str, text: str, link: Link | None, first: int) -> None:
        """Enter an advertisement that is not known here.

        If all stable ones were known, it was not stable yet, and what subscribes on this side was there before it.
        But after more than f have failed, it may come from an old disk (`NextNumbers`).
        """
        if name not in self._table.advertisements:
            first = self.plan.next_numbers.of(publisher, max(first, self._table.passed.get(publisher, 0) + 1))
            advertisement = self._table.enter_advertisement(name, publisher, text, link, first)
            if self._table.is_complete:
                own = [item for item in self._table.subscriptions.values() if not self._is_inside(item.origin)]
                self._table.start_with(advertisement, own, self._missed(advertisement, own))
            self._table.flood(advertisement)

    def _missed(self, advertisement: Advertisement, subscriptions: Iterable[Subscription]) -> dict[str, int]:
        """By subscription: which events under an advertisement from an old disk it must not start with."""
        effects = find_effects(self.plan.events, self.plan.pasts, advertisement.publisher, advertisement.first)
        passed = self._table.passed
        return {item.name: last_missed(effects, item, passed) for item in subscriptions} if effects else {}

    def _enter_subscriptions(self) -> Pieces[list[str]]:
        """Enter the others' subscriptions; return those that have ended."""
        arriving: dict[str, tuple[str, Cuts, Link]] = {}
        for member in self._others():
            for item in self.plan.contributions[member].subscriptions:
                arriving[item.subscription] = (item.filter, item.cuts, self._link_to(member))
        kept = {}
        for share in self.plan.inherited:
            for name, text in share.record.subscriptions.items():
                if share.heir == self._name:
                    if not self._is_outdated(share):
                        kept[name] = (share.record.client, text)
                else:
                    arriving[name] = (text, {}, self._link_to(share.heir))
        gone = []
        for subscription in list(self._table.subscriptions.values()):
            if not self._is_inside(subscription.origin):
                arriving.pop(subscription.name, None)
            elif subscription.name in arriving and subscription.name in self.plan.renewed:
                self._table.remove_subscription(subscription.name)
                yield ENTERED
            elif subscription.name in arriving:
                subscription.origin = arriving[subscription.name][2]
                self._table.take_cuts(subscription, arriving[subscription.name][1])
                yield 1
            elif subscription.name in kept:
                subscription.origin = None
                subscription.client = kept[subscription.name][0]
            else:
                gone.append(subscription.name)
        for name, (text, cuts, link) in arriving.items():
            if name not in self._table.subscriptions:
                self._table.spread(self._table.enter_subscription(name, text, link, cuts))
                yield ENTERED
        for name, (client, text) in kept.items():
            if name not in self._table.subscriptions:
                self._table.spread(self._table.enter_subscription(name, text, None, {}, client))
                yield ENTERED
        return gone

    def _note_known_cuts(self) -> Pieces[None]:
        """Take the known cuts for publishers that were not known here before, and for the others' subscriptions."""
        for name, cuts in self.plan.known_cuts.items():
            if name in self._table.subscriptions:
                self._table.inherit_cuts(self._table.subscriptions[name], cuts)
                yield 1
        yield from self._answer_represented()

    def _answer_represented(self) -> Pieces[None]:
        """Answer the subscriptions of the own side that others of it cover: this broker is their pivot, as before.

        It answers for publishers that are, or were, on the other sides, and not for subscriptions that it inherits.
        The smallest story of these: an S of the heir covers an inherited T. T had cuts of its own, and S never
        represented it at its broker. With the cuts of S, T would miss what it was promised.
        """
        shared = {item.subscription for item in self._own.subscriptions}
        inherited = {name for share in self.plan.inherited for name in share.record.subscriptions}
        inside = {share.record.client for share in self.plan.inherited}
        inside |= {ad.publisher for ad in self._table.advertisements.values() if self._is_inside(ad.origin)}
        covers = {
            cover.name: {publisher: cut for publisher, cut in cover.cuts.items() if publisher in inside}
            for cover in self._table.subscriptions.values()
            if cover.name in shared
        }
        for other in list(self._table.subscriptions.values()):
            if other.name in shared or other.name in inherited or self._is_inside(other.origin):
                continue
            earliest: Cuts = {}
            for cover in self._table.covering(other.filter):
                cuts = covers.get(cover.name, {})
                if any(publisher not in other.cuts for publisher in cuts):
                    for publisher, cut in cuts.items():
                        earliest[publisher] = min(cut, earliest.get(publisher, NEVER))
            self._table.inherit_passing(other, earliest)
            yield ENTERED

    # ---- the clients of the excluded ----------------------------------------------------------------------

    def _inherit(self) -> Pieces[None]:
        for share in self._own_shares():
            session = self._clients.inherit(share.record)
            session.admitted = min(session.admitted, self.plan.doubtful.get(share.record.client, NEVER) - 1)
            self.sessions[share.record.client] = session
            for name in share.record.subscriptions:
                subscription = session.subscriptions[name] = self._table.subscriptions[name]
                awaited = share.record.awaited.get(name)
                subscription.awaited = None if awaited is None else dict.fromkeys(awaited)
                if name in self.plan.inferred:
                    session.inferred[name] = self.plan.inferred[name]
            for name, (_, _, is_stable) in share.record.advertisements.items():
                advertisement = self._table.advertisements[name]
                session.advertisements[name] = advertisement
                if is_stable:
                    session.stable[name] = None
            yield 1 + len(share.record.subscriptions)

    def _own_shares(self) -> list[Inheritance]:
        return [share for share in self.plan.inherited if share.heir == self._name and not self._is_outdated(share)]

    def _is_outdated(self, share: Inheritance) -> bool:
        """Whether the client has come here since the contributions were sent."""
        session = self._clients.sessions.get(share.record.client)
        return session is not None and session.epoch >= share.record.epoch

    # ---- 3: the logs --------------------------------------------------------------------------------------

    def _give_inherited_cuts(self) -> None:
        """Give inherited subscriptions the cuts they had. Where no cut is known, nothing was delivered either.

        A publisher may have left since, and come back. Then this broker knows a later cut. The earlier one counts for
        the client, which may not have heard of it.
        """
        for share in self.plan.inherited:
            session = self.sessions.get(share.record.client)
            if session is None:
                continue
            for name in share.record.subscriptions:
                subscription = self._table.subscriptions[name]
                for publisher, cut in share.record.cuts.get(name, {}).items():
                    if cut < subscription.cuts.get(publisher, cut):
                        session.last_cuts.setdefault(name, {})[publisher] = cut
                for cuts in (share.record.cuts.get(name, {}), self.plan.known_cuts.get(name, {})):
                    for publisher, cut in cuts.items():
                        subscription.cuts.setdefault(publisher, cut)
                if (
                    not share.record.cuts.get(name)
                    and name not in self.plan.known_cuts
                    and share.record.awaited.get(name) != []
                ):
                    session.untold[name] = None

    def _process_logs(self) -> Pieces[None]:
        own = {
            (item.event.publisher, item.event.seq)
            for life, admissions in self.plan.admissions.items()
            for item in admissions
            if self.plan.heirs[life] == self._name or item.event.publisher in self.sessions
        }
        own |= self.plan.adopted
        self._give_inherited_cuts()
        self._log.keep_pasts(self.plan.pasts, lambda via: is_inside(self.plan.region, self._name, via))
        places = self._log.places() if own else {}
        for event in self.plan.events:
            key = (event.publisher, event.seq)
            self._journal.clock.see(event.stamp)
            member = self.plan.entered.get(key, self._name)
            via = self.plan.via if member == self._name else self._link_to(member).via
            is_new = event.seq > self._table.passed.get(event.publisher, 0)
            place, known = places.get(key, (None, 0))
            is_owed = key in own and not known
            if key in self.plan.buried:
                yield from self._tell_inherited(self.plan.buried[key])
                if is_owed:
                    self._note_for_history(self.plan.buried[key])
            number = self._journal.admit([event], self.plan.pasts[key]) if is_owed else 0
            if place is not None and number:
                self._log.number(place, number)
            elif number and not is_new:
                # Nothing here matched it, so it never came by, but later ones of its publisher did. The client that
                # gets it is this broker's now: if this broker dies before the client has it, its backups must know it.
                self._log.append(Logged([event], via, number, self.plan.pasts[key]))
            self._outlets.process(event, via, self.plan.pasts[key], self.sessions, number)
            if number and event.seq >= self.plan.doubtful.get(event.publisher, NEVER):
                # Only some backups of the dead broker may hold it. If the heir let its clients see it and died, it
                # might be gone for good, and its effects not.
                self._clients.hold_back(event, number)
                yield len(self._clients.sessions) // LOOKED_AT
            yield PROCESSED
        for event in self._handover.late:
            self._outlets.process(event, self.plan.via, None, self.sessions, 0)
            yield PROCESSED
        for sync in self.plan.contributions.values():
            merge_cuts(self._table.passed, sync.passed)
        for records in self.plan.estates.values():
            merge_cuts(self._table.passed, {record.client: record.admitted for record in records.values()})

    def _tell_inherited(self, lost: list[Event]) -> Pieces[None]:
        """Nobody who subscribed misses these, but for clients of the dead: those who served them had them last."""
        for client, session in self.sessions.items():
            if session.subscriptions:
                self._clients.deliver(client, [Outgoing(lost, list(session.subscriptions))])
                yield len(lost)

    def _note_for_history(self, lost: list[Event]) -> None:
        """These tombstones go nowhere: nobody waits for them, so they have reached everyone."""
        number = self._journal.admit(lost, {})
        self._journal.forget([(number - len(lost) + 1, number)])

    # ---- 4: the links -------------------------------------------------------------------------------------

    def _install(self) -> Pieces[None]:
        for peer in [peer for peer, link in self._retired.items() if self._is_inside(link)]:
            del self._retired[peer]
        for link in self._links.values():
            for member, sync in self.plan.contributions.items():
                if member != self._name and self._link_to(member) is link:
                    continue
                for item in sync.subscriptions:
                    self._note_sent(link, item.subscription)
                yield len(sync.subscriptions) // LOOKED_AT
            for share in self.plan.inherited:
                if share.heir == self._name or self._link_to(share.heir) is not link:
                    for name in share.record.subscriptions:
                        self._note_sent(link, name)
            self._table.links[link.peer] = link
        known = {item.advertisement for item in self._own.advertisements}
        for link in self._links.values():
            for advertisement in self._table.advertisements.values():
                if advertisement.name not in known and not self._is_shared(advertisement):
                    advertisement.waiting[link.peer] = None
                    self._table.send_advertisement(link, advertisement)
        for subscription in list(self._table.subscriptions.values()):
            self._table.spread(subscription)
            yield ENTERED
        yield from self._answer_all()

    def _note_sent(self, link: Link, name: str) -> None:
        subscription = self._table.subscriptions.get(name)
        if subscription is None:
            self._ended.setdefault(link.peer, []).append(name)
        else:
            self._table.mark_sent(link, subscription)

    def _is_shared(self, advertisement: Advertisement) -> bool:
        """Whether all members know of the advertisement from the contributions."""
        return self._is_inside(advertisement.origin) or advertisement.publisher in self.sessions

    def _answer_advertisements(self) -> None:
        awaited = {
            item.advertisement
            for sync in self.plan.contributions.values()
            for item in sync.advertisements
            if item.awaited
        }
        for share in self.plan.inherited:
            awaited |= {name for name, (_, _, is_stable) in share.record.advertisements.items() if not is_stable}
        for advertisement in list(self._table.advertisements.values()):
            for peer in [
                peer for peer in advertisement.waiting if peer not in self._table.links and peer not in self._retired
            ]:
                del advertisement.waiting[peer]
            if advertisement.name in awaited:
                for peer, link in self._links.items():
                    if link is not advertisement.origin:
                        advertisement.waiting[peer] = None
                self._table.conclude(advertisement)

    # ---- what came meanwhile ------------------------------------------------------------------------------

    def _send_late_cuts(self) -> Pieces[None]:
        """Tell the others the cuts of their subscriptions that this broker learned after it sent its contribution.

        Their smallest story: a marker for a subscription behind the dead broker arrives during the hand-over. The
        contribution does not hold it and the old link is gone; without this, its subscriber would wait for ever. If the
        publisher has taken its advertisement back as well, the subscriber would miss what came between.
        """
        for subscription in self._table.subscriptions.values():
            if subscription.origin is not None and self._is_inside(subscription.origin):
                is_renewed = subscription.name in self.plan.renewed
                told = {} if is_renewed else self._handover.told.get(subscription.name, {})
                cuts = {**subscription.former, **subscription.cuts}
                news = {publisher: cut for publisher, cut in cuts.items() if publisher not in told}
                if news:
                    self._outlets.send_tree(subscription.origin, Marker(subscription.name, news))
                yield 1

    def _pass_on_late(self) -> Pieces[None]:
        for event in self._handover.late:
            peers = {s.origin.peer: None for s in self._table.match(event) if s.origin is not None}
            for peer, link in self._links.items():
                if peer in peers:
                    self._outlets.send_tree(link, Publication([event]))
            yield 1
        for peer, names in self._ended.items():
            for name in names:
                self._table.take_off(self._links[peer], name)
        told = dict.fromkeys(item.advertisement for item in self._own.advertisements)
        for share in self.plan.inherited:
            if share.heir == self._name:
                told.update(dict.fromkeys(share.record.advertisements))
        for name in told:
            if name not in self._table.advertisements:
                for link in self._links.values():
                    self._outlets.send_tree(link, RemoveAdvertisement(name))
