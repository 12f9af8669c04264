"""All messages between brokers: those defined here, and those about clients that move.

Each message travels in a `Frame` of a reliable FIFO `channel` between two incarnations. A `LinkMessage` follows the
tree; all other bodies are addressed to the receiving broker.
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
    """Reports that the client has attached to the sender, so the receiver must end its session."""

    client: str
    session: int


class SessionClosed(Message, frozen=True):
    """Reports that the session is closed. All admitted publications of the client were released before this clock."""

    client: str
    session: int
    clock: int
    last: int


class LastNumber(Message, frozen=True):
    """Requests the client's last number in the sealed journal."""

    client: str
    session: int
    incarnation: Incarnation


class LastNumberReply(Message, frozen=True):
    """The answer to `LastNumber`. The clock of its frame is not before the event's timestamp."""

    client: str
    session: int
    last: int


class RequestWave(Message, frozen=True):
    """Asks the root to begin a wave now, or when the current one has ended."""

    is_lost: bool
    """Whether the current wave may have been lost."""


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
    """Acknowledges all frames up to `ack`."""

    sender: int
    receiver: int
    ack: int


class Resume(Message, frozen=True):
    """Reports on a new connection which frames have arrived; the others must be sent again."""

    sender: int
    receiver: int
    ack: int
    wants_answer: bool


class Excluded(Message, frozen=True):
    """Tells an excluded incarnation which statuses exclude it."""

    statuses: dict[str, Status]


BROKER_MESSAGES = (Frame, Ack, Resume, Excluded)
