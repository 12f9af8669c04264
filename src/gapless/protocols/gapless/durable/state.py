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
"""The coordinator of a shared subscription reads as a client with this prefix and the subscription's name. The prefix
contains an unprintable character, which names of real clients cannot."""


# ---- changes of records --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoteAbsence:
    """Records that the session of the attached client has expired."""

    name: str
    generation: int
    client: str


@dataclass(frozen=True)
class WriteGroup:
    """The coordinator's state of a shared subscription."""

    name: str
    generation: int
    progress: Progress
    is_leaving: bool


Command: TypeAlias = ClientAttach | ClientAck | ClientMove | NoteAbsence | WriteGroup


@dataclass(eq=False)
class Change:
    """A change that a client or a coordinator of this broker wants."""

    command: Command
    client: str = ""
    """The client of the call; empty for changes by this broker itself."""
    session: int = 0
    before: DurableRecord | None = None
    after: DurableRecord | None = None
    refusal: str = ""

    def refuse(self, refusal: str) -> None:
        """Refuse the change. A lost earlier ballot may still have applied it to another version of the record."""
        self.before, self.after, self.refusal = None, None, refusal


class ProposalPhase(Enum):
    """The phase of the first change of a queue.

    - READING, only for attachments to shared subscriptions: a majority sends its records. If all of them are equal, and
      the change changes nothing, it is done.
    - PREPARING: a majority promises to take part in no smaller ballot, and sends its records.
    - ACCEPTING: a majority stores the changed record; then the change is done.
    - WAITING: prepare again after some ticks, because another ballot was larger.

    A change can be done, or refused, in every phase but WAITING. Then the next one begins, if there is one: with
    ACCEPTING, if the ballot is still valid.
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
    """The current request; answers to others are ignored."""
    changes: deque[Change] = field(default_factory=deque)
    phase: ProposalPhase = ProposalPhase.WAITING
    version: Version = NO_VERSION
    """The current ballot, and the version of the record that it writes."""
    record: DurableRecord | None = None
    """The record that it writes, or last wrote."""
    votes: dict[str, Vote] = field(default_factory=dict)
    waits: int = 0
    """In WAITING: the remaining number of ticks."""
    attempts: int = 0
    done: int = 0
    """How many changes it has made."""
    is_leader: bool = False
    """Whether a majority accepted its last write, and no larger ballot was seen since."""


@dataclass(eq=False)
class PageRead:
    """All records of the replicas, read page by page: by a replica without memory, or for a client's list."""

    after: dict[str, str] = field(default_factory=dict)
    """By replica: the last name that it sent."""
    answered: dict[str, RecordPage] = field(default_factory=dict)
    """By replica: its last, empty page."""
    client: str = ""
    session: int = 0
    request: int = 0
    """The number of the client's request."""
    found: dict[str, StoredRecord] = field(default_factory=dict)


# ---- shared subscriptions ------------------------------------------------------------------------------------


class ItemState(Enum):
    """The state of an event at the coordinator.

    - FRESH: it was never delivered.
    - RETURNED: it was delivered and returned. It goes to a member before the fresh ones, after its delay.
    - ASSIGNED: it has a member. It is sent when the register contains the assignment.
    - DONE: it is acknowledged.

    A member that had a RETURNED event can claim it. An event with a dead letter is DONE without another assignment.
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
    """An event at the coordinator."""

    key: Item
    timestamp: int
    event: Event | None = None
    """The event; None until it is read, after a change of the coordinator."""
    is_lost: bool = False
    """Whether it can no longer be read. The member that has it can still acknowledge it."""
    state: ItemState = ItemState.FRESH
    client: str = ""
    """The member that has it, or last had it."""
    number: int = 0
    """Its number in the line of that member."""
    count: int = 0
    """The number of its deliveries."""
    deadline: int = 0
    """ASSIGNED: when its acknowledgement times out. RETURNED: when it can be redelivered."""


class Assignment(NamedTuple):
    """An event to be sent to a member when the register contains the assignment."""

    number: int
    since: int
    """When the member had sent its last report at that time."""


@dataclass(eq=False)
class Member:
    """A member of a shared subscription, as the coordinator knows it: from its first report of a line to its last, or
    until it was silent for `SILENT_US`."""

    client: str
    broker: str
    line: str
    reported_at: int
    items: dict[int, GroupItem] = field(default_factory=dict)
    """Its assignments, by number."""
    last: int = 0
    """The largest number in the line."""
    turn: int = 0
    """A counter of the coordinator at its last assignment."""
    report: int = 0
    """When it sent its last report, by its own clock."""
    assigned: list[Assignment] = field(default_factory=list)
    acked: list[int] = field(default_factory=list)
    """Its assignments and acknowledgements that no write contains yet,"""
    writing: tuple[list[Assignment], list[int]] = ([], [])
    """and those in the write in flight."""
    losses: int = 0
    """All losses up to this number were sent to it, or were acknowledged by it."""
    is_leaving: bool = False

    @property
    def has_left(self) -> bool:
        """Return whether all that it has reported is written, and it reports no more."""
        return self.is_leaving and not self.acked and not self.writing[1]


class GroupPhase(Enum):
    """Whether a write is in flight, and whether it is the last one."""

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
    """The record when this broker became its owner."""
    name: Name
    """The name of the subscription that reads for it."""
    idle_since: int
    """When it lost its last member; it ends some time after."""
    progress: ProgressTracker
    read: dict[str, int]
    """By publisher: the last number that was read or skipped."""
    phase: GroupPhase = GroupPhase.IDLE
    is_changed: bool = False
    """Whether there are changes to write."""
    members: dict[str, Member] = field(default_factory=dict)
    """The members, by client."""
    turn: int = 0
    by_key: dict[Item, GroupItem] = field(default_factory=dict)
    """The events read beyond the progress, and those delivered by an earlier coordinator that were not read yet."""
    fresh: deque[GroupItem] = field(default_factory=deque)
    returned: deque[GroupItem] = field(default_factory=deque)
    outstanding: dict[Item, GroupItem] = field(default_factory=dict)
    """Delivered events that are not acknowledged."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Lost ranges that no member knows."""
    lost: Ranges = field(default_factory=dict)
    """The lost ranges, as numbers of publishers."""
    losses: int = 0
    """How many times lost ranges were added."""

    def add_lost(self, publisher: str, first: int, last: int) -> None:
        """Record numbers that can no longer be read."""
        add_range(self.lost, publisher, first, last)
        self.losses += 1

    def mark_done(self, item: GroupItem) -> None:
        """Mark the event as acknowledged."""
        item.state = ItemState.DONE
        self.outstanding.pop(item.key, None)
        self.progress.acknowledge(item.key)
        self.progress.delivered = max(self.progress.delivered, item.timestamp)

    def advance(self) -> None:
        """Let acknowledged events pass if there is no unacknowledged one before them."""
        for key in self.progress.advance():
            del self.by_key[key]
        self.is_changed |= self.progress.has_advanced


class Attached(NamedTuple):
    """A client that is attached here."""

    session: int
    subscription: str
    line: str
    generation: int
    owner: Incarnation
    is_shared: bool


class DurableState:
    def __init__(self, *, is_first: bool) -> None:
        # the replica
        self.records: dict[str, StoredRecord] = {}
        self.has_recovered = is_first
        self.recovery = PageRead()
        self.ended: dict[str, str] = {}
        """The names of deleted ones, oldest first, and their users."""
        # the proposer
        self.round = 0
        self.next_request = 1
        self.proposals: dict[str, Proposal] = {}
        """Records with pending changes, by name."""
        self.leading: dict[str, Proposal] = {}
        """Records without pending changes whose ballot can be reused."""
        self.finished: deque[Change] = deque()
        self.lists: dict[int, PageRead] = {}
        # attached clients
        self.waiting: list[tuple[str, ClientAttach]] = []
        """Calls to attach that wait for the first final position, where new subscriptions begin."""
        self.pending: dict[str, int] = {}
        """By client: unfinished changes."""
        self.attached: dict[tuple[str, str], Attached] = {}
        """By client and name."""
        self.dealt: dict[str, deque[tuple[int, GroupDealt]]] = {}
        """By client: the coordinators' messages that wait until a final position includes this timestamp."""
        self.dealt_at: float = inf
        """The smallest of the first timestamps."""
        # coordinators
        self.groups: dict[str, Group] = {}
        self.early: dict[str, dict[str, tuple[str, GroupReport]]] = {}
        """By subscription and client: first reports with their brokers, while this one may become the coordinator."""
        self.due_groups: dict[str, None] = {}
        """Those for which something has changed."""

    def take_register(self, old: "DurableState") -> None:
        """Take over the replica of an incarnation that did not lose its memory."""
        self.records, self.has_recovered, self.recovery = old.records, old.has_recovered, old.recovery
        self.ended, self.round = old.ended, old.round


follow(Proposal, "phase", PROPOSALS)
follow(GroupItem, "state", ITEMS)
follow(Group, "phase", GROUPS)
