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
    """Identifies one write of a record. A proposer that keeps its ballot numbers its writes under that ballot."""

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
    """The member that has the event; empty if the event waits to be assigned to another member."""
    deliveries: int
    """How many times the event was delivered."""


class Progress(Message, frozen=True):
    """Which events of a durable subscription are acknowledged, and which unacknowledged ones were delivered."""

    position: int
    """The timestamp up to which everything is acknowledged."""
    got: Cuts = msgspec.field(default_factory=dict)
    """The last acknowledged number of each publisher beyond the position."""
    latest: int = 0
    """The largest timestamp of the events that `got` acknowledges."""
    delivered: int = 0
    """An upper bound of the timestamps of delivered events. Not kept up to date while a client is attached
    exclusively."""
    done: Ranges = msgspec.field(default_factory=dict)
    """The numbers of further acknowledged events, beyond `got`."""
    outstanding: list[Outstanding] = msgspec.field(default_factory=list)
    """Delivered events that are not acknowledged. For an exclusive subscription, only those returned with `nack`."""


class DurableRecord(Message, frozen=True):
    """The state of a durable subscription, which is the value of its register."""

    name: str
    filter: str
    progress: Progress
    generation: int
    """Grows when a client attaches, and when the subscription is moved or deleted. An owner with a smaller generation
    has lost the subscription."""
    serial: int = 0
    """The number of the owner's last acknowledgement. Repeating an acknowledgement changes nothing."""
    client: str = ""
    """The attached client. Empty if there is none, and for a shared subscription."""
    line: str = ""
    """Identifies that client's attachment. Repeating the call to attach changes nothing."""
    owner: Incarnation | None = None
    """The broker incarnation that serves the attached client, or coordinates the shared subscription."""
    is_over: bool = False
    """Whether the subscription was deleted. The record is kept so that generations keep growing."""
    after: tuple[int, str, int] | None = None
    """The timestamp, publisher and number of the event after which the subscription continues, if it was
    moved there."""
    user: str = ""
    """The user of the client that attached first, in a network with users."""
    is_shared: bool = False
    redeliver_us: int = 0
    """For a shared subscription: how long a member has to acknowledge an event before it is redelivered to another
    member."""
    max_deliveries: int = 0
    """The number of deliveries after which an event becomes a dead letter (see `letters`); 0 for never."""

    @property
    def begin(self) -> Position:
        """Return the position from which the subscription continues, not counting the numbers it skips."""
        position = Position.at(self.progress.position)
        return position if self.after is None else max(position, Position.after(*self.after))


class StoredRecord(Message, frozen=True):
    """The state of one record at one replica of the register. All of it is durable."""

    name: str
    promised: Ballot
    """The largest promised ballot. The replica rejects smaller ones."""
    version: Version
    """The version of the record."""
    record: DurableRecord | None
    user: str = ""
    """The user for whose client the ballot was promised, before there is a record."""


# ---- the register --------------------------------------------------------------------------------------------


class PrepareRecord(Message, frozen=True):
    """Asks a replica to promise a ballot and to send its record. Without a ballot: only to send its record."""

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
    """A replica's state after a prepare or accept request. The replica has agreed if the promised ballot is the
    requested one."""

    request: int
    version: Version
    """The requested version. Its serial is 0 for a prepare request."""
    held: StoredRecord
    refusal: str
    """Why the replica rejects any record of this name; empty if it does not."""
    incarnations: list[int]
    """The latest incarnations of the replicas that the voter knows. Votes of earlier incarnations are void."""


class ListRecords(Message, frozen=True):
    """Asks a replica for its records, in order of names, after the given one. Request 0 comes from a recovering
    replica."""

    request: int
    after: str


class RecordPage(Message, frozen=True):
    """A page of records in order of names. An empty page is the last one."""

    request: int
    after: str
    records: list[StoredRecord]
    incarnations: list[int]
    memory: int
    """The sender's memory when it answered (see `membership_messages.Memory`)."""


class OwnerLost(Message, frozen=True):
    """Tells the broker of the previous owner that the durable subscription has another owner, or was moved or
    deleted."""

    name: str
    generation: int
    client: str
    reason: str


# ---- shared subscriptions ------------------------------------------------------------------------------------


class Returned(NamedTuple):
    """A negative acknowledgement of a delivery, which is to be redelivered after a delay."""

    number: int
    delay_us: int


class Report(Message, frozen=True):
    """A member's report to its coordinator. Deliveries are identified by their numbers in the line."""

    line: str
    """Identifies the member's attachment to a coordinator. Each attachment begins a new line."""
    at: int
    """The time of the report by the member's clock."""
    holds: list[Item] | None = None
    """In the first report of a line: the deliveries that the member has. They are numbered from 1 on in the line."""
    acked: list[int] = msgspec.field(default_factory=list)
    returned: list[Returned] = msgspec.field(default_factory=list)
    extended: list[int] = msgspec.field(default_factory=list)
    """Deliveries whose acknowledgement timeout is to be restarted."""
    losses: int = 0
    """The number of the last loss report that the member has received in this line."""
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
    """How many times the event was delivered, including this delivery."""
    is_again: bool
    event: Event


class Deal(Message, frozen=True):
    """A message from a coordinator to a member."""

    line: str
    since: int
    """The time of the member's last report (by the member's clock) that the coordinator had received when it assigned
    the items."""
    items: list[DealItem] = msgspec.field(default_factory=list)
    acked: list[int] = msgspec.field(default_factory=list)
    """Deliveries whose acknowledgements are stored."""
    revoked: list[int] = msgspec.field(default_factory=list)
    """Deliveries that no longer belong to this member."""
    gaps: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Pairs of timestamps between which history is lost. The first is 0 if the loss starts at the beginning of the
    retained history."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """The numbers of events that no broker has any more, by publisher."""
    losses: int = 0
    """The number of the last loss report included here. It is repeated until the member reports this number."""
    is_over: bool = False
    """Whether the line has ended. Unless the member is leaving, it attaches again."""


class GroupDealt(Message, frozen=True):
    name: str
    client: str
    deal: Deal


DurableBody: TypeAlias = (
    PrepareRecord | AcceptRecord | Vote | ListRecords | RecordPage | OwnerLost | GroupReport | GroupDealt
)
