"""The messages between brokers of the protocol.

Everything travels in `Frame`s of a reliable FIFO `channel` between two incarnations. A `LinkMessage` belongs to one
installation of one link of the tree, named by its `tag`; all other bodies are addressed to the broker.
"""

from enum import Enum
from typing import NamedTuple, TypeAlias

import msgspec

from gapless.events import EventRun, Events
from gapless.protocols.gapless.durable.messages import DurableBody
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "BROKER_MESSAGES",
    "Accept",
    "Accepted",
    "AcceptorState",
    "Accusation",
    "Ack",
    "ActivateSubscription",
    "AddAdvertisement",
    "AddSubscription",
    "AdvertisementAck",
    "AdvertisementRecord",
    "Attempt",
    "Ballot",
    "Body",
    "CloseSession",
    "Completed",
    "Contribution",
    "CutAnswer",
    "Dropped",
    "Echo",
    "Entries",
    "Entry",
    "Excluded",
    "Final",
    "FinalPosition",
    "Frame",
    "Held",
    "Hold",
    "Incarnation",
    "Join",
    "JoinReply",
    "JournalCopy",
    "JournalReply",
    "LastNumber",
    "LastNumberReply",
    "LinkBody",
    "LinkMessage",
    "Members",
    "Memory",
    "Name",
    "Numbers",
    "Page",
    "Prepare",
    "Promise",
    "Publication",
    "ReadPage",
    "Refused",
    "RemoveAdvertisement",
    "RemoveSubscription",
    "RequestEntries",
    "RequestJournal",
    "RequestWave",
    "Resume",
    "SessionClosed",
    "Status",
    "SubscriptionRecord",
    "Void",
    "Wave",
]  # fmt: skip


Numbers: TypeAlias = dict[str, tuple[int, int]]
"""By publisher, the first and the last of some numbers."""


class Incarnation(NamedTuple):
    """One run of a broker, from its start until it is excluded or restarts without memory."""

    broker: str
    number: int


class Name(NamedTuple):
    """A subscription or an advertisement: its client, and what the client calls it."""

    client: str
    local: str


class Attempt(NamedTuple):
    """One attempt of a client to subscribe or advertise: grows with each session, and with each restart in it."""

    session: int
    restart: int


class Ballot(NamedTuple):
    """The number of a proposal to seal journals. Larger ones win."""

    round: int
    proposer: str


class Status(NamedTuple):
    """The known status of a broker. Statuses only grow, and merge by the maximum of each part."""

    number: int = 0
    """Its latest incarnation."""
    phase: int = 1
    """Of that incarnation: odd if it has joined the tree, even if it is joining."""
    sealed_below: int = 0
    """All incarnations with smaller numbers are excluded, and their journals are sealed."""
    lengths: tuple[tuple[int, int], ...] = ()
    """For each sealed incarnation that admitted anything: its number, and the length of its journal. It shrinks only
    when nobody holds the rest any more."""
    forgotten_below: int = 0
    """An operator said that incarnations with smaller numbers never return: nobody waits for them."""

    @property
    def is_excluded(self) -> bool:
        return self.sealed_below > self.number

    @property
    def is_forgotten(self) -> bool:
        return self.forgotten_below > self.number

    @property
    def is_joined(self) -> bool:
        return self.phase % 2 == 1 and not self.is_excluded


class Entry(NamedTuple):
    """One entry of a journal: events of one publisher that were admitted together, with one timestamp."""

    events: Events

    @property
    def publisher(self) -> str:
        return self.events.publisher if isinstance(self.events, EventRun) else self.events[0].publisher

    @property
    def first(self) -> int:
        return self.events.first if isinstance(self.events, EventRun) else self.events[0].seq

    @property
    def last(self) -> int:
        return self.events.last if isinstance(self.events, EventRun) else self.events[-1].seq

    @property
    def timestamp(self) -> int:
        return self.events.stamp if isinstance(self.events, EventRun) else self.events[0].stamp


class Dropped(NamedTuple):
    """The numbers of entries that a journal has dropped (see `dropped`)."""

    since: int = 0
    """The numbers that were dropped up to this timestamp are not known."""
    until: int = 0
    """Nothing was dropped after this."""
    parts: tuple[tuple[int, Numbers], ...] = ()
    """Each with its last timestamp."""


class JournalCopy(Message, frozen=True):
    """A broker's copy of the journal of one incarnation: a prefix of it, without entries that it could drop."""

    incarnation: Incarnation
    start: int
    """So many entries came before the first one here."""
    dropped: int
    """The timestamp of the last of these."""
    last_numbers: Cuts
    """If there are any: for each publisher its last number in the journal; ..."""
    has_forgotten: bool
    """... or not for each."""
    entries: list[Entry]
    gone: Dropped = Dropped()
    """The entries that the sender has dropped itself."""

    @property
    def length(self) -> int:
        return self.start + len(self.entries)


class SubscriptionRecord(Message, frozen=True):
    """A subscription as one broker tells another in a handover."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class AdvertisementRecord(Message, frozen=True):
    """An advertisement as one broker tells another in a handover."""

    name: Name
    filter: str
    attempt: Attempt
    home: Incarnation
    base: int


class FinalPosition(Message, frozen=True):
    """A final position: no event can be admitted any more with a timestamp up to `timestamp`."""

    timestamp: int = 0
    sealed: list[tuple[Incarnation, int]] = msgspec.field(default_factory=list)
    """The seals that the position includes: each of all incarnations of a broker below a number, with the largest clock
    of the handover that removed them."""


# ---- along a link of the tree ------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """Events of one publisher, in order."""

    events: Events


class AddSubscription(Message, frozen=True):
    """Somebody behind the sender subscribes."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class RemoveSubscription(Message, frozen=True):
    """The subscription ended."""

    name: Name


class ActivateSubscription(Message, frozen=True):
    """The attempt succeeded: from now on the subscription may represent others."""

    name: Name
    attempt: Attempt


class CutAnswer(Message, frozen=True):
    """The marker: from these numbers on, events of these publishers reach the subscription."""

    name: Name
    attempt: Attempt
    cuts: Cuts


class AddAdvertisement(Message, frozen=True):
    """Somebody behind the sender may publish what matches the filter, with numbers above `last`."""

    name: Name
    filter: str
    attempt: Attempt
    last: int
    home: Incarnation
    """The publisher's broker."""
    base: int
    """The publisher's events from before it came there have numbers up to this."""


class RemoveAdvertisement(Message, frozen=True):
    """The advertisement ended: nothing published from now on relies on it."""

    name: Name
    attempt: Attempt


class AdvertisementAck(Message, frozen=True):
    """All brokers behind the sender have the advertisement, and have sent the subscriptions that overlap."""

    name: Name
    attempt: Attempt
    last: int
    """None of them has seen a larger number of the publisher."""


class Void(Message, frozen=True):
    """A handover crossed the path of this attempt: the owner's broker starts it again, unless it has completed."""

    name: Name
    attempt: Attempt
    is_subscription: bool


class Wave(Message, frozen=True):
    """The root proposes a position. All clocks pass it."""

    timestamp: int
    stable: int
    """All brokers have processed everything with a timestamp up to this."""


class Echo(Message, frozen=True):
    """All brokers behind the sender have released what they had admitted when the wave came."""

    timestamp: int
    sealed: list[tuple[Incarnation, int]]
    final: int
    """The smallest final position among them."""


class Final(Message, frozen=True):
    """The position is final."""

    position: FinalPosition


LinkBody: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | ActivateSubscription | CutAnswer | AddAdvertisement
    | RemoveAdvertisement | AdvertisementAck | Void | Wave | Echo | Final
)  # fmt: skip


class LinkMessage(Message, frozen=True):
    """A message along one installation of a link."""

    tag: int
    body: LinkBody


# ---- membership --------------------------------------------------------------------------------------------


class Members(Message, frozen=True):
    """News of some brokers."""

    statuses: dict[str, Status]


class Accusation(Message, frozen=True):
    """The sender's failure detector suspects the incarnation, or no longer does."""

    incarnation: Incarnation
    is_suspected: bool


class Memory(Enum):
    """The basis of an answer to a new incarnation.

    NONE: a restart without a disk, or with one that is damaged. DISK: what the disk of a restarted broker had, of which
    it does not know whether it is the latest. SETTLED: the acceptor has not restarted, or has recovered since.
    """

    NONE = 0
    DISK = 1
    SETTLED = 2


class Join(Message, frozen=True):
    """A new incarnation asks what those around it know, before it votes, holds or contributes anything."""

    request: int
    held: list[tuple[Incarnation, int]]
    """How much of each journal it has already."""


class AcceptorState(Message, frozen=True):
    """The promises and votes of an acceptor about one broker, and its copies of that broker's journals."""

    broker: str
    memory: Memory
    promised_below: int
    promised: Ballot
    accepted: dict[int, tuple[Ballot, int]]
    copies: list[JournalCopy]


class JoinReply(Message, frozen=True):
    """The answer: statuses, and the acceptor's state for each broker whose electorate has both ends."""

    request: int
    statuses: dict[str, Status]
    acceptors: list[AcceptorState]
    vouched: list[Incarnation]
    """The incarnations in whose electorates the sender is, and that it has not promised to exclude."""


class Prepare(Message, frozen=True):
    """Phase 1 of sealing the journals of all incarnations of a broker below a number."""

    broker: str
    below: int
    ballot: Ballot


class Promise(Message, frozen=True):
    """The sender holds no further entries of these journals. It sends its copies and votes."""

    state: AcceptorState
    below: int
    ballot: Ballot


class Refused(Message, frozen=True):
    """The sender has promised a larger ballot."""

    broker: str
    ballot: Ballot
    """The one that is refused."""
    promised: Ballot


class Accept(Message, frozen=True):
    """Phase 2: the lengths of the journals, with the entries that the receiver lacks."""

    broker: str
    below: int
    ballot: Ballot
    lengths: dict[int, int]
    copies: list[JournalCopy]


class Accepted(Message, frozen=True):
    """The sender has accepted these lengths, and holds the journals up to them."""

    broker: str
    below: int
    ballot: Ballot


# ---- journals ----------------------------------------------------------------------------------------------


class Hold(Message, frozen=True):
    """Entries of the sender's journal, from a place on. With `is_new`, all that not all brokers have processed."""

    copy: JournalCopy
    is_new: bool


class Held(Message, frozen=True):
    """The sender holds so many entries of the receiver's journal."""

    length: int


class RequestJournal(Message, frozen=True):
    """Send what you hold of this sealed journal."""

    incarnation: Incarnation


class RequestEntries(Message, frozen=True):
    """Send what you hold of this journal just before a place."""

    incarnation: Incarnation
    before: int


class Entries(Message, frozen=True):
    """The answer: a page of it, or nothing."""

    copy: JournalCopy


class JournalReply(Message, frozen=True):
    """A sealed journal."""

    copy: JournalCopy


# ---- handover ----------------------------------------------------------------------------------------------


class Contribution(Message, frozen=True):
    """The contribution of one member to a handover: all that the others must know of its side of the tree."""

    tag: int
    statuses: dict[str, Status]
    clock: int
    stable: int
    log: list[Events]
    seen: Cuts
    journals: list[JournalCopy]
    subscriptions: list[SubscriptionRecord]
    advertisements: list[AdvertisementRecord]


class Completed(Message, frozen=True):
    """The sender has completed the handover."""

    tag: int


# ---- moving clients ----------------------------------------------------------------------------------------


class CloseSession(Message, frozen=True):
    """The client has attached to the sender: end its session."""

    client: str
    session: int


class SessionClosed(Message, frozen=True):
    """The session is over. Everything of the client's that was admitted has been released, before this clock."""

    client: str
    session: int
    clock: int
    last: int


class LastNumber(Message, frozen=True):
    """Ask for the last number of this client in the sealed journal."""

    client: str
    session: int
    incarnation: Incarnation


class LastNumberReply(Message, frozen=True):
    """The answer; the frame's clock is not before that of the event."""

    client: str
    session: int
    last: int


# ---- positions and history ---------------------------------------------------------------------------------


class RequestWave(Message, frozen=True):
    """To the root: begin a wave now, or when the one that is passing has ended."""

    is_lost: bool
    """Whether the one that is passing may have been lost."""


class ReadPage(Message, frozen=True):
    """Ask for matching entries of this incarnation's journal after `since` and up to `until`, which is final."""

    reading: int
    incarnation: Incarnation
    length: int
    """If the reader knows that the journal is sealed: its length; else -1."""
    since: int
    until: int
    filter: str


class Page(Message, frozen=True):
    """The first part of it: the sender speaks for the journal from `since` up to `upto`."""

    reading: int
    incarnation: Incarnation
    since: int
    upto: int
    """Not after `since`, if the sender does not hold what follows."""
    dropped: int
    """The sender holds nothing any more up to this timestamp; 0 if it has dropped nothing."""
    events: list[Events]
    """Each of one entry, so with one timestamp."""
    lost: Ranges | None = None
    """The numbers that were dropped up to there, if they are known."""


Body: TypeAlias = (
    LinkMessage | Members | Accusation | Join | JoinReply | Prepare | Promise | Refused | Accept | Accepted | Hold
    | Held | RequestEntries | Entries | RequestJournal | JournalReply | Contribution | Completed | CloseSession
    | SessionClosed | LastNumber | LastNumberReply | RequestWave | ReadPage | Page | DurableBody
)  # fmt: skip


class Frame(Message, frozen=True):
    """One message of the channel between two incarnations."""

    sender: int
    """The number of the sender's incarnation."""
    receiver: int
    seq: int
    ack: int
    clock: int
    body: Body


class Ack(Message, frozen=True):
    """Everything up to `ack` has arrived."""

    sender: int
    receiver: int
    ack: int


class Resume(Message, frozen=True):
    """After a fresh connection: so much has arrived, send the rest again."""

    sender: int
    receiver: int
    ack: int
    wants_answer: bool


class Excluded(Message, frozen=True):
    """To an excluded incarnation: these statuses say so."""

    statuses: dict[str, Status]


BROKER_MESSAGES = (Frame, Ack, Resume, Excluded)
