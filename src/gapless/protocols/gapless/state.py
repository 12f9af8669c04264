"""The state of one incarnation of a broker.

Everything here is plain data. The modules of the protocol are functions that change it. At the end of each step the
broker (`broker`) re-establishes the invariants that hold between steps.
"""

from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from gapless.event_runs import EventRun
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
from gapless.protocols.gapless.membership_messages import Contribution, Join, Memory
from gapless.protocols.gapless.membership_state import STAGES, Acceptor, Handover, Proposal, Stage
from gapless.protocols.gapless.messages import Body
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.routing_state import Advertisement, Link, LinkKey, Subscription, WaveState
from gapless.protocols.gapless.topology import FIRST, Region, Statuses, Topology
from gapless.protocols.parts.clock import Clock
from gapless.protocols.parts.transitions import follow

__all__ = ["BrokerState", "Due"]


class Due:
    """The work that a broker has to do before its step ends, as bits of `BrokerState.due`. Lower bits come first. The
    bits from RESTARTS on wait for the end of a handover."""

    MEMBERSHIP, HANDOVER, REQUESTS, LAGGING, SEARCHES, READINGS = (1 << bit for bit in range(6))
    RESTARTS, ATTEMPTS, CALLS, RELEASE, WAVE, ECHO, FENCES = (1 << bit for bit in range(6, 13))
    ALL = (1 << 13) - 1
    ALWAYS = (1 << 6) - 1
    """The bits that do not wait for the end of a handover."""
    AFTER_FINAL = ALL & ~(MEMBERSHIP | HANDOVER)
    """The bits that a new final position sets."""


class BrokerState:
    def __init__(self, name: str, number: int, topology: Topology, options: GaplessOptions) -> None:
        self.name = name
        self.number = number
        self.incarnation = Incarnation(name, number)
        self.topology = topology
        self.options = options
        self.off = frozenset(options.switched_off)
        self.effects: list[Effect] = []
        self.due = Due.ALL
        """The work left before this step ends (see `Due`)."""
        self.timers: set[str] = set()
        """The keys of running timers."""
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
        """The largest round of any known ballot. A new incarnation starts above the rounds that sealed its
        predecessors."""
        self.memory = Memory.NONE
        """The knowledge with which the incarnation started, if it is not its broker's first."""
        self.has_waited = False
        """Whether the incarnation has waited `return_ms` for other brokers to return from an outage."""
        self.disk = Disk()
        self.waiting: deque[Waiting] = deque()
        """Messages that are sent when the state that they depend on is on the disk."""
        self.join_replies: dict[str, dict[str, Any]] = {}
        """During recovery: the answers of each electorate's members, by broker and member."""
        self.vouched: dict[Incarnation, set[Incarnation]] = {}
        """Before the first handover: for each incarnation, the members of its electorate that had not promised to
        exclude it when they learned of this incarnation."""
        self.asked_vouchers: set[Incarnation] = set()
        """The incarnations whose electorates were asked for that."""
        self.joining: dict[str, tuple[Join, tuple[list[Incarnation], int]]] = {}
        """For each broker that has asked to join and has not joined: its request, and the values on which the last
        answer depended."""
        self.greeted: set[str] = set()
        # journals
        self.journal = Journal()
        self.journals: dict[Incarnation, Journal] = {}
        """The copies of other brokers' journals."""
        self.released = 0
        self.stable_entries = 0
        """The number of journal entries that all brokers have processed."""
        self.window = topology.window(name, options.window, options.history_bytes)
        self.window_used = 0
        """The cost of the entries that not all brokers have processed (see `journal_state.cost_of`)."""
        self.refilling: tuple[Incarnation, str] | None = None
        """The journal whose earlier entries were requested, and the member that was asked."""
        self.refill_waited = 0
        self.refill_tried: set[str] = set()
        """The members that have no earlier entries of that journal."""
        self.wanted_journals: dict[Incarnation, set[Incarnation]] = {}
        """Sealed journals that are needed here, each with the members that have already sent their copies."""
        self.held_by: dict[Incarnation, int] = {}
        """How many entries of the journal each acceptor has acknowledged."""
        self.holders: list[Incarnation] = []
        """The acceptors to which new entries are sent."""
        self.needed_holders = topology.f
        """The number of acceptors that must hold an entry before it is released."""
        # routing
        self.links: dict[LinkKey, Link] = {}
        self.early: dict[LinkKey, list[LinkBody]] = {}
        """Messages on links that are not installed here yet."""
        self.removed_links: set[LinkKey] = set()
        self.subscriptions: dict[Name, Subscription] = {}
        self.index: FilterIndex[Name] = FilterIndex()
        self.advertisements: dict[Name, Advertisement] = {}
        self.advertisements_of: dict[str, dict[Name, Advertisement]] = {}
        """The same advertisements, by publisher."""
        self.advertised_after: dict[str, int] = {}
        """For each publisher with advertisements: events with larger numbers matched one of these advertisements."""
        self.seen: dict[str, int] = {}
        """The last processed number of each publisher. Later events have larger numbers."""
        self.log: dict[tuple[str, int], EventRun] = {}
        """Processed events that some broker may not have processed, by publisher and last number."""
        # clients
        self.sessions: dict[str, Session] = {}
        self.arrivals: dict[str, Session] = {}
        """Sessions that wait for their fence."""
        self.latest_sessions: dict[str, int] = {}
        """For each client that has left for another broker: the number of its session there. Sessions with smaller
        numbers, from an earlier process of the client, are rejected."""
        self.locals: dict[Name, LocalSubscription] = {}
        self.pending: dict[Name, LocalSubscription] = {}
        self.searches: dict[Name, NewestSearch] = {}
        """Local subscriptions that begin or end at the newest position, while that is unknown."""
        self.busy_clients: dict[str, None] = {}
        """Clients whose sessions have queued calls or are closing, as an ordered set."""
        self.missing: dict[str, int] = {}
        """For each client with a session here: the number of a publication that other brokers have seen and this one
        lacks."""
        self.restarts: dict[Name, None] = {}
        """Local attempts to be restarted after a void or the end of an advertisement, as an ordered set."""
        # positions
        self.final = FinalPosition()
        self.sealed_final: dict[Incarnation, int] = {}
        """The seals that a final position includes. Each one covers all of a broker's incarnations below a number, and
        has the clock of the handover that removed them."""
        self.sealed_here: dict[Incarnation, int] = {}
        """The seals from handovers that this broker has completed, in the same form."""
        self.notified_at = 0
        """The time at which clients were last notified of a final position."""
        self.notified_next: deque[str] = deque()
        """The clients to notify next, if they are too many for one final position (see `positions`)."""
        self.stable = 0
        self.smallest_final = 0
        """At the root: the smallest final position known to all brokers, as reported by the last wave."""
        self.wave: WaveState | None = None
        self.wave_began = 0
        self.wave_wanted = False
        """At the root: whether a wave was requested."""
        self.wave_lost = False
        """At the root: whether a handover has ended since the last wave began."""
        self.has_asked_wave = False
        """Whether the root was asked for a wave since the last final position."""
        # history
        self.deleted: dict[str, int] = {}
        """The timestamp up to which each publisher's events are deleted here (see `deleting`)."""
        self.deleted_upto = 0
        """The largest of these timestamps."""
        self.readings: dict[int, Reading] = {}
        self.due_readings: dict[int, None] = {}
        """The reads that can continue, as an ordered set."""
        self.read_work = 0
        """The work done for reads in this turn."""
        self.is_resting = False
        """Whether this turn's work is used up, so that reads continue in the next turn."""
        self.lagging: dict[str, None] = {}
        """Clients with too many waiting deliveries, as an ordered set."""
        self.next_request = 1
        # handover
        self.handover: Handover | None = None
        self.contributions: dict[str, Contribution] = {}
        """The latest contribution of each broker."""
        self.completed: dict[int, Region] = {}
        self.covered: list[tuple[frozenset[Any], frozenset[Any]]] = []
        """For each completed handover: the statuses of its core, and the incarnations of its group."""
        self.is_installed = number == 0
        """Whether this incarnation has ever been part of the tree."""
        self.completions: dict[int, set[str]] = {}
        self.inbox: deque[tuple[str, Any]] = deque()
        """Inputs deferred until the end of a handover."""
        self.inbox_work = 0
        """The work done on the inbox in this step (see `inputs.work_of`)."""
        self.waiting_weights: dict[str, int] = {}
        """Each client's share of the inbox (see `claims`)."""
        self.waiting_attaches: dict[str, Any] = {}
        """The deferred `Attach` message of each client, which replaces earlier ones."""
        self.ticks = 0
        """The number of retry intervals so far."""
        self.deletes = False
        """Whether any publisher's events are to be deleted."""
        self.is_isolated = False
        """Whether the broker reaches too few acceptors to confirm publications."""
        self.is_cut_off = False
        """Whether the isolation has lasted so long that clients must attach elsewhere."""
        self.owners = Owners()
        self.measures = Measures()
        self.durable = DurableState(is_first=number == 0)

    # ---- shorthands ---------------------------------------------------------------------------------------

    @property
    def is_frozen(self) -> bool:
        """Return whether all other input is deferred because of a handover, or before the first one."""
        return self.handover is not None or not self.is_installed

    def status(self, name: str) -> Status:
        return self.statuses.get(name, FIRST)

    def current(self, name: str) -> Incarnation:
        """Return the latest incarnation of a broker."""
        status = self.statuses.get(name)
        return Incarnation(name, 0 if status is None else status.number)

    def is_current(self, incarnation: Incarnation) -> bool:
        """Return whether the incarnation is the latest one of its broker."""
        status = self.statuses.get(incarnation.broker)
        return incarnation.number == (0 if status is None else status.number)

    def is_live(self, name: str) -> bool:
        """Return whether the broker's latest incarnation is not excluded."""
        status = self.statuses.get(name)
        return status is None or status.sealed_below <= status.number

    def is_forgotten(self, name: str) -> bool:
        """Return whether an operator has declared that the broker's latest incarnation never returns."""
        status = self.statuses.get(name)
        return status is not None and status.forgotten_below > status.number

    def needed(self, voters: Iterable[str], most: int) -> int:
        """Return how many of the voters have to agree: `most`, or all that may still return if those are fewer."""
        return min(most, len([name for name in voters if not self.is_forgotten(name)]))

    def is_dead(self, incarnation: Incarnation) -> bool:
        """Return whether the incarnation is excluded."""
        status = self.status(incarnation.broker)
        return incarnation.number < max(status.number, status.sealed_below)

    def is_seal_final(self, incarnation: Incarnation) -> bool:
        """Return whether a final position includes the incarnation's seal."""
        return any(each.broker == incarnation.broker and each.number > incarnation.number for each in self.sealed_final)

    # ---- sending ------------------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def set_timer_once(self, key: str, delay_us: int) -> None:
        """Set a timer, unless one with this key is running."""
        if key not in self.timers:
            self.set_timer(key, delay_us)

    def set_timer(self, key: str, delay_us: int) -> None:
        """Set a timer, replacing a running one with this key."""
        self.timers.add(key)
        self.effects.append(SetTimer(key, delay_us))

    def channel(self, peer: str) -> Channel:
        found = self.channels.get(peer)
        if found is None:
            emit = partial(_emit_to, self, peer)
            found = self.channels[peer] = Channel(self.number, self.status(peer).number, self.clock, emit)
        return found

    def send(self, peer: str, body: Body) -> None:
        """Send a message to a live broker. An excluded broker is only notified of its exclusion."""
        assert peer != self.name, f"{peer} sends {body!r} to itself"
        if self.is_live(peer):
            self.channel(peer).send(body)

    def send_along(self, link: Link, body: LinkBody) -> None:
        """Send a message over a link of the tree."""
        self.send(link.peer, LinkMessage(link.tag, body))

    def send_to(self, client: str, message: Any) -> None:
        """Send a message to a client."""
        self.effects.append(Send(client, message))


def _emit_to(state: BrokerState, peer: str, message: Any) -> None:
    state.effects.append(Send(peer, message))


follow(BrokerState, "stage", STAGES)
