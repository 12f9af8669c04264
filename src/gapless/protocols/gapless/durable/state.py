"""The state of durable subscriptions at one incarnation of a broker, as plain data.

A broker can have four parts in it: a **replica** of the register (`records`), the **proposer** of changes for its
clients and groups (`proposals`), the broker of **attached** clients (`attached`, `lines`), and the **coordinator** of
shared subscriptions (`groups`).
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from gapless.events import Event
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach, ClientMove
from gapless.protocols.gapless.durable.messages import (
    DurableRecord,
    GroupDealt,
    GroupReport,
    Item,
    Outstanding,
    StoredRecord,
    Version,
    Vote,
)
from gapless.protocols.gapless.identities import Ballot, Incarnation, Name
from gapless.protocols.parts.ranges import Ranges, add_range
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = [
    "GROUP_CLIENT", "NO_BALLOT", "NO_VERSION", "Assignment", "Change", "Command", "DurableState", "Group", "GroupItem",
    "ItemState", "Listing", "Member", "NoteAbsence", "Proposal", "ProposalPhase", "Recovery", "WriteGroup",
]  # fmt: skip

NO_BALLOT = Ballot(0, "")
NO_VERSION = Version(NO_BALLOT, 0)
GROUP_CLIENT = "\tgroup/"
"""The coordinator of a shared subscription reads as a client of this name and that of the subscription. No client is
called like that: names of clients can be printed."""


# ---- changes of records --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoteAbsence:
    """The session of the client that is attached has expired."""

    name: str
    generation: int
    client: str


@dataclass(frozen=True)
class WriteGroup:
    """The coordinator's state of a shared subscription."""

    name: str
    generation: int
    position: int
    got: dict[str, int]
    latest: int
    delivered: int
    done: Ranges
    outstanding: list[Outstanding]
    is_leaving: bool


Command: TypeAlias = ClientAttach | ClientAck | ClientMove | NoteAbsence | WriteGroup


@dataclass(eq=False)
class Change:
    """A change that a client or a coordinator of this broker wants."""

    command: Command
    client: str = ""
    """Whose call it is; empty for those of this broker itself."""
    session: int = 0
    before: DurableRecord | None = None
    after: DurableRecord | None = None
    refusal: str = ""

    def refuse(self, refusal: str) -> None:
        """It is not made. An earlier ballot, which lost, may have made it of another record."""
        self.before, self.after, self.refusal = None, None, refusal


class ProposalPhase(Enum):
    """How far the first change of a queue has come.

    READING    only for attachments to shared subscriptions: a majority says what it holds. If the change turns out to
               change nothing, and all of them hold the same, it is done
    PREPARING  a majority promises to take part in no smaller ballot, and says what it holds
    ACCEPTING  a majority holds the changed record: the change is done
    WAITING    another ballot was larger: begin again with a larger one after a while

    A change may be done, or refused, in every phase but WAITING. Then the next one begins, if there is one: with
    ACCEPTING, if the ballot still counts.
    """

    READING = "reading"
    PREPARING = "preparing"
    ACCEPTING = "accepting"
    WAITING = "waiting"


PROPOSALS: Transitions = {
    ProposalPhase.READING: {ProposalPhase.PREPARING, ProposalPhase.ACCEPTING, ProposalPhase.WAITING},
    ProposalPhase.PREPARING: {ProposalPhase.READING, ProposalPhase.ACCEPTING, ProposalPhase.WAITING},
    ProposalPhase.ACCEPTING: {ProposalPhase.READING, ProposalPhase.PREPARING, ProposalPhase.WAITING},
    ProposalPhase.WAITING: {ProposalPhase.READING, ProposalPhase.PREPARING},
}


@dataclass(eq=False)
class Proposal:
    """The changes of one record that this broker proposes, one after the other."""

    name: str
    request: int = 0
    """The answers to another request do not count."""
    changes: deque[Change] = field(default_factory=deque)
    phase: ProposalPhase = ProposalPhase.WAITING
    version: Version = NO_VERSION
    """Of the ballot that it uses, and of the record that it writes."""
    record: DurableRecord | None = None
    """The record that it writes, or wrote last."""
    votes: dict[str, Vote] = field(default_factory=dict)
    waits: int = 0
    """WAITING: so many ticks."""
    attempts: int = 0
    done: int = 0
    """How many changes it has made."""
    is_leader: bool = False
    """Its last write was accepted by a majority, and no larger ballot was heard of since."""


@dataclass(eq=False)
class Recovery:
    """A replica without memory asks the others what they hold."""

    after: dict[str, str] = field(default_factory=dict)
    """By replica: the last name that it told."""
    told: dict[str, list[int]] = field(default_factory=dict)
    """The replicas that have sent all they hold, and the incarnations of replicas that they knew of."""
    memories: dict[str, int] = field(default_factory=dict)
    """The basis of their answers."""


@dataclass(eq=False)
class Listing:
    """A client wants to know all durable subscriptions."""

    client: str
    session: int
    request: int
    """Of the client."""
    found: dict[str, StoredRecord] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


# ---- shared subscriptions ------------------------------------------------------------------------------------


class ItemState(Enum):
    """The state of an event at the coordinator.

    FRESH     it was never delivered
    RETURNED  it was delivered and given up: it goes to a member before the fresh ones, after its delay
    ASSIGNED  it has a member; it is sent when the register says so (`is_written`)
    DONE      it is acknowledged; it leaves when the register says so

    A member that had one that is RETURNED may claim it. A dead letter is DONE without having been assigned again.
    """

    FRESH = "fresh"
    RETURNED = "returned"
    ASSIGNED = "assigned"
    DONE = "done"


ITEMS: Transitions = {
    ItemState.FRESH: {ItemState.ASSIGNED, ItemState.DONE},
    ItemState.RETURNED: {ItemState.ASSIGNED, ItemState.DONE},
    ItemState.ASSIGNED: {ItemState.RETURNED, ItemState.DONE},
    ItemState.DONE: set(),
}


@dataclass(eq=False)
class GroupItem:
    """An event that the coordinator has, in the order in which it came; or a position among them."""

    key: Item
    timestamp: int
    """Of a position: the position itself."""
    event: Event | None = None
    """None as long as it was not read, after a change of the coordinator."""
    is_position: bool = False
    is_lost: bool = False
    """Nobody can read it any more. The member that has it may still acknowledge it."""
    state: ItemState = ItemState.FRESH
    client: str = ""
    """The member that has it, or had it last."""
    number: int = 0
    """In the line of that member."""
    count: int = 0
    """How often it was delivered."""
    deadline: int = 0
    """ASSIGNED: until when it has to be acknowledged. RETURNED: not before that it is delivered again."""


@dataclass(eq=False)
class Member:
    """A member of a shared subscription, as the coordinator knows it: it is there from its first report of a line to
    its last, or until it was not heard for `SILENT_US`."""

    client: str
    broker: str
    line: str
    heard: int
    items: dict[int, GroupItem] = field(default_factory=dict)
    """Assigned to it, by number."""
    last: int = 0
    """The largest number in the line."""
    turn: int = 0
    """When something was assigned to it last, as the coordinator counts."""
    report: int = 0
    """The number of its last report."""
    acked: list[int] = field(default_factory=list)
    """Its acknowledgements that the register does not have."""
    losses: int = 0
    """All losses up to this number were sent to it, or are known to have come."""
    is_leaving: bool = False


class Assignment(NamedTuple):
    """An event that is to be sent to a member when the register holds that the member has it."""

    item: GroupItem
    member: Member
    number: int
    since: int
    """The member's last report by then."""


@dataclass(eq=False)
class Group:
    """A shared subscription that this broker coordinates."""

    record: DurableRecord
    """As it was when this broker became its owner."""
    name: Name
    """Of the subscription that reads for it."""
    idle_since: int
    """When it lost its last member; it ends a while after."""
    members: dict[str, Member] = field(default_factory=dict)
    """By client."""
    order: deque[GroupItem] = field(default_factory=deque)
    by_key: dict[Item, GroupItem] = field(default_factory=dict)
    """The events in `order`, and those that were delivered by an earlier coordinator and were not read yet."""
    fresh: deque[GroupItem] = field(default_factory=deque)
    returned: deque[GroupItem] = field(default_factory=deque)
    outstanding: dict[Item, GroupItem] = field(default_factory=dict)
    """Events that were delivered and are not acknowledged."""
    acknowledged: dict[Item, GroupItem] = field(default_factory=dict)
    """Events that are acknowledged, before one that is not."""
    read: dict[str, int] = field(default_factory=dict)
    """By publisher: the last number that was read or is left out."""
    done: Ranges = field(default_factory=dict)
    """Events that were acknowledged to an earlier coordinator, and were not read yet."""
    position: int = 0
    got: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By publisher: the last number that is acknowledged beyond the position, and its timestamp."""
    delivered: int = 0
    """Nothing that is acknowledged has a larger timestamp."""
    turn: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Lost numbers that no member knows of."""
    losses: int = 0
    """How often something was added to these."""
    lost: Ranges = field(default_factory=dict)
    """The same, as numbers of publishers."""
    assigned: list[Assignment] = field(default_factory=list)
    """Changes that no write has."""
    writing: list[Assignment] | None = None
    """Changes that the write under way has."""
    acking: list[tuple[Member, list[int]]] = field(default_factory=list)
    """The acknowledgements in it."""
    is_changed: bool = False
    """Whether something is to be written."""
    told_position: int = 0
    is_ending: bool = False
    """The last write is under way."""

    def add_lost(self, publisher: str, first: int, last: int) -> None:
        """Nobody can read these numbers any more."""
        add_range(self.lost, publisher, first, last)
        self.losses += 1

    def mark_done(self, item: GroupItem) -> None:
        """The event is acknowledged."""
        self.delivered = max(self.delivered, item.timestamp)
        item.state = ItemState.DONE
        self.outstanding.pop(item.key, None)
        self.acknowledged[item.key] = item


class DurableState:
    """All of it."""

    def __init__(self, *, is_first: bool) -> None:
        # the replica
        self.records: dict[str, StoredRecord] = {}
        self.has_recovered = is_first
        self.recovery = Recovery()
        self.names: dict[str, int] = {}
        """By user: how many records are not over."""
        self.ended: dict[str, dict[str, None]] = {}
        """By user: the names of those that are, the first to end first."""
        # the proposer
        self.round = 0
        self.next_request = 1
        self.proposals: dict[str, Proposal] = {}
        """Those with changes, by name."""
        self.leading: dict[str, Proposal] = {}
        """Those without, whose ballot may be used again."""
        self.finished: deque[Change] = deque()
        self.listings: dict[int, Listing] = {}
        # attached clients
        self.early: list[tuple[str, Any]] = []
        """Calls to attach that wait for the first final position."""
        self.pending: dict[str, int] = {}
        """By client: changes that are not finished."""
        self.attached: dict[tuple[str, str], tuple[str, int]] = {}
        """By client and name: the subscription and the generation. Not for shared ones."""
        self.lines: dict[tuple[str, str], tuple[int, str, str, Incarnation, int]] = {}
        """By client and name of shared ones: session, subscription, line, owner and generation."""
        self.dealt: deque[tuple[int, GroupDealt]] = deque()
        """The deals that wait until a final position is not before this timestamp."""
        # coordinators
        self.groups: dict[str, Group] = {}
        self.reports: deque[tuple[str, GroupReport]] = deque()
        """Those of members, with their brokers."""

    def take_register(self, old: "DurableState") -> None:
        """The next incarnation goes on with the replica of one that did not lose its memory."""
        self.records, self.has_recovered, self.recovery = old.records, old.has_recovered, old.recovery
        self.names, self.ended, self.round = old.names, old.ended, old.round


follow(Proposal, "phase", PROPOSALS)
follow(GroupItem, "state", ITEMS)
