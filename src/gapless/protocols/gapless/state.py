"""The state of one incarnation of a broker.

Everything here is plain data. The modules of the protocol are functions that change it; `broker.after_step` then
re-establishes what has to hold between steps.
"""

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from gapless.events import Events
from gapless.filters import FilterIndex
from gapless.protocol import Effect, Owners, Send, SetTimer
from gapless.protocols.gapless.channel import Channel
from gapless.protocols.gapless.client_state import LocalSubscription, NewestSearch, Reading, Session
from gapless.protocols.gapless.disk_state import Disk, Waiting
from gapless.protocols.gapless.durable.state import DurableState
from gapless.protocols.gapless.identities import Incarnation, Name, Status
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.link_messages import FinalPosition, LinkBody, LinkMessage
from gapless.protocols.gapless.measures import Measures
from gapless.protocols.gapless.membership_messages import Contribution, Memory
from gapless.protocols.gapless.membership_state import STAGES, Acceptor, Handover, Proposal, Stage
from gapless.protocols.gapless.messages import Body
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.routing_state import Advertisement, Link, LinkKey, Subscription, WaveState
from gapless.protocols.gapless.topology import FIRST, Region, Statuses, Topology
from gapless.protocols.parts.clock import Clock
from gapless.protocols.parts.transitions import follow

__all__ = ["BrokerState"]


class BrokerState:
    """One incarnation of a broker."""

    def __init__(self, name: str, number: int, topology: Topology, options: GaplessOptions) -> None:
        self.name = name
        self.number = number
        self.incarnation = Incarnation(name, number)
        self.topology = topology
        self.options = options
        self.off = frozenset(options.switched_off)
        self.effects: list[Effect] = []
        self.timers: set[str] = set()
        """The keys of those that are running."""
        self.clock = Clock()
        self.stage = Stage.JOINED if number == 0 else Stage.RECOVERING
        # membership
        self.statuses: Statuses = {}
        if number:
            self.statuses[name] = Status(number, 0, 0)
        self.channels: dict[str, Channel] = {}
        self.suspects: set[str] = set()
        self.accusers: dict[Incarnation, set[str]] = {}
        self.acceptors: dict[str, Acceptor] = {
            other: Acceptor(has_recovered=number == 0) for other in (name, *topology.accepts_for[name])
        }
        self.proposals: dict[str, Proposal] = {}
        self.proposal_attempts: dict[str, int] = {}
        self.ballot_round = number
        """Of the last ballot that was heard of; a new incarnation begins above those that sealed the ones before it."""
        self.memory = Memory.NONE
        """The state that it began with, if it is not its first incarnation."""
        self.has_waited = False
        """Whether it has given those that return from an outage their time."""
        self.disk = Disk()
        self.waiting: deque[Waiting] = deque()
        """Messages that leave when the disk has the state that they rely on."""
        self.join_replies: dict[str, dict[str, Any]] = {}
        """While it recovers: by broker whose electorate it belongs to, who has answered, and what."""
        self.vouched: dict[Incarnation, set[Incarnation]] = {}
        """Before its first handover: by incarnation, the members of its electorate that had not promised to exclude it
        when they heard of this one."""
        self.asked_vouchers: set[str] = set()
        self.greeted: set[str] = set()
        # journals
        self.journal = Journal()
        self.journals: dict[Incarnation, Journal] = {}
        """Copies of others' journals."""
        self.released = 0
        self.stable_entries = 0
        """So many entries of the journal have been processed by all brokers."""
        self.window = topology.window(name, options.window, options.history_bytes)
        self.window_used = 0
        """The cost of the others (`journal_state.cost_of`)."""
        self.refilling: tuple[Incarnation, str] | None = None
        """The journal whose earlier entries were asked for, and of whom."""
        self.refill_waited = 0
        self.refill_tried: set[str] = set()
        """The members that have none of them."""
        self.wanted_journals: dict[Incarnation, set[Incarnation]] = {}
        """Sealed ones that are wanted here: who has sent all that it has."""
        self.held_by: dict[Incarnation, int] = {}
        """How much of the journal each acceptor has acknowledged."""
        self.holders: list[Incarnation] = []
        """The acceptors that get what is admitted."""
        # routing
        self.links: dict[LinkKey, Link] = {}
        self.early: dict[LinkKey, list[LinkBody]] = {}
        """Messages along links that are not installed here yet."""
        self.removed_links: set[LinkKey] = set()
        self.subscriptions: dict[Name, Subscription] = {}
        self.index: FilterIndex[Name] = FilterIndex()
        self.advertisements: dict[Name, Advertisement] = {}
        self.advertised_after: dict[str, int] = {}
        """By publisher of these: events with larger numbers matched one of them."""
        self.seen: dict[str, int] = {}
        """By publisher: whatever comes by from now on has a larger number."""
        self.log: dict[tuple[str, int], Events] = {}
        """Events that were processed here and are not stable, by publisher and last number."""
        # clients
        self.sessions: dict[str, Session] = {}
        self.arrivals: dict[str, Session] = {}
        """Sessions that wait for their fence."""
        self.latest_sessions: dict[str, int] = {}
        """By client that has left for another broker: the session that it asked for there. An earlier process that is
        still there does not come back."""
        self.locals: dict[Name, LocalSubscription] = {}
        self.pending: dict[Name, LocalSubscription] = {}
        self.searches: dict[Name, NewestSearch] = {}
        """Local subscriptions that begin or end at the newest position, until that is known."""
        self.busy_clients: dict[str, None] = {}
        """Those whose sessions have calls to take, or close."""
        self.missing: dict[str, int] = {}
        """By client with a session here: a number of its publications that others have seen, and that is not here."""
        self.restarts: dict[Name, None] = {}
        """Local attempts that a void or the end of an advertisement starts again."""
        # positions
        self.final = FinalPosition()
        self.sealed_final: dict[Incarnation, int] = {}
        """The seals that a final position includes: an entry speaks of all incarnations below its number, and has the
        clock of the handover that removed them."""
        self.sealed_here: dict[Incarnation, int] = {}
        """The same for handovers that this broker has completed."""
        self.told_at = 0
        """When clients were last notified of a final position;"""
        self.told_next: deque[str] = deque()
        """the clients to notify next, if they are too many for one final position (see `positions`)."""
        self.stable = 0
        self.smallest_final = 0
        """At the root: what the last wave found."""
        self.wave: WaveState | None = None
        self.wave_began = 0
        self.wave_wanted = False
        """At the root: whether somebody waits for a final position."""
        self.wave_lost = False
        """At the root: whether a handover has ended since the last wave began."""
        self.has_asked_wave = False
        """Whether the root was asked for a wave since the last final position."""
        # history
        self.deleted: dict[str, int] = {}
        """By publisher: the timestamp up to which its events are deleted here (see `deleting`)."""
        self.deleted_upto = 0
        """The largest of these."""
        self.readings: dict[int, Reading] = {}
        self.due_readings: dict[int, None] = {}
        """The readings that may continue."""
        self.read_work = 0
        """The work for them in this turn."""
        self.lagging: dict[str, None] = {}
        """Clients for which too much waits."""
        self.next_request = 1
        # handover
        self.handover: Handover | None = None
        self.contributions: dict[str, Contribution] = {}
        """The latest of each broker."""
        self.completed: dict[int, Region] = {}
        self.covered: list[tuple[frozenset[Any], frozenset[Any]]] = []
        """Of each completed handover: the statuses of the core, and the incarnations of the group."""
        self.is_installed = number == 0
        """Whether it has ever been part of the tree."""
        self.membership_changed = True
        self.completions: dict[int, set[str]] = {}
        self.inbox: deque[tuple[str, Any]] = deque()
        """Inputs that wait for the end of a handover."""
        self.inbox_work = 0
        """The work on it so far in this step (see `inputs.work_of`)."""
        self.waiting_weights: dict[str, int] = {}
        """By client: how much of the inbox is its (see `claims`)."""
        self.waiting_attaches: dict[str, Any] = {}
        """Of the `Attach` messages of one client only the last one waits."""
        self.isolated_ticks = 0
        """For how long it has not heard enough acceptors to confirm anything."""
        self.is_cut_off = False
        """Whether that has lasted: its clients are served elsewhere."""
        self.owners = Owners()
        self.measures = Measures()
        self.durable = DurableState(is_first=number == 0)

    # ---- shorthands ---------------------------------------------------------------------------------------

    @property
    def is_frozen(self) -> bool:
        """Whether a handover, or the wait for the first one, keeps everything else waiting."""
        return self.handover is not None or not self.is_installed

    def status(self, name: str) -> Status:
        return self.statuses.get(name, FIRST)

    def current(self, name: str) -> Incarnation:
        """The latest incarnation of a broker."""
        status = self.statuses.get(name)
        return Incarnation(name, 0 if status is None else status.number)

    def is_current(self, incarnation: Incarnation) -> bool:
        """Whether it is the latest of its broker."""
        status = self.statuses.get(incarnation.broker)
        return incarnation.number == (0 if status is None else status.number)

    def is_live(self, name: str) -> bool:
        """Whether the latest incarnation is not excluded."""
        status = self.statuses.get(name)
        return status is None or status.sealed_below <= status.number

    def is_forgotten(self, name: str) -> bool:
        """Whether the latest incarnation never returns."""
        status = self.statuses.get(name)
        return status is not None and status.forgotten_below > status.number

    def needed(self, voters: Iterable[str], most: int) -> int:
        """How many of these have to agree: so many, or all that may still return."""
        return min(most, len([name for name in voters if not self.is_forgotten(name)]))

    @property
    def needed_holders(self) -> int:
        """How many acceptors have to hold what is released here."""
        return self.needed(self.topology.acceptors[self.name], self.topology.f)

    def is_dead(self, incarnation: Incarnation) -> bool:
        """Whether an incarnation is over."""
        status = self.status(incarnation.broker)
        return incarnation.number < max(status.number, status.sealed_below)

    def is_seal_final(self, incarnation: Incarnation) -> bool:
        """Whether a final position includes the seal of an incarnation."""
        return any(each.broker == incarnation.broker and each.number > incarnation.number for each in self.sealed_final)

    # ---- sending ------------------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def set_timer_once(self, key: str, delay_us: int) -> None:
        """Set a timer, unless one of this key is running."""
        if key not in self.timers:
            self.set_timer(key, delay_us)

    def set_timer(self, key: str, delay_us: int) -> None:
        """Set a timer, in place of a running one of this key."""
        self.timers.add(key)
        self.effects.append(SetTimer(key, delay_us))

    def channel(self, peer: str) -> Channel:
        found = self.channels.get(peer)
        if found is None:
            emit = partial(_emit_to, self, peer)
            found = self.channels[peer] = Channel(self.number, self.status(peer).number, self.clock, emit)
        return found

    def send(self, peer: str, body: Body) -> None:
        """Send a body to a live broker; to an excluded one nothing is said but that it is excluded."""
        assert peer != self.name, f"{peer} sends {body!r} to itself"
        if self.is_live(peer):
            self.channel(peer).send(body)

    def send_along(self, link: Link, body: LinkBody) -> None:
        """Send along a link of the tree."""
        self.send(link.peer, LinkMessage(link.tag, body))

    def tell(self, client: str, message: Any) -> None:
        """Send to a client."""
        self.effects.append(Send(client, message))


def _emit_to(state: BrokerState, peer: str, message: Any) -> None:
    state.effects.append(Send(peer, message))


follow(BrokerState, "stage", STAGES)
