"""Messages between brokers about durable subscriptions: records, the register's messages, and those of groups."""

from typing import NamedTuple, TypeAlias

import msgspec

from gapless.events import Event
from gapless.positions import Position
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "AcceptRecord", "Deal", "DealItem", "DurableBody", "DurableRecord", "GroupDealt", "GroupReport", "Item",
    "ListRecords", "Outstanding", "OwnerLost", "PrepareRecord", "Progress", "RecordPage", "Report", "Returned",
    "StoredRecord", "Version", "Vote",
]  # fmt: skip


class Version(NamedTuple):
    """Identifies a write of a record: a proposer that keeps its ballot numbers its writes under it."""

    ballot: Ballot
    serial: int


class Item(NamedTuple):
    publisher: str
    seq: int


class Outstanding(NamedTuple):
    """An unacknowledged event of a shared subscription that was delivered to a member."""

    publisher: str
    seq: int
    timestamp: int
    client: str
    """The member that has it; empty if it waits to be delivered to another."""
    deliveries: int
    """The number of its deliveries."""


class Progress(Message, frozen=True):
    """Which events of a durable subscription are acknowledged, and which others were delivered."""

    position: int
    """Everything up to this timestamp is acknowledged."""
    got: Cuts = msgspec.field(default_factory=dict)
    """Acknowledgements beyond the position: the last number of each publisher."""
    latest: int = 0
    """The largest timestamp of the events that `got` acknowledges."""
    delivered: int = 0
    """An upper bound of the timestamps of delivered events, unless one client is attached exclusively now."""
    done: Ranges = msgspec.field(default_factory=dict)
    """Acknowledgements beyond `got`."""
    outstanding: list[Outstanding] = msgspec.field(default_factory=list)
    """Unacknowledged events that were delivered; if it is not shared, only those that its clients returned with
    `nack`."""


class DurableRecord(Message, frozen=True):
    """The state of a durable subscription: the value of its register."""

    name: str
    filter: str
    progress: Progress
    generation: int
    """Grows with each attach, move and deletion: an owner of an earlier generation has lost the subscription."""
    serial: int = 0
    """The number of the owner's last acknowledgement: repeating it changes nothing."""
    client: str = ""
    """The client that is attached; empty if none is, and for shared ones."""
    line: str = ""
    """Identifies the attachment of that client: repeating the call changes nothing."""
    owner: Incarnation | None = None
    """The incarnation of the broker that serves the attached client; of a shared one, its coordinator."""
    is_over: bool = False
    """Whether it was deleted. The record stays, so that generations grow."""
    after: tuple[int, str, int] | None = None
    """If it was moved to the position after an event: its timestamp, publisher and number."""
    user: str = ""
    """The user whose client attached first, in a network with users."""
    is_shared: bool = False
    redeliver_us: int = 0
    """Shared: an event that is not acknowledged for so long is redelivered to another member."""
    max_deliveries: int = 0
    """The number of deliveries after which an event becomes a dead letter (see `letters`); 0 for never."""

    @property
    def begin(self) -> Position:
        """Return the position where a subscription continues, apart from the numbers that it skips."""
        position = Position.at(self.progress.position)
        return position if self.after is None else max(position, Position.after(*self.after))


class StoredRecord(Message, frozen=True):
    """The state of one name at one replica of the register, all of it durable."""

    name: str
    promised: Ballot
    """The largest promised ballot; the replica rejects smaller ones."""
    version: Version
    """The version of the record."""
    record: DurableRecord | None
    user: str = ""
    """Before there is a record: the user for whose client the ballot was promised."""


# ---- the register --------------------------------------------------------------------------------------------


class PrepareRecord(Message, frozen=True):
    """Asks a replica to promise a ballot, and for its record. Without a ballot: only for its record."""

    request: int
    name: str
    ballot: Ballot
    user: str


class AcceptRecord(Message, frozen=True):
    """Asks a replica to store this record, unless it has promised a larger ballot."""

    request: int
    version: Version
    record: DurableRecord


class Vote(Message, frozen=True):
    """The state of a replica after a prepare or an accept. It agreed if it has promised no other ballot."""

    request: int
    version: Version
    """The requested version; the serial is 0 after a prepare."""
    held: StoredRecord
    refusal: str
    """Why the replica refuses the name altogether; empty if it does not."""
    incarnations: list[int]
    """The latest incarnations of the replicas that the voter knows: votes of earlier ones are void."""


class ListRecords(Message, frozen=True):
    """Asks a replica for its records, by name, after this one. Request 0: from a replica that recovers."""

    request: int
    after: str


class RecordPage(Message, frozen=True):
    """Some of the records, by name; an empty page is the last."""

    request: int
    after: str
    records: list[StoredRecord]
    incarnations: list[int]
    memory: int
    """The basis of the answer (`membership_messages.Memory`)."""


class OwnerLost(Message, frozen=True):
    """To the broker of the last owner: the durable subscription has another owner, or was moved or deleted."""

    name: str
    generation: int
    client: str
    reason: str


# ---- shared subscriptions ------------------------------------------------------------------------------------


class Returned(NamedTuple):
    """A negative acknowledgement of a delivery: redeliver it after a delay."""

    number: int
    delay_us: int


class Report(Message, frozen=True):
    """A member's report to its coordinator. Deliveries are identified by their numbers in the line."""

    line: str
    """An attachment of the member to a coordinator: it begins a new one whenever it attaches again."""
    at: int
    """When the member sent it, by its own clock."""
    holds: list[Item] | None = None
    """In the first report of a line: the member's deliveries, which get the numbers from 1 on."""
    acked: list[int] = msgspec.field(default_factory=list)
    returned: list[Returned] = msgspec.field(default_factory=list)
    extended: list[int] = msgspec.field(default_factory=list)
    """Deliveries whose time for an acknowledgement starts again."""
    losses: int = 0
    """The number of the last losses received in this line."""
    is_leaving: bool = False


class GroupReport(Message, frozen=True):
    name: str
    generation: int
    client: str
    report: Report


class DealItem(NamedTuple):
    """An event assigned to a member."""

    number: int
    deliveries: int
    """The number of its deliveries, including this one."""
    is_again: bool
    event: Event


class Deal(Message, frozen=True):
    """The coordinator's message to a member."""

    line: str
    since: int
    """When the member sent the last report that the coordinator had received when it assigned the items."""
    items: list[DealItem] = msgspec.field(default_factory=list)
    acked: list[int] = msgspec.field(default_factory=list)
    """Deliveries whose acknowledgements are stored."""
    revoked: list[int] = msgspec.field(default_factory=list)
    """Deliveries that no longer belong to this member."""
    gaps: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Pairs of timestamps between which history is lost. From 0: the beginning of the retained history."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """By publisher: numbers of events that no broker still holds."""
    losses: int = 0
    """The number of additions to these; they are repeated until the member reports this number."""
    is_over: bool = False
    """Whether the line has ended. A member that is not leaving attaches again."""


class GroupDealt(Message, frozen=True):
    name: str
    client: str
    deal: Deal


DurableBody: TypeAlias = (
    PrepareRecord | AcceptRecord | Vote | ListRecords | RecordPage | OwnerLost | GroupReport | GroupDealt
)
