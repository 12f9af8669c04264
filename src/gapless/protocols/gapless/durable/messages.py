"""Messages between brokers about durable subscriptions: records, the register's messages, and those of groups."""

from typing import NamedTuple, TypeAlias

import msgspec

from gapless.events import Event
from gapless.positions import Position
from gapless.protocols.gapless.identities import Ballot, Incarnation
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "AcceptRecord",
    "Deal",
    "DealItem",
    "DurableBody",
    "DurableRecord",
    "GroupDealt",
    "GroupReport",
    "Item",
    "ListRecords",
    "Outstanding",
    "OwnerLost",
    "PrepareRecord",
    "RecordPage",
    "Report",
    "Returned",
    "StoredRecord",
    "Version",
    "Vote",
]


class Version(NamedTuple):
    """Which write of a record: a proposer that keeps its ballot numbers its writes under it."""

    ballot: Ballot
    serial: int


class Item(NamedTuple):
    """One event."""

    publisher: str
    seq: int


class Outstanding(NamedTuple):
    """Of a shared subscription: an event that was delivered to a member and is not acknowledged."""

    publisher: str
    seq: int
    timestamp: int
    client: str
    """The member that has it; empty if it waits to be delivered to another."""
    deliveries: int
    """So many times."""


class DurableRecord(Message, frozen=True):
    """The state of a durable subscription: the value of its register."""

    name: str
    filter: str
    position: int
    """Everything up to this timestamp is acknowledged."""
    generation: int
    """Grows with each attach, move and end: an owner of an earlier generation is over."""
    got: Cuts = msgspec.field(default_factory=dict)
    """Acknowledgements beyond the position: the last number of each publisher."""
    serial: int = 0
    """The number of the owner's last acknowledgement: a repetition changes nothing."""
    client: str = ""
    """The client that is attached; empty if none is, and for shared ones."""
    line: str = ""
    """Which attachment of that client: a repetition of the call changes nothing."""
    owner: Incarnation | None = None
    """The incarnation of a broker that serves the client that is attached; of a shared one, its coordinator."""
    is_over: bool = False
    """It has been ended. The record stays, so that generations grow."""
    latest: int = 0
    """The largest timestamp of what `got` acknowledges."""
    delivered: int = 0
    """Nothing with a larger timestamp was delivered, unless a client is attached alone now."""
    after: tuple[int, str, int] | None = None
    """If it was moved to the position after an event: its timestamp, publisher and number."""
    user: str = ""
    """The user whose client attached first, in a network with users."""
    is_shared: bool = False
    redeliver_us: int = 0
    """Shared: an event that is not acknowledged for so long is delivered to another member."""
    max_deliveries: int = 0
    """After so many deliveries an event becomes a dead letter (see `letters`); 0 for never."""
    done: Ranges = msgspec.field(default_factory=dict)
    """Acknowledgements beyond `got`."""
    outstanding: list[Outstanding] = msgspec.field(default_factory=list)
    """Of one that is not shared: what its clients gave back."""

    @property
    def begin(self) -> Position:
        """Where a subscription begins that goes on with it, beside the numbers that it leaves out."""
        position = Position.at(self.position)
        return position if self.after is None else max(position, Position.after(*self.after))


class StoredRecord(Message, frozen=True):
    """The state of one name at one replica of the register. A disk has to keep all of it."""

    name: str
    promised: Ballot
    """It takes part in no smaller ballot any more."""
    version: Version
    """Of the record."""
    record: DurableRecord | None
    user: str = ""
    """While there is no record: for whose client the ballot was promised."""


# ---- the register --------------------------------------------------------------------------------------------


class PrepareRecord(Message, frozen=True):
    """To a replica: take part in no smaller ballot, and say what you hold. Without a ballot: only say it."""

    request: int
    name: str
    ballot: Ballot
    user: str


class AcceptRecord(Message, frozen=True):
    """To a replica: hold this record, unless you have promised a larger ballot."""

    request: int
    version: Version
    record: DurableRecord


class Vote(Message, frozen=True):
    """The state of a replica after a prepare or an accept. It agreed if it has promised no other ballot."""

    request: int
    version: Version
    """That was asked for; the serial is 0 after a prepare."""
    held: StoredRecord
    refusal: str
    """Why the replica does not take the name at all; empty if it does."""
    incarnations: list[int]
    """The latest incarnations of the replicas that the voter knows of: votes of earlier ones do not count."""


class ListRecords(Message, frozen=True):
    """To a replica: which records do you hold, by name, after this one? Request 0: of a replica that recovers."""

    request: int
    after: str


class RecordPage(Message, frozen=True):
    """Some of them, by name; with none, that was all."""

    request: int
    after: str
    records: list[StoredRecord]
    incarnations: list[int]
    memory: int
    """The basis of the answer (`membership_messages.Memory`)."""


class OwnerLost(Message, frozen=True):
    """To the broker of the last owner: the durable subscription has another, or was moved or ended."""

    name: str
    generation: int
    client: str
    reason: str


# ---- shared subscriptions ------------------------------------------------------------------------------------


class Returned(NamedTuple):
    """A delivery that the application gives back: to be delivered again after a delay."""

    number: int
    delay_us: int


class Report(Message, frozen=True):
    """From a member to its coordinator. Deliveries are named by their numbers in the line."""

    line: str
    """One attachment of the member to a coordinator: it begins a new one whenever it attaches again."""
    number: int
    """Of the report in the line."""
    holds: list[Item] | None = None
    """The first of a line: the deliveries that the member has, which get the numbers from 1 on."""
    acked: list[int] = msgspec.field(default_factory=list)
    returned: list[Returned] = msgspec.field(default_factory=list)
    extended: list[int] = msgspec.field(default_factory=list)
    """The application still works on these: they have the whole time again."""
    losses: int = 0
    """The last number of losses that came in this line."""
    is_leaving: bool = False


class GroupReport(Message, frozen=True):
    """To the coordinator: a member's report."""

    name: str
    generation: int
    client: str
    report: Report


class DealItem(NamedTuple):
    """An event that is delivered to a member."""

    number: int
    deliveries: int
    """How often it has been delivered, with this time."""
    is_again: bool
    event: Event


class Deal(Message, frozen=True):
    """From the coordinator to a member."""

    line: str
    since: int
    """The last report that the coordinator had when it assigned the items."""
    items: list[DealItem] = msgspec.field(default_factory=list)
    acked: list[int] = msgspec.field(default_factory=list)
    """These are acknowledged for good."""
    revoked: list[int] = msgspec.field(default_factory=list)
    """These are another member's by now, or nobody's."""
    gaps: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Nobody has what was admitted between these timestamps any more. From 0: the beginning of what is kept."""
    lost: Ranges = msgspec.field(default_factory=dict)
    """By publisher: numbers that nobody has any more."""
    losses: int = 0
    """How often something was added to these; they are repeated until the member reports this number."""
    is_over: bool = False
    """The line has ended. A member that is not leaving attaches again."""
    is_gone: bool = False
    """The sender does not coordinate the subscription, whatever the register says."""


class GroupDealt(Message, frozen=True):
    """To the broker of a member."""

    name: str
    client: str
    deal: Deal


DurableBody: TypeAlias = (
    PrepareRecord | AcceptRecord | Vote | ListRecords | RecordPage | OwnerLost | GroupReport | GroupDealt
)
