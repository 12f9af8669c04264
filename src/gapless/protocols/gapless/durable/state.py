"""The state of durable subscriptions at one incarnation of a broker, as plain data.

A broker can have four roles: a **replica** of the register (`records`), the **proposer** of changes for its clients and
groups (`proposals`), the broker of **attached** clients, and the **coordinator** of shared subscriptions (`groups`).
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import NamedTuple, TypeAlias

from gapless.events import Event
from gapless.protocols.gapless.durable.client_messages import ClientAck, ClientAttach, ClientMove
from gapless.protocols.gapless.durable.messages import (
    DurableRecord,
    GroupDealt,
    GroupReport,
    Item,
    Progress,
    RecordPage,
    StoredRecord,
    Version,
    Vote,
)
from gapless.protocols.gapless.durable.progress import ProgressTracker
from gapless.protocols.gapless.identities import Ballot, Incarnation, Name
from gapless.protocols.parts.ranges import Ranges, add_range
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = [
    "GROUP_CLIENT", "NO_BALLOT", "NO_VERSION", "Assignment", "Attached", "Change", "Command", "DurableState", "Group",
    "GroupItem", "GroupPhase", "ItemState", "Member", "NoteAbsence", "PageRead", "Proposal", "ProposalPhase",
    "WriteGroup",
]  # fmt: skip

NO_BALLOT = Ballot(0, "")
NO_VERSION = Version(NO_BALLOT, 0)
GROUP_CLIENT = "\tgroup/"
"""The coordinator of a shared subscription reads under a client name with this prefix and the subscription's name. The
tab character cannot occur in the name of a real client."""


# ---- changes of records --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoteAbsence:
    """Records that the session of the attached client has expired."""

    name: str
    generation: int
    client: str


@dataclass(frozen=True)
class WriteGroup:
    """Writes the coordinator's state of a shared subscription."""

    name: str
    generation: int
    progress: Progress
    is_leaving: bool


Command: TypeAlias = ClientAttach | ClientAck | ClientMove | NoteAbsence | WriteGroup


@dataclass(eq=False)
class Change:
    """A change requested by a client or a coordinator of this broker."""

    command: Command
    client: str = ""
    """The client that made the call; empty for changes by the broker itself."""
    session: int = 0
    before: DurableRecord | None = None
    after: DurableRecord | None = None
    refusal: str = ""

    def refuse(self, refusal: str) -> None:
        """Reject the change. If an answer to an earlier attempt was lost, that attempt may still have changed the
        record."""
        self.before, self.after, self.refusal = None, None, refusal


class ProposalPhase(Enum):
    """The phase of the first change of a queue.

    - READING, only for attachments to shared subscriptions: a majority sends its records. If all are equal, and the
      change would leave them unchanged, it has succeeded.
    - PREPARING: a majority promises to reject smaller ballots, and sends its records.
    - ACCEPTING: when a majority has stored the changed record, the change has succeeded.
    - WAITING: another ballot was larger; prepare again after some ticks.

    A change can succeed, or be rejected, in every phase except WAITING. The next change in the queue then begins, with
    ACCEPTING if the ballot is still valid.
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
    """The queue of changes of one record that this broker proposes."""

    name: str
    request: int = 0
    """The number of the current request. Answers to other requests are ignored."""
    changes: deque[Change] = field(default_factory=deque)
    phase: ProposalPhase = ProposalPhase.WAITING
    version: Version = NO_VERSION
    """The current ballot, and the version under which the record is written."""
    record: DurableRecord | None = None
    """The record being written, or the one written last."""
    votes: dict[str, Vote] = field(default_factory=dict)
    waits: int = 0
    """In WAITING: the number of ticks left."""
    attempts: int = 0
    done: int = 0
    """The number of finished changes."""
    is_leader: bool = False
    """Whether a majority accepted the last write and no larger ballot was seen since."""


@dataclass(eq=False)
class PageRead:
    """A read of all records, page by page, by a recovering replica or for a client's list."""

    after: dict[str, str] = field(default_factory=dict)
    """The last name that each replica has sent."""
    answered: dict[str, RecordPage] = field(default_factory=dict)
    """The last, empty page of each replica that has sent all its records."""
    client: str = ""
    session: int = 0
    request: int = 0
    """The number of the client's request."""
    found: dict[str, StoredRecord] = field(default_factory=dict)


# ---- shared subscriptions ------------------------------------------------------------------------------------


class ItemState(Enum):
    """The state of an event at the coordinator.

    - FRESH: the event was never delivered.
    - RETURNED: it was delivered and returned. After its delay it is assigned before any fresh event.
    - ASSIGNED: it is assigned to a member, and is sent when the register contains the assignment.
    - DONE: it is acknowledged.

    A member that had a RETURNED event can claim it again. An event with a dead letter becomes DONE without another
    assignment.
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
    """An event of a shared subscription at its coordinator."""

    key: Item
    timestamp: int
    event: Event | None = None
    """The event; None if a new coordinator has not read it yet."""
    is_lost: bool = False
    """Whether the event can no longer be read. The member that has it can still acknowledge it."""
    state: ItemState = ItemState.FRESH
    client: str = ""
    """The member that has the event, or had it last."""
    number: int = 0
    """The number of the event in that member's line."""
    count: int = 0
    """How many times the event was delivered."""
    deadline: int = 0
    """For ASSIGNED: when the acknowledgement times out. For RETURNED: when the event can be redelivered."""


class Assignment(NamedTuple):
    """An event that is sent to a member as soon as the register contains the assignment."""

    number: int
    since: int
    """The time of the member's last report at the moment of the assignment."""


@dataclass(eq=False)
class Member:
    """A member of a shared subscription at its coordinator. It exists from its first report of a line to its last, or
    until it is silent for `SILENT_US`."""

    client: str
    broker: str
    line: str
    reported_at: int
    items: dict[int, GroupItem] = field(default_factory=dict)
    """The member's assigned events, by number in its line."""
    last: int = 0
    """The largest number in the line."""
    turn: int = 0
    """The coordinator's assignment counter at this member's last assignment."""
    report: int = 0
    """The time of the member's last report, by the member's clock."""
    assigned: list[Assignment] = field(default_factory=list)
    acked: list[int] = field(default_factory=list)
    """Acknowledgements and assignments that are not part of any write yet."""
    writing: tuple[list[Assignment], list[int]] = ([], [])
    """Assignments and acknowledgements in the write that is in flight."""
    losses: int = 0
    """The number of the last loss report that was sent to the member, or that the member had already received."""
    is_leaving: bool = False

    @property
    def has_left(self) -> bool:
        """Return whether everything the member has reported is written and it is leaving."""
        return self.is_leaving and not self.acked and not self.writing[1]


class GroupPhase(Enum):
    """Whether a write to the register is in flight, and whether it is the last one."""

    IDLE = "idle"
    WRITING = "writing"
    ENDING = "ending"


GROUPS: Transitions = {
    GroupPhase.IDLE: {GroupPhase.WRITING, GroupPhase.ENDING},
    GroupPhase.WRITING: {GroupPhase.IDLE},
    GroupPhase.ENDING: set(),
}


@dataclass(eq=False)
class Group:
    """A shared subscription that this broker coordinates."""

    record: DurableRecord
    """The record at the time when this broker became its owner."""
    name: Name
    """The name of the local subscription that reads the events."""
    idle_since: int
    """When the last member left. The group ends some time after that."""
    progress: ProgressTracker
    read: dict[str, int]
    """The last number of each publisher that was read or skipped."""
    phase: GroupPhase = GroupPhase.IDLE
    is_changed: bool = False
    """Whether there are changes to write to the register."""
    members: dict[str, Member] = field(default_factory=dict)
    """The members, by client."""
    turn: int = 0
    by_key: dict[Item, GroupItem] = field(default_factory=dict)
    """The events read beyond the progress, and those delivered by an earlier coordinator that were not read yet."""
    fresh: deque[GroupItem] = field(default_factory=deque)
    returned: deque[GroupItem] = field(default_factory=deque)
    outstanding: dict[Item, GroupItem] = field(default_factory=dict)
    """The delivered events that are not acknowledged."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Gaps that were not reported to any member, because the group had none."""
    lost: Ranges = field(default_factory=dict)
    """Lost numbers that were not reported to any member."""
    losses: int = 0
    """The number of the last loss report."""

    def add_lost(self, publisher: str, first: int, last: int) -> None:
        """Record numbers that can no longer be read."""
        add_range(self.lost, publisher, first, last)
        self.losses += 1

    def mark_done(self, item: GroupItem) -> None:
        """Record the acknowledgement of the event."""
        item.state = ItemState.DONE
        self.outstanding.pop(item.key, None)
        self.progress.acknowledge(item.key)
        self.progress.delivered = max(self.progress.delivered, item.timestamp)

    def advance(self) -> None:
        """Remove the oldest events from the group as long as they are acknowledged."""
        for key in self.progress.advance():
            del self.by_key[key]
        self.is_changed |= self.progress.has_advanced


class Attached(NamedTuple):
    """The attachment of a client of this broker."""

    session: int
    subscription: str
    line: str
    generation: int
    owner: Incarnation
    is_shared: bool


class DurableState:
    def __init__(self, *, is_first: bool) -> None:
        # state of the replica
        self.records: dict[str, StoredRecord] = {}
        self.has_recovered = is_first
        self.recovery = PageRead()
        self.ended: dict[str, str] = {}
        """The names of deleted subscriptions with their users, oldest first."""
        # state of the proposer
        self.round = 0
        self.next_request = 1
        self.proposals: dict[str, Proposal] = {}
        """The queues of pending changes, by record name."""
        self.leading: dict[str, Proposal] = {}
        """Records without pending changes whose ballot can be reused."""
        self.finished: deque[Change] = deque()
        self.lists: dict[int, PageRead] = {}
        # state of attached clients
        self.waiting: list[tuple[str, ClientAttach]] = []
        """Calls that wait for the first final position, because new subscriptions begin there."""
        self.pending: dict[str, int] = {}
        """The number of each client's unfinished changes."""
        self.attached: dict[tuple[str, str], Attached] = {}
        """The attached clients, by client and subscription name."""
        self.dealt: dict[str, deque[tuple[int, GroupDealt]]] = {}
        """By client: the coordinators' messages that wait until a final position includes the given timestamp."""
        self.dealt_at: float = inf
        """The smallest timestamp that any of these messages waits for."""
        # state of coordinators
        self.groups: dict[str, Group] = {}
        self.early: dict[str, dict[str, tuple[str, GroupReport]]] = {}
        """By subscription and client: first reports and the brokers that sent them, kept in case this broker becomes
        the coordinator."""
        self.due_groups: dict[str, None] = {}
        """The groups that have changed since they last advanced, as an ordered set."""

    def take_register(self, old: "DurableState") -> None:
        """Take over the replica's state from an incarnation that has kept its memory."""
        self.records, self.has_recovered, self.recovery = old.records, old.has_recovered, old.recovery
        self.ended, self.round = old.ended, old.round


follow(Proposal, "phase", PROPOSALS)
follow(GroupItem, "state", ITEMS)
follow(Group, "phase", GROUPS)
