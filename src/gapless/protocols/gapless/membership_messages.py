"""The messages for excluding incarnations, letting new ones join, and handing over their part of the tree."""

from enum import Enum

from gapless.event_runs import EventRun
from gapless.protocols.gapless.identities import Attempt, Ballot, Incarnation, Name, Status
from gapless.protocols.gapless.journal_messages import JournalCopy
from gapless.protocols.parts.messages import Cuts, Message

__all__ = [
    "Accept", "Accepted", "AcceptorState", "Accusation", "AdvertisementRecord", "Completed", "Contribution", "Join",
    "JoinReply", "Members", "Memory", "Prepare", "Promise", "Refused", "SubscriptionRecord",
]  # fmt: skip


class Members(Message, frozen=True):
    """The statuses of some brokers."""

    statuses: dict[str, Status]


class Accusation(Message, frozen=True):
    """Reports that the sender's failure detector suspects the incarnation, or no longer does."""

    incarnation: Incarnation
    is_suspected: bool


class Memory(Enum):
    """The basis of an answer to a new incarnation.

    NONE: the sender has restarted without a disk, or with a damaged one. DISK: the contents of a restarted broker's
    disk, which may not be the latest. SETTLED: the sender has not restarted, or has recovered since.
    """

    NONE = 0
    DISK = 1
    SETTLED = 2


class Join(Message, frozen=True):
    """Announces a new incarnation before it votes, holds entries or contributes, and requests the state of the
    receiver."""

    request: int
    held: list[tuple[Incarnation, int]]
    """How much of each journal the sender has already."""


class AcceptorState(Message, frozen=True):
    """An acceptor's promises and votes about one broker, and its copies of that broker's journals."""

    broker: str
    memory: Memory
    promised_below: int
    promised: Ballot
    accepted: dict[int, tuple[Ballot, int]]
    copies: list[JournalCopy]


class JoinReply(Message, frozen=True):
    """The answer to `Join`: statuses, and the acceptor's state for each broker whose electorate contains both ends."""

    request: int
    statuses: dict[str, Status]
    acceptors: list[AcceptorState]
    vouched: list[Incarnation]
    """The incarnations that the sender is an acceptor of and has not promised to exclude."""


class Prepare(Message, frozen=True):
    """Phase 1 of sealing the journals of all incarnations of a broker below a number."""

    broker: str
    below: int
    ballot: Ballot


class Promise(Message, frozen=True):
    """Reports that the sender accepts no further entries of these journals. Contains its copies and votes."""

    state: AcceptorState
    below: int
    ballot: Ballot


class Refused(Message, frozen=True):
    """Reports that the sender has promised a larger ballot."""

    broker: str
    ballot: Ballot
    """The refused ballot."""
    promised: Ballot


class Accept(Message, frozen=True):
    """Phase 2: the agreed lengths of the journals, and the entries that the receiver lacks."""

    broker: str
    below: int
    ballot: Ballot
    lengths: dict[int, int]
    copies: list[JournalCopy]


class Accepted(Message, frozen=True):
    """Reports that the sender has accepted these lengths, and holds the journals up to them."""

    broker: str
    below: int
    ballot: Ballot


class SubscriptionRecord(Message, frozen=True):
    """A subscription in a contribution to a handover."""

    name: Name
    filter: str
    attempt: Attempt
    is_active: bool


class AdvertisementRecord(Message, frozen=True):
    """An advertisement in a contribution to a handover."""

    name: Name
    filter: str
    attempt: Attempt
    home: Incarnation
    base: int


class Contribution(Message, frozen=True):
    """A member's contribution to a handover: everything that the others need to know of its side of the tree."""

    tag: int
    statuses: dict[str, Status]
    clock: int
    stable: int
    log: list[EventRun]
    seen: Cuts
    journals: list[JournalCopy]
    subscriptions: list[SubscriptionRecord]
    advertisements: list[AdvertisementRecord]


class Completed(Message, frozen=True):
    """Reports that the sender has completed the handover."""

    tag: int
