"""The state of one incarnation of a broker.

Everything here is plain data. The modules of the protocol are functions that change it; `broker.after_step` then
re-establishes what has to hold between steps.
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
    """The work that a broker does before its step ends, as bits of `BrokerState.due`. The lowest one is first;
    those from RESTARTS on wait for the end of a handover."""

    MEMBERSHIP, HANDOVER, REQUESTS, LAGGING, SEARCHES, READINGS = (1 << bit for bit in range(6))
    RESTARTS, ATTEMPTS, CALLS, RELEASE, WAVE, ECHO, FENCES = (1 << bit for bit in range(6, 13))
    ALL = (1 << 13) - 1
    ALWAYS = (1 << 6) - 1
    """The bits that do not wait."""
    AFTER_FINAL = ALL & ~(MEMBERSHIP | HANDOVER)
    """The bits that a new final position sets."""


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
        """The largest round of any known ballot; a new incarnation begins above those that sealed its predecessors."""
        self.memory = Memory.NONE
        """Its initial state, if it is not its broker's first incarnation."""
        self.has_waited = False
        """Whether it has waited for the brokers that return from an outage."""
        self.disk = Disk()
        self.waiting: deque[Waiting] = deque()
        """Messages that are sent when the disk has the state that they depend on."""
        self.join_replies: dict[str, dict[str, Any]] = {}
        """While it recovers: by broker whose electorate it belongs to, the answers of members."""
        self.vouched: dict[Incarnation, set[Incarnation]] = {}
        """Before its first handover: by incarnation, the members of its electorate that had not promised to exclude it
        when they learned of this one."""
        self.asked_vouchers: set[Incarnation] = set()
        """The incarnations that were asked for that."""
        self.joining: dict[str, tuple[Join, tuple[list[Incarnation], int]]] = {}
        """By broker that has asked for this broker's state and has not joined: its request, and what the last answer
        depended on."""
        self.greeted: set[str] = set()
        # journals
        self.journal = Journal()
        self.journals: dict[Incarnation, Journal] = {}
        """Copies of others' journals."""
        self.released = 0
        self.stable_entries = 0
        """The number of journal entries that all brokers have processed."""
        self.window = topology.window(name, options.window, options.history_bytes)
        self.window_used = 0
        """The cost of the others (`journal_state.cost_of`)."""
        self.refilling: tuple[Incarnation, str] | None = None
        """The journal whose earlier entries were requested, and the member that was asked."""
        self.refill_waited = 0
        self.refill_tried: set[str] = set()
        """The members that have none of them."""
        self.wanted_journals: dict[Incarnation, set[Incarnation]] = {}
        """Sealed journals that are needed here, each with the members that have sent their copies."""
        self.held_by: dict[Incarnation, int] = {}
        """How much of the journal each acceptor has acknowledged."""
        self.holders: list[Incarnation] = []
        """The acceptors that get what is admitted."""
        self.needed_holders = topology.f
        """How many acceptors have to hold an entry before it is released."""
        # routing
        self.links: dict[LinkKey, Link] = {}
        self.early: dict[LinkKey, list[LinkBody]] = {}
        """Messages along links that are not installed here yet."""
        self.removed_links: set[LinkKey] = set()
        self.subscriptions: dict[Name, Subscription] = {}
        self.index: FilterIndex[Name] = FilterIndex()
        self.advertisements: dict[Name, Advertisement] = {}
        self.advertised_after: dict[str, int] = {}
        """By publisher with advertisements: events with larger numbers matched one of them."""
        self.seen: dict[str, int] = {}
        """By publisher: the last processed number; later events have larger ones."""
        self.log: dict[tuple[str, int], EventRun] = {}
        """Processed events that are not stable, by publisher and last number."""
        # clients
        self.sessions: dict[str, Session] = {}
        self.arrivals: dict[str, Session] = {}
        """Sessions that wait for their fence."""
        self.latest_sessions: dict[str, int] = {}
        """By client that has left for another broker: the session that it requested there. An earlier process that
        still runs is not accepted any more."""
        self.locals: dict[Name, LocalSubscription] = {}
        self.pending: dict[Name, LocalSubscription] = {}
        self.searches: dict[Name, NewestSearch] = {}
        """Local subscriptions that begin or end at the newest position, until that is known."""
        self.busy_clients: dict[str, None] = {}
        """Clients whose sessions have waiting calls, or are closing."""
        self.missing: dict[str, int] = {}
        """By client with a session here: a number of its publications that others have seen and that is not here."""
        self.restarts: dict[Name, None] = {}
        """Local attempts to be restarted after a void or the end of an advertisement."""
        # positions
        self.final = FinalPosition()
        self.sealed_final: dict[Incarnation, int] = {}
        """The seals that a final position includes: an entry covers all incarnations below its number, and has the
        clock of the handover that removed them."""
        self.sealed_here: dict[Incarnation, int] = {}
        """The same, for handovers that this broker has completed."""
        self.notified_at = 0
        """When clients were last notified of a final position;"""
        self.notified_next: deque[str] = deque()
        """the clients to notify next, if they are too many for one final position (see `positions`)."""
        self.stable = 0
        self.smallest_final = 0
        """At the root: the result of the last wave."""
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
        """By publisher: the timestamp up to which its events are deleted here (see `deleting`)."""
        self.deleted_upto = 0
        """The largest of these."""
        self.readings: dict[int, Reading] = {}
        self.due_readings: dict[int, None] = {}
        """The reads that can continue."""
        self.read_work = 0
        """The work for them in this turn."""
        self.is_resting = False
        """Whether the work for this turn is done, and continues in the next one."""
        self.lagging: dict[str, None] = {}
        """Clients with too many waiting deliveries."""
        self.next_request = 1
        # handover
        self.handover: Handover | None = None
        self.contributions: dict[str, Contribution] = {}
        """The latest of each broker."""
        self.completed: dict[int, Region] = {}
        self.covered: list[tuple[frozenset[Any], frozenset[Any]]] = []
        """For each completed handover: the statuses of the core, and the incarnations of the group."""
        self.is_installed = number == 0
        """Whether it has ever been part of the tree."""
        self.completions: dict[int, set[str]] = {}
        self.inbox: deque[tuple[str, Any]] = deque()
        """Inputs that wait for the end of a handover."""
        self.inbox_work = 0
        """The work on it so far in this step (see `inputs.work_of`)."""
        self.waiting_weights: dict[str, int] = {}
        """By client: its share of the inbox (see `claims`)."""
        self.waiting_attaches: dict[str, Any] = {}
        """The waiting `Attach` message of each client, which replaces earlier ones."""
        self.ticks = 0
        """The number of intervals in which it had requests to repeat."""
        self.deletes = False
        """Whether the events of any publisher are to be deleted."""
        self.is_isolated = False
        """Whether it hears from too few acceptors to confirm anything."""
        self.is_cut_off = False
        """Whether that has lasted so long that its clients must attach elsewhere."""
        self.owners = Owners()
        self.measures = Measures()
        self.durable = DurableState(is_first=number == 0)

    # ---- shorthands ---------------------------------------------------------------------------------------

    @property
    def is_frozen(self) -> bool:
        """Return whether a handover, or the wait for the first one, delays all other inputs."""
        return self.handover is not None or not self.is_installed

    def status(self, name: str) -> Status:
        return self.statuses.get(name, FIRST)

    def current(self, name: str) -> Incarnation:
        """Return the latest incarnation of a broker."""
        status = self.statuses.get(name)
        return Incarnation(name, 0 if status is None else status.number)

    def is_current(self, incarnation: Incarnation) -> bool:
        """Return whether it is the latest of its broker."""
        status = self.statuses.get(incarnation.broker)
        return incarnation.number == (0 if status is None else status.number)

    def is_live(self, name: str) -> bool:
        """Return whether the latest incarnation is not excluded."""
        status = self.statuses.get(name)
        return status is None or status.sealed_below <= status.number

    def is_forgotten(self, name: str) -> bool:
        """Return whether the latest incarnation never returns."""
        status = self.statuses.get(name)
        return status is not None and status.forgotten_below > status.number

    def needed(self, voters: Iterable[str], most: int) -> int:
        """Return how many of these have to agree: this many, or all that may still return."""
        return min(most, len([name for name in voters if not self.is_forgotten(name)]))

    def is_dead(self, incarnation: Incarnation) -> bool:
        """Return whether an incarnation is excluded."""
        status = self.status(incarnation.broker)
        return incarnation.number < max(status.number, status.sealed_below)

    def is_seal_final(self, incarnation: Incarnation) -> bool:
        """Return whether a final position includes the seal of an incarnation."""
        return any(each.broker == incarnation.broker and each.number > incarnation.number for each in self.sealed_final)

    # ---- sending ------------------------------------------------------------------------------------------

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def set_timer_once(self, key: str, delay_us: int) -> None:
        """Set a timer, unless one of this key is running."""
        if key not in self.timers:
            self.set_timer(key, delay_us)

    def set_timer(self, key: str, delay_us: int) -> None:
        """Set a timer, replacing a running one of this key."""
        self.timers.add(key)
        self.effects.append(SetTimer(key, delay_us))

    def channel(self, peer: str) -> Channel:
        found = self.channels.get(peer)
        if found is None:
            emit = partial(_emit_to, self, peer)
            found = self.channels[peer] = Channel(self.number, self.status(peer).number, self.clock, emit)
        return found

    def send(self, peer: str, body: Body) -> None:
        """Send a body to a live broker; an excluded one only gets the notice that it is excluded."""
        assert peer != self.name, f"{peer} sends {body!r} to itself"
        if self.is_live(peer):
            self.channel(peer).send(body)

    def send_along(self, link: Link, body: LinkBody) -> None:
        """Send along a link of the tree."""
        self.send(link.peer, LinkMessage(link.tag, body))

    def send_to(self, client: str, message: Any) -> None:
        """Send to a client."""
        self.effects.append(Send(client, message))


def _emit_to(state: BrokerState, peer: str, message: Any) -> None:
    state.effects.append(Send(peer, message))


follow(BrokerState, "stage", STAGES)
