"""Completing a hand-over at one member: the steps that `handover` explains, on this broker's state.

Everything here runs within one step of the broker. Until `_install` the region's links are not among the table's, so
whatever the rules of the table send goes to this broker's own side alone.
"""

from collections.abc import Callable

from gapless.events import Event
from gapless.filters import parse
from gapless.overlay import Overlay
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.members.contraction import effective_links, path_inside
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import (
    Admission,
    Cuts,
    Marker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    SideAdvertisement,
    TreeBody,
)  # fmt: skip
from gapless.protocols.gapless.recovery.contribution import MERGED, is_inside
from gapless.protocols.gapless.recovery.handover import (
    Handover,
    Inheritance,
    alias_of,
    decide_owners,
    divide_estates,
    find_holders,
    join_admissions,
)  # fmt: skip
from gapless.protocols.gapless.recovery.inference import Inference
from gapless.protocols.gapless.recovery.merge import find_pasts, merge_cuts, merge_logs
from gapless.protocols.gapless.retention.event_log import EventLog, Logged
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.routing.routing_table import Advertisement, Link, RoutingTable

__all__ = ["Takeover"]

NEVER = 1 << 62


class Takeover:
    """One completion."""

    def __init__(
        self,
        name: str,
        overlay: Overlay,
        status: Statuses,
        handover: Handover,
        table: RoutingTable,
        retired: dict[str, Link],
        clients: Desk,
        send: Callable[[Link, TreeBody], None],
        process: Callable[[Event, str, Cuts | None, dict[str, Session], int], None],
        journal: Journal,
        log: EventLog,
        with_logs: bool,
    ) -> None:
        self._name = name
        self._overlay = overlay
        self._region = handover.region
        self._handover = handover
        self._table = table
        self._retired = retired
        self._clients = clients
        self._send = send
        self._process = process
        self._journal = journal
        self._log = log
        inherited, self.heirs, self.estates = divide_estates(overlay, status, dict(handover.ordered()))
        self.inherited: list[Inheritance] = inherited
        self.holders = find_holders(dict(handover.ordered()), self.estates)
        """Of the clients in these estates: who holds a session of theirs already."""
        self.owners = decide_owners(handover, inherited)
        """Of the clients that several members held: who keeps the session."""
        self._towards = path_inside(overlay, status, handover.region.group, name)
        self._links = {
            peer: Link(peer, via, handover.region.tag)
            for via, peer in effective_links(overlay, status, name)
            if name in self._region.core or via in self._region.core
        }
        self._via = next((n for n in overlay.neighbours(name) if n in self._region.core), MERGED)
        if name in self._region.core:
            self._via = MERGED
        self.sessions: dict[str, Session] = {}
        """The sessions inherited here."""
        self._known_cuts: dict[str, Cuts] = {}
        """What anyone knows of the cuts of another's subscriptions. The latest is nearest to the subscriber."""
        for _, sync in handover.ordered():
            for subscription, cuts in sync.known_cuts.items():
                merge_cuts(self._known_cuts.setdefault(subscription, {}), cuts)
        for _, sync in handover.ordered():
            for item in sync.subscriptions:
                if item.ended in self._known_cuts:
                    merge_cuts(self._known_cuts.setdefault(item.subscription, {}), self._known_cuts[item.ended])
        logs = [sync.log for _, sync in handover.ordered()]
        self.admissions: dict[tuple[str, int], list[Admission]] = {}
        """By life: what it had admitted, or was about to."""
        self._doubtful: Cuts = {}
        """By publisher: the first event that nobody is known to have processed, so that it may lack backups."""
        self._join_admissions()
        estates = list(self.admissions.values())
        self._events = merge_logs(logs, estates) if with_logs else []
        self._pasts = find_pasts(self._events, logs, estates) if with_logs else {}
        filters = {
            item.subscription: parse(item.filter) for _, sync in handover.ordered() for item in sync.subscriptions
        }
        for share in inherited:
            filters.update({name: parse(text) for name, text in share.record.subscriptions.items()})
        for known in table.subscriptions.values():
            filters.setdefault(known.name, known.filter)
        self._note_later_publishers()
        inference = Inference(handover, inherited, self._events, self._pasts, filters, self._known_cuts)
        self._inferred = inference.infer_cuts()
        """By subscription and publisher: how early a cut may be that was inferred."""
        self._ended: dict[str, list[str]] = {}
        """By peer: the subscriptions that ended on this side since it sent its contribution."""

    def run(self) -> None:
        """All steps, in order."""
        lasting = self._yield_sessions() + self._outdate_sessions() + self._revive_ended()
        self._take_known_cuts()
        gone_advertisements = self._enter_advertisements()
        gone_subscriptions = self._enter_subscriptions()
        self._inherit()
        self._note_known_cuts()
        self._process_logs()
        for subscription in list(self._table.subscriptions.values()):
            self._table.answer(subscription)
        for name in gone_subscriptions:
            self._table.remove_subscription(name)
        for name in gone_advertisements:
            self._table.remove_advertisement(name)
        self._install()
        for name in lasting:
            self._table.remove_subscription(name)
        self._send_late_cuts()
        self._answer_advertisements()
        self._pass_on_late()
        if not self._table.is_complete:
            self._table.is_complete = True
            self._clients.all_known()

    def _is_inside(self, link: Link | None) -> bool:
        return link is not None and is_inside(self._region, self._name, link.via)

    def _link_to(self, member: str) -> Link:
        return self._links[self._towards[member]]

    def _others(self) -> list[str]:
        return [member for member in self._region.group if member != self._name]

    def _yield_sessions(self) -> list[str]:
        """Another member holds a newer session of the client: what it subscribes and publishes comes from there.

        Returns the names under which its subscriptions go on here until the links are installed.
        """
        aliases = []
        for client, owner in self.owners.items():
            if owner == self._name:
                continue
            session = self._clients.yield_session(client)
            if session is not None:
                for subscription in session.subscriptions.values():
                    alias = alias_of(subscription.name, self._name)
                    self._table.enter_subscription(alias, subscription.filter.text, None, subscription.cuts)
                    aliases.append(alias)
                    subscription.origin = self._link_to(owner)
                    subscription.client = ""
                for advertisement in session.advertisements.values():
                    self._table.move_advertisement(advertisement, self._link_to(owner))
        return aliases

    def _outdate_sessions(self) -> list[str]:
        """A session is inherited here in a newer state than it is held: what the client has ended since is over.

        Returns the names of those subscriptions, which go on here until the links are installed.
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
        """What ended here since the contribution was sent represents others at the other members until it is removed.

        Returns the names of those subscriptions, which go on here until the links are installed.
        """
        alive = {item.subscription for member in self._others() for item in self._handover.syncs[member].subscriptions}
        alive |= {name for share in self.inherited for name in share.record.subscriptions}
        alive |= self._table.subscriptions.keys()
        ended = [item for item in self._handover.own.subscriptions if item.subscription not in alive]
        for item in ended:
            self._table.enter_subscription(item.subscription, item.filter, None, item.cuts)
        return [item.subscription for item in ended]

    # ---- 0: what follows from the contributions -----------------------------------------------------------

    def _note_later_publishers(self) -> None:
        """An inherited subscription was there before every publisher that its broker neither knew nor waited for.

        It starts with the first event under the publisher's advertisement, as it would have at its broker.
        """
        offers = [
            (item.publisher, item.filter, item.first)
            for _, sync in self._handover.ordered()
            for item in sync.advertisements
        ]
        for share in self.inherited:
            offers += [(share.record.client, text, first) for text, first, _ in share.record.advertisements.values()]
        for share in self.inherited:
            for name, text in share.record.subscriptions.items():
                awaited = share.record.awaited.get(name)
                if awaited is None:
                    continue
                known = share.record.cuts.get(name, {}).keys() | set(awaited)
                for publisher, offer, first in offers:
                    if publisher not in known and parse(offer).overlaps(parse(text)):
                        known_cuts = self._known_cuts.setdefault(name, {})
                        known_cuts[publisher] = min(first, known_cuts.get(publisher, first))

    # ---- 1: markers ---------------------------------------------------------------------------------------

    def _take_known_cuts(self) -> None:
        for name, cuts in self._known_cuts.items():
            for link in self._retired.values():
                if self._is_inside(link):
                    self._table.receive_marker(link, name, cuts)

    # ---- 2: who publishes and who subscribes --------------------------------------------------------------

    def _enter_advertisements(self) -> list[str]:
        """Enter the others' advertisements; return those that are no more."""
        arriving: dict[str, tuple[SideAdvertisement, Link]] = {}
        for member in self._others():
            for item in self._handover.syncs[member].advertisements:
                arriving[item.advertisement] = (item, self._link_to(member))
        kept = {}
        for share in self.inherited:
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
        for name, (client, text, first) in kept.items():
            self._enter_advertisement(name, client, text, None, first)
        return gone

    def _enter_advertisement(self, name: str, publisher: str, text: str, link: Link | None, first: int) -> None:
        """Enter an advertisement that is not known here.

        If all stable ones were known, it was not stable yet, and what subscribes on this side was there before it.
        """
        if name not in self._table.advertisements:
            advertisement = self._table.enter_advertisement(name, publisher, text, link, first)
            if self._table.is_complete:
                own = [item for item in self._table.subscriptions.values() if not self._is_inside(item.origin)]
                self._table.start_with(advertisement, own)
            self._table.flood(advertisement)

    def _enter_subscriptions(self) -> list[str]:
        """Enter the others' subscriptions; return those that are no more."""
        arriving: dict[str, tuple[str, Cuts, Link]] = {}
        for member in self._others():
            for item in self._handover.syncs[member].subscriptions:
                arriving[item.subscription] = (item.filter, item.cuts, self._link_to(member))
        kept = {}
        for share in self.inherited:
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
            elif subscription.name in arriving:
                subscription.origin = arriving[subscription.name][2]
                self._table.take_cuts(subscription, arriving[subscription.name][1])
            elif subscription.name in kept:
                subscription.origin = None
                subscription.client = kept[subscription.name][0]
            else:
                gone.append(subscription.name)
        for name, (text, cuts, link) in arriving.items():
            if name not in self._table.subscriptions:
                self._table.spread(self._table.enter_subscription(name, text, link, cuts))
        for name, (client, text) in kept.items():
            if name not in self._table.subscriptions:
                self._table.spread(self._table.enter_subscription(name, text, None, {}, client))
        return gone

    def _note_known_cuts(self) -> None:
        """The same for publishers that were not known here before, and for the others' subscriptions."""
        for name, cuts in self._known_cuts.items():
            if name in self._table.subscriptions:
                self._table.inherit_cuts(self._table.subscriptions[name], cuts)
        self._answer_represented()

    def _answer_represented(self) -> None:
        """This broker is the pivot of its own side's subscriptions that others of them cover, now as before.

        For publishers that are, or were, on the others' sides; and not of subscriptions that it inherits.
        """
        shared = {item.subscription for item in self._handover.own.subscriptions}
        inherited = {name for share in self.inherited for name in share.record.subscriptions}
        inside = {share.record.client for share in self.inherited}
        inside |= {ad.publisher for ad in self._table.advertisements.values() if self._is_inside(ad.origin)}
        covers = [
            (cover.filter, {publisher: cut for publisher, cut in cover.cuts.items() if publisher in inside})
            for cover in self._table.subscriptions.values()
            if cover.name in shared
        ]
        for other in list(self._table.subscriptions.values()):
            if other.name in shared or other.name in inherited or self._is_inside(other.origin):
                continue
            earliest: Cuts = {}
            for pattern, cuts in covers:
                if any(publisher not in other.cuts for publisher in cuts) and pattern.covers(other.filter):
                    for publisher, cut in cuts.items():
                        earliest[publisher] = min(cut, earliest.get(publisher, NEVER))
            self._table.inherit_passing(other, earliest)

    # ---- the clients of the excluded ----------------------------------------------------------------------

    def _inherit(self) -> None:
        for share in self._own_shares():
            session = self._clients.inherit(share.record)
            session.admitted = min(session.admitted, self._doubtful.get(share.record.client, NEVER) - 1)
            self.sessions[share.record.client] = session
            for name in share.record.subscriptions:
                subscription = session.subscriptions[name] = self._table.subscriptions[name]
                awaited = share.record.awaited.get(name)
                subscription.awaited = None if awaited is None else dict.fromkeys(awaited)
                if name in self._inferred:
                    session.inferred[name] = self._inferred[name]
            for name, (_, _, is_stable) in share.record.advertisements.items():
                advertisement = self._table.advertisements[name]
                session.advertisements[name] = advertisement
                if is_stable:
                    session.stable[name] = None

    def _own_shares(self) -> list[Inheritance]:
        return [share for share in self.inherited if share.heir == self._name and not self._is_outdated(share)]

    def _is_outdated(self, share: Inheritance) -> bool:
        """Whether the client has come here already since the contributions were sent."""
        session = self._clients.sessions.get(share.record.client)
        return session is not None and session.epoch >= share.record.epoch

    # ---- 3: the logs --------------------------------------------------------------------------------------

    def _give_inherited_cuts(self) -> None:
        """The cuts that inherited subscriptions had. Where none is known, nothing was delivered either."""
        for share in self.inherited:
            session = self.sessions.get(share.record.client)
            if session is None:
                continue
            for name in share.record.subscriptions:
                subscription = self._table.subscriptions[name]
                for cuts in (share.record.cuts.get(name, {}), self._known_cuts.get(name, {})):
                    for publisher, cut in cuts.items():
                        subscription.cuts.setdefault(publisher, cut)
                if (
                    not share.record.cuts.get(name)
                    and name not in self._known_cuts
                    and share.record.awaited.get(name) != []
                ):
                    session.untold[name] = None

    def _process_logs(self) -> None:
        entered: dict[tuple[str, int], str] = {}
        for member, sync in self._handover.ordered():
            for entry in sync.log:
                if entry.entered:
                    entered[entry.event.publisher, entry.event.seq] = member
        own = {
            (item.event.publisher, item.event.seq)
            for life, admissions in self.admissions.items()
            for item in admissions
            if self.heirs[life] == self._name or item.event.publisher in self.sessions
        }
        self._give_inherited_cuts()
        places = self._log.places() if own else {}
        for event in self._events:
            key = (event.publisher, event.seq)
            member = entered.get(key, self._name)
            via = self._via if member == self._name else self._link_to(member).via
            is_new = event.seq > self._table.passed.get(event.publisher, 0)
            place, known = places.get(key, (None, 0))
            is_owed = key in own and not known
            number = self._journal.admit([event], self._pasts[key]) if is_owed else 0
            if place is not None and number:
                self._log.number(place, number)
            elif number and not is_new:  # it never came by here, but later ones of its publisher did
                self._log.append(Logged(event, via, number, self._pasts[key]))
            self._process(event, via, self._pasts[key], self.sessions, number)
            if number and event.seq >= self._doubtful.get(event.publisher, NEVER):
                self._clients.hold_back(event, number)
        for event in self._handover.late:
            self._process(event, self._via, None, self.sessions, 0)
        for sync in self._handover.syncs.values():
            merge_cuts(self._table.passed, sync.passed)
        for records in self.estates.values():
            merge_cuts(self._table.passed, {record.client: record.admitted for record in records.values()})

    def _join_admissions(self) -> None:
        """Up to the last that anybody is known to have processed, a life had admitted everything."""
        syncs = [sync for _, sync in self._handover.ordered()]
        processed: Cuts = {}
        for sync in syncs:
            merge_cuts(processed, sync.passed)
        held = [estate for sync in syncs for estate in sync.estates]
        publishers = {item.event.publisher for estate in held for item in estate.admissions}
        publishers |= {entry.event.publisher for sync in syncs for entry in sync.log}
        for life in self.estates:
            copies = [estate for estate in held if (estate.broker, estate.life) == life]
            self.admissions[life] = join_admissions(copies, publishers)
            for item in self.admissions[life]:
                merge_cuts(processed, item.after)
        for items in self.admissions.values():
            certain = 0
            for place, item in enumerate(items):
                if item.event.seq <= processed.get(item.event.publisher, 0):
                    certain = place + 1
            for item in items[certain:]:
                self._doubtful.setdefault(item.event.publisher, item.event.seq)

    # ---- 4: the links -------------------------------------------------------------------------------------

    def _install(self) -> None:
        for peer in [peer for peer, link in self._retired.items() if self._is_inside(link)]:
            del self._retired[peer]
        for link in self._links.values():
            for member, sync in self._handover.ordered():
                if member != self._name and self._link_to(member) is link:
                    continue
                for item in sync.subscriptions:
                    self._note_sent(link, item.subscription)
            for share in self.inherited:
                if share.heir == self._name or self._link_to(share.heir) is not link:
                    for name in share.record.subscriptions:
                        self._note_sent(link, name)
            self._table.links[link.peer] = link
        known = {item.advertisement for item in self._handover.own.advertisements}
        for link in self._links.values():
            for advertisement in self._table.advertisements.values():
                if advertisement.name not in known and not self._is_shared(advertisement):
                    advertisement.waiting[link.peer] = None
                    self._table.send_advertisement(link, advertisement)
        for subscription in list(self._table.subscriptions.values()):
            self._table.spread(subscription)
        for subscription in list(self._table.subscriptions.values()):
            self._table.answer(subscription)

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
            item.advertisement for sync in self._handover.syncs.values() for item in sync.advertisements if item.awaited
        }
        for share in self.inherited:
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

    def _send_late_cuts(self) -> None:
        """Markers for the others' subscriptions that came after this broker sent its contribution."""
        for subscription in self._table.subscriptions.values():
            if subscription.origin is not None and self._is_inside(subscription.origin):
                told = self._handover.told.get(subscription.name, {})
                news = {publisher: cut for publisher, cut in subscription.cuts.items() if publisher not in told}
                if news:
                    self._send(subscription.origin, Marker(subscription.name, news))

    def _pass_on_late(self) -> None:
        for event in self._handover.late:
            peers = {s.origin.peer: None for s in self._table.match(event) if s.origin is not None}
            for peer, link in self._links.items():
                if peer in peers:
                    self._send(link, Publication([event]))
        for peer, names in self._ended.items():
            for name in names:
                self._send(self._links[peer], RemoveSubscription(name))
        told = dict.fromkeys(item.advertisement for item in self._handover.own.advertisements)
        for share in self.inherited:
            if share.heir == self._name:
                told.update(dict.fromkeys(share.record.advertisements))
        for name in told:
            if name not in self._table.advertisements:
                for link in self._links.values():
                    self._send(link, RemoveAdvertisement(name))
