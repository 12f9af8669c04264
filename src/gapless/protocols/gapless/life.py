"""One life of a broker: its parts, made from those below to those above, as the package's map has them.

Some have to tell one that stands above them, and is made later: the table tells clients of their cuts, a wave lets
events be forgotten, a hand-over lets them be processed. What they are given for that stands at the end of `Life`.
"""

from collections.abc import Callable, Sequence

from gapless.events import Event, Events
from gapless.protocols.gapless.backup_course import BackupCourse
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.readings import Sources
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.event_course import LOCAL, EventCourse
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.history.refill import Refill
from gapless.protocols.gapless.lives import Status, name_life
from gapless.protocols.gapless.member_course import MemberCourse
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import BackupHeld, Body, Cuts, TreeBody
from gapless.protocols.gapless.names.floor import Floor
from gapless.protocols.gapless.names.service import Names
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.recovery.found import Found
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.persistence import Persistence
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Advertisement, Link, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.site import Site
from gapless.protocols.gapless.streams import Streams
from gapless.protocols.gapless.tree_course import TreeCourse
from gapless.protocols.gapless.wave_course import WaveCourse
from gapless.protocols.parts.clock import Clock

__all__ = ["Life"]

PRESSED = 32
"""A broker asks for wave after wave while it keeps this part of its window: at the pace of the clock it would fill."""


class Life:
    """Nothing of an earlier life is in it, but for what that left (`found`)."""

    def __init__(self, site: Site, number: int, found: Found | None, leave: Callable[[Status], None]) -> None:
        """`leave` is told when others have excluded this life."""
        self.number = number
        self._site = site
        self._home = name_life(site.name, number)
        self._is_first = number == 0
        self._make_who_lives()
        self._make_what_is_kept(found)
        self._make_who_is_served()
        self._make_what_goes_round_the_dead(found)
        self._make_ways(leave)

    def _make_who_lives(self) -> None:
        """Who lives, and how to reach them."""
        site = self._site
        self.clock = Clock()
        self.membership = _membership(site, self.number)
        self.streams = Streams(self.number, self.membership, self.clock, site.emit)

    def _make_what_is_kept(self, found: Found | None) -> None:
        """Events until they have reached everyone, the journal, and history."""
        site = self._site
        self.log = EventLog()
        self.journal = Journal(self.streams.send, self.clock)
        self.library = _library(site, self.number, self.journal, self.membership, found)
        self.journal.keep = self._keep
        self.floor = Floor(site.register, self.library.history) if site.options.history_keeps_names else None
        self.waves = Waves(
            self.log.cut,
            self._forget,
            self._is_busy,
            self._is_pressed,
            self.clock,
            self.library,
            knows_beginning=self._is_first or (found is not None and found.is_used),
            names=self.floor,
            span_us=int(site.options.session_s * 1_000_000),
        )
        self.refill = _refill(site, self.library, self.waves, self.membership, is_first=self._is_first)

    def _make_who_is_served(self) -> None:
        """Who subscribes, and the clients here."""
        site = self._site
        self.table = self._make_table()
        history = self.library.history
        self.estates = Estates(self._home, self.membership, self.journal, history, self._tell_near, site.disk)
        self.clients = Desk(
            self._home,
            site.options,
            self.table,
            self.journal,
            self.estates,
            Sources(self.library, self.waves, self._hurry, site.owners.may_read_history),
            contacts=(site.name, *site.overlay.within(site.name, site.f + 1)),
            send=site.send,
            set_timer=site.emit,
            process=self._process,
            done=self._done,
        )
        self.names = Names(
            self._home,
            site.options,
            site.register,
            self.clients,
            self.waves,
            self.clock,
            send=site.send,
            set_timer=site.emit,
            is_broker=site.overlay.__contains__,
            owners=site.owners,
        )

    def _make_table(self) -> RoutingTable:
        site = self._site
        table = RoutingTable(
            self.streams.send_tree,
            self._tell_cuts,
            self._tell_stable,
            frozenset(site.options.switched_off) | (set() if site.options.coverage else {"coverage"}),
            log_end=self._log_end,
        )
        table.is_complete = self._is_first
        for peer in site.overlay.neighbours(site.name) if self._is_first else ():
            table.links[peer] = Link(peer, peer, 0)
        return table

    def _make_what_goes_round_the_dead(self, found: Found | None) -> None:
        """Hand-overs, and what is on the disk for those who come later."""
        site = self._site
        self.state = BrokerState(
            site.options,
            self.membership,
            self.table,
            self.log,
            self.journal,
            self.waves,
            self.estates,
            self.clients,
            has_memory=self._is_first or (found is not None and found.is_used),
        )
        outlets = Outlets(
            send=self.streams.send,
            send_tree=self.streams.send_tree,
            process=self._process_merged,
            replay=self._replay,
            links_changed=self._links_changed,
            set_timer=site.emit,
            learn=self._learn,
            part=self._part,
            forget_after=self.library.forget_after,
        )
        self.handovers = Handovers(self.state, outlets)
        self.persistence = Persistence(self.state, self.library, site.disk, self.number, self._answer_backup)
        if found is not None:
            self.persistence.take_over(found)

    def _make_ways(self, leave: Callable[[Status], None]) -> None:
        """How everything goes its way."""
        site, state, send_tree = self._site, self.state, self.streams.send_tree
        self.events = EventCourse(state, self.handovers, send_tree)
        self.wave_course = WaveCourse(state, self.handovers, self.refill, send_tree, site.emit)
        self.tree_course = TreeCourse(state, self.handovers, self.events, self.wave_course, send_tree)
        self.backups = BackupCourse(site, state, self.streams, self.persistence, self.wave_course)
        self.members = MemberCourse(
            site,
            self.number,
            state,
            self.streams,
            self.handovers,
            self.refill,
            self.wave_course,
            self.backups,
            leave,
        )

    def set_time(self, now: int) -> None:
        """It is so late, in microseconds."""
        self.clients.now = self.clock.now = now

    # ---- what a part tells one that stands above it -------------------------------------------------------

    def _is_busy(self) -> bool:
        return len(self.log) > 0

    def _log_end(self) -> int:
        return self.log.end

    def _is_pressed(self) -> bool:
        return PRESSED * self.journal.weight > self._site.options.window

    def _forget(self, done: int) -> None:
        self.events.forget(done)

    def _keep(self, events: Events) -> int:
        return self.library.history.keep(self._site.name, events)

    def _tell_cuts(self, subscription: Subscription, cuts: Cuts) -> None:
        self.clients.tell_cuts(subscription, cuts)

    def _tell_stable(self, advertisement: Advertisement) -> None:
        self.clients.tell_stable(advertisement)

    def _process(self, events: Events, number: int) -> None:
        self.events.process(events, LOCAL, None, number)

    def _done(self, client: str) -> int:
        """Up to which number what a client published has reached everyone, as far as is known here."""
        return max(self.library.done.get(client, 0), self.log.done.get(client, 0))

    def _hurry(self) -> None:
        self.wave_course.hurry()

    def _tell_near(self, message: Body) -> None:
        for peer in self._site.near:
            self.streams.send(peer, message)

    def _answer_backup(self, peer: str, life: int, number: int) -> None:
        if self.membership.lives(peer, life):
            self.streams.send(peer, BackupHeld(number))

    def _process_merged(
        self, event: Event, via: str, after: Cuts | None, inherited: dict[str, Session], number: int
    ) -> None:
        self.events.process_merged(event, via, after, inherited, number)

    def _replay(self, link: Link, body: TreeBody) -> None:
        self.tree_course.take(link, body)

    def _links_changed(self) -> None:
        self.clients.readiness.check()
        self.wave_course.tick_if_root()
        self.wave_course.hurry(again=True)

    def _learn(self, status: Statuses) -> None:
        self.members.learn(status)

    def _part(self, brokers: Sequence[str]) -> None:
        self.members.part(brokers)


def _membership(site: Site, life: int) -> Membership:
    needs_majority = site.waits and "majority" not in site.options.switched_off
    return Membership(site.name, life, site.overlay, site.f, needs_majority=needs_majority)


def _library(site: Site, life: int, journal: Journal, membership: Membership, found: Found | None) -> Library:
    return Library(
        site.name,
        life,
        site.options.history_bytes,
        journal.admitted,
        site.overlay,
        site.radius,
        is_out=membership.excluded,
        may_return=membership.may_return,
        send=site.send,
        set_timer=site.emit,
        read_disk=site.emit,
        age_us=int(site.options.history_s * 1e6),
        found=None if found is None else (found.history, found.index),
    )


def _refill(site: Site, library: Library, waves: Waves, membership: Membership, *, is_first: bool) -> Refill:
    def holders(journal: str) -> tuple[str, ...]:
        return (journal, *site.overlay.within(journal, site.radius))

    near, count = (site.name, *site.near), site.f + 1
    return Refill(library, waves, near, holders, count, membership.excluded, site.emit, is_first=is_first)
