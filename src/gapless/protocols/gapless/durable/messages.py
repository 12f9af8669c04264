"""Messages about durable subscriptions: the record, the register's messages, and those of shared subscriptions.

Clients' calls and the answers to them are in the second half; each carries the client's session, like all its calls.
"""

from typing import NamedTuple, TypeAlias

import msgspec

from gapless.events import Event
from gapless.positions import Position
from gapless.protocols.parts.messages import Cuts, Message

__all__ = [
    "DURABLE_CALLS", "AcceptRecord", "AckResult", "Ballot", "ClientAck", "ClientAttach",
    "ClientGroupReport", "ClientList", "ClientMove", "Deal", "DealItem", "DealtNote", "DurableAnswer",
    "DurableAttached", "DurableBody", "DurableListed", "DurableLost", "DurableMoved", "DurableRecord",
    "DurableRefused", "DurableReply", "GroupDealt", "GroupOver", "GroupReport", "Item", "ListRecords", "Outstanding",
    "Owner", "OwnerLost", "PrepareRecord", "Ranges", "RecordPage", "Report", "Returned", "StoredRecord", "Version",
    "Vote",
]  # fmt: skip

Ranges: TypeAlias = dict[str, list[tuple[int, int]]]
"""Numbers of events by publisher: ascending ranges, first and last, apart from each other."""


class Ballot(NamedTuple):
    """The number of a proposal to change a record. Larger ones win."""

    round: int
    proposer: str
    """The incarnation of the proposing broker."""


class Version(NamedTuple):
    """Which write of a record: a proposer that keeps its ballot numbers its writes under it."""

    ballot: Ballot
    serial: int


class Owner(NamedTuple):
    """The incarnation of a broker that serves the client that is attached; of a shared one, its coordinator."""

    broker: str
    number: int


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
    owner: Owner | None = None
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


# ---- the register, between brokers ---------------------------------------------------------------------------


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


# ---- shared subscriptions, between brokers -------------------------------------------------------------------


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
    gap: tuple[int, int] | None = None
    """Nobody has what was admitted between these timestamps any more. From 0: the beginning of what is kept."""
    lost: dict[str, list[tuple[int, int]]] = msgspec.field(default_factory=dict)
    """By publisher: numbers that nobody has any more."""
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


# ---- calls of clients ----------------------------------------------------------------------------------------


class _OfSession(Message, frozen=True):
    session: int


class ClientAttach(_OfSession, frozen=True):
    """The client attaches to a durable subscription."""

    subscription: str
    name: str
    filter: str
    replace: bool = False
    is_shared: bool = False
    redeliver_us: int = 0
    max_deliveries: int = 0
    line: str = ""
    """Names this attachment of the client; a shared one begins another with each repetition."""
    was_attached: bool = False
    """Shared: the client goes on; the subscription must not begin anew."""
    gone: int = 0
    """Shared: the coordinator of this generation is gone, and of all before."""


class ClientAck(_OfSession, frozen=True):
    """All acknowledgements of the client. Only for subscriptions that are not shared."""

    subscription: str
    name: str
    generation: int
    serial: int
    position: int
    got: Cuts
    latest: int
    delivered: int
    done: Ranges = msgspec.field(default_factory=dict)
    is_leaving: bool = False
    tries: list[Outstanding] = msgspec.field(default_factory=list)
    """Events that were given back and are not acknowledged, and how often each was delivered."""


class ClientMove(_OfSession, frozen=True):
    """Let the durable subscription go on after another position; below 0, end it."""

    request: str
    name: str
    filter: str
    position: int
    after: tuple[int, str, int] | None = None


class ClientList(_OfSession, frozen=True):
    """Which durable subscriptions are there?"""

    request: int


class ClientGroupReport(_OfSession, frozen=True):
    """A member's report, for its coordinator."""

    subscription: str
    name: str
    report: Report


DURABLE_CALLS = (ClientAttach, ClientAck, ClientMove, ClientList, ClientGroupReport)


class DurableReply(_OfSession, frozen=True):
    """An answer of a broker to these calls, outside the order of deliveries."""


class DurableAttached(DurableReply, frozen=True):
    """The client is attached; if it is shared, to the record's owner."""

    subscription: str
    line: str
    record: DurableRecord


class DurableRefused(DurableReply, frozen=True):
    """The client cannot be attached."""

    subscription: str
    reason: str


class DurableLost(DurableReply, frozen=True):
    """The client is attached no more."""

    subscription: str
    reason: str


class AckResult(DurableReply, frozen=True):
    """The acknowledgement with this serial holds."""

    subscription: str
    serial: int


class DurableListed(DurableReply, frozen=True):
    """Some of the durable subscriptions."""

    request: int
    records: list[DurableRecord]
    newest: int
    """The clock of the broker that answers: no event that it has heard of has a larger timestamp."""
    is_last: bool


class DurableMoved(DurableReply, frozen=True):
    """It was moved or ended; or the reason why not."""

    request: str
    reason: str


class GroupOver(DurableReply, frozen=True):
    """The coordinator of this line is gone: attach again."""

    subscription: str
    line: str


class DealtNote(_OfSession, frozen=True):
    """A note of the coordinator, in its place among the client's deliveries."""

    number: int
    subscription: str
    deal: Deal


DurableAnswer: TypeAlias = (
    DurableAttached | DurableRefused | DurableLost | AckResult | DurableListed | DurableMoved | GroupOver
)
