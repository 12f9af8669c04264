"""All messages between brokers: those below, and the clients that move.

Everything travels in `Frame`s of a reliable FIFO `channel` between two incarnations. A `LinkMessage` follows the tree;
all other bodies are addressed to the broker.
"""

from typing import TypeAlias

from gapless.protocols.gapless.durable.messages import DurableBody
from gapless.protocols.gapless.identities import Incarnation, Status
from gapless.protocols.gapless.journal_messages import (
    Entries,
    Held,
    Hold,
    JournalReply,
    Page,
    ReadPage,
    RequestEntries,
    RequestJournal,
)
from gapless.protocols.gapless.link_messages import LinkMessage
from gapless.protocols.gapless.membership_messages import (
    Accept,
    Accepted,
    Accusation,
    Completed,
    Contribution,
    Join,
    JoinReply,
    Members,
    Prepare,
    Promise,
    Refused,
)
from gapless.protocols.parts.messages import Message

__all__ = [
    "BROKER_MESSAGES", "Ack", "Body", "CloseSession", "Excluded", "Frame", "LastNumber", "LastNumberReply",
    "RequestWave", "Resume", "SessionClosed",
]  # fmt: skip


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


class RequestWave(Message, frozen=True):
    """To the root: begin a wave now, or when the one that is passing has ended."""

    is_lost: bool
    """Whether the one that is passing may have been lost."""


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
