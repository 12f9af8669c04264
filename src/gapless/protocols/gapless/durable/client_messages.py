"""Messages between clients and brokers about durable subscriptions. Each one contains the client's session."""

from typing import TypeAlias

from gapless.protocols.gapless.durable.messages import Deal, DurableRecord, Progress, Report
from gapless.protocols.parts.messages import Message

__all__ = [
    "DURABLE_CALLS", "AckResult", "ClientAck", "ClientAttach", "ClientGroupReport", "ClientList", "ClientMove",
    "DealtNote", "DurableAnswer", "DurableAttached", "DurableListed", "DurableLost", "DurableMoved", "DurableReply",
]  # fmt: skip


class _OfSession(Message, frozen=True):
    session: int


# ---- calls of clients ----------------------------------------------------------------------------------------


class ClientAttach(_OfSession, frozen=True):
    """Attaches the client to a durable subscription."""

    subscription: str
    name: str
    filter: str
    replace: bool = False
    is_shared: bool = False
    redeliver_us: int = 0
    max_deliveries: int = 0
    line: str = ""
    """Identifies the attachment. For a shared subscription, each retry has a new identifier."""
    was_attached: bool = False
    """For a shared subscription: whether the client was attached before. Then the subscription is not created again if
    it is missing."""


class ClientAck(_OfSession, frozen=True):
    """All acknowledgements of the client for one exclusive subscription."""

    subscription: str
    name: str
    generation: int
    serial: int
    progress: Progress
    is_leaving: bool = False


class ClientMove(_OfSession, frozen=True):
    """Moves the durable subscription to another position, or deletes it if the position is negative."""

    request: str
    name: str
    filter: str
    position: int
    after: tuple[int, str, int] | None = None


class ClientList(_OfSession, frozen=True):
    request: int


class ClientGroupReport(_OfSession, frozen=True):
    """A report from a member of a shared subscription to its coordinator."""

    subscription: str
    name: str
    report: Report


DURABLE_CALLS = (ClientAttach, ClientAck, ClientMove, ClientList, ClientGroupReport)


# ---- answers -------------------------------------------------------------------------------------------------


class DurableReply(_OfSession, frozen=True):
    """Base of answers to these calls. They are not ordered with deliveries."""


class DurableAttached(DurableReply, frozen=True):
    """Reports that the client is attached. For a shared subscription, the record names the coordinator's broker."""

    subscription: str
    line: str
    record: DurableRecord


class DurableLost(DurableReply, frozen=True):
    """Reports that the client is not, or no longer, attached."""

    subscription: str
    reason: str


class AckResult(DurableReply, frozen=True):
    """Reports that the acknowledgement with this serial is stored."""

    subscription: str
    serial: int


class DurableListed(DurableReply, frozen=True):
    """One page of the list of durable subscriptions."""

    request: int
    records: list[DurableRecord]
    newest: int
    """The clock of the broker that answers: no event with a larger timestamp has been seen there."""
    is_last: bool
    published: int
    """No event with a larger timestamp has been published."""


class DurableMoved(DurableReply, frozen=True):
    """Reports that the subscription was moved or deleted; or why not."""

    request: str
    reason: str


class DealtNote(_OfSession, frozen=True):
    """A note from the coordinator, in its order among the client's deliveries."""

    number: int
    subscription: str
    deal: Deal


DurableAnswer: TypeAlias = DurableAttached | DurableLost | AckResult | DurableListed | DurableMoved
