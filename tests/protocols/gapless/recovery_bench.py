"""Small things to build hand-overs of: events, contributions, and the parts of one broker without its streams."""

from typing import Any

import msgspec

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.readings import Sources
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.clock import Clock
from gapless.protocols.gapless.history.library import Library
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.contraction import Region, regions_at
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import Body, Cuts, LogEntry, SessionRecord, Sync, TreeBody
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.pieces import finish
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable


def event(publisher: str, seq: int, x: int = 0) -> Event:
    """An event with one attribute."""
    return Event(publisher, seq, {"x": x})


def logged(*events: Event, entered: bool = True) -> list[LogEntry]:
    """A log in which all events came in through its owner, or none."""
    return [LogEntry(item, entered, None) for item in events]


def region_at(overlay: Overlay, status: Statuses, name: str) -> Region:
    """The only region that the broker is a member of."""
    [region] = regions_at(overlay, status, name)
    return region


def record(client: str, epoch: int = 1, **fields: Any) -> SessionRecord:
    """A session as backups know it; whatever is not given is empty."""
    empty = SessionRecord(client, epoch, 1, {}, {}, {}, 0, {})
    return msgspec.structs.replace(empty, **fields)


def contribution(region: Region, **fields: Any) -> Sync:
    """A member's contribution; whatever is not given is empty."""
    empty = Sync(region.tag, list(region.core), {}, [], [], {}, [], {}, 0, [], {}, {}, {})
    return msgspec.structs.replace(empty, **fields)


class Bench:
    """The parts of one broker, and what it says."""

    def __init__(self, name: str, overlay: Overlay, life: int = 0) -> None:
        self.sent: list[tuple[str, Body]] = []
        self.along: list[tuple[str, TreeBody]] = []
        self.processed: list[tuple[Event, str, Cuts | None, int]] = []
        self.replayed: list[TreeBody] = []
        self.learned: list[dict[str, int]] = []
        self.to_clients: list[tuple[str, Any]] = []
        options = GaplessOptions()
        membership = Membership(name, life, overlay, 1)
        self.told: list[tuple[str, Cuts]] = []
        table = RoutingTable(
            send=lambda link, body: self.along.append((link.peer, body)),
            tell_client=lambda subscription, cuts: self.told.append((subscription.name, cuts)),
            advertisement_stable=lambda advertisement: None,
            log_end=lambda: self.state.log.end,
        )
        for peer in overlay.neighbours(name) if life == 0 else ():
            table.links[peer] = Link(peer, peer, 0)
        table.is_complete = life == 0
        clock = Clock()
        journal = Journal(lambda peer, body: self.sent.append((peer, body)), clock)
        log = EventLog()
        library = Library(
            name, options.history_bytes, journal.admitted, overlay, 2, membership.excluded,
            send=lambda peer, message: None, set_timer=lambda effect: None,
        )  # fmt: skip
        waves = Waves(log.cut, lambda done: None, lambda: False, lambda: False, clock, library)
        home = name_life(name, life)
        estates = Estates(home, membership, journal, library.history, lambda body: self.sent.append(("*", body)))
        desk = Desk(
            home, options, table, journal, estates, Sources(library, waves, lambda: None), contacts=(name,),
            send=lambda client, message: self.to_clients.append((client, message)), set_timer=lambda effect: None,
            process=lambda events, number: None,
        )  # fmt: skip
        self.state = BrokerState(options, membership, table, log, journal, waves, estates, desk)
        self.outlets = Outlets(
            send=lambda peer, body: self.sent.append((peer, body)),
            send_tree=lambda link, body: self.along.append((link.peer, body)),
            process=self._process,
            replay=lambda link, body: self.replayed.append(body),
            links_changed=lambda: None,
            set_timer=lambda effect: None,
            learn=self.learned.append,
        )
        self.handovers = Handovers(self.state, self.outlets)

    def _process(self, item: Event, via: str, after: Cuts | None, inherited: dict[str, Session], number: int) -> None:
        self.processed.append((item, via, after, number))
        passed = self.state.table.passed
        passed[item.publisher] = max(item.seq, passed.get(item.publisher, 0))

    def learn(self, status: Statuses) -> None:
        """Others' statuses change; the hand-overs follow, and do what there is to do."""
        self.state.membership.merge(status)
        self.handovers.follow()
        self.work()

    def work(self) -> None:
        """All that there is to do for hand-overs."""
        if self.handovers.has_work:
            finish(self.handovers.work())

    def syncs(self) -> list[tuple[str, Sync]]:
        """The contributions that it sent since they were asked for last."""
        found = [(peer, body) for peer, body in self.sent if isinstance(body, Sync)]
        self.sent = [item for item in self.sent if not isinstance(item[1], Sync)]
        return found
