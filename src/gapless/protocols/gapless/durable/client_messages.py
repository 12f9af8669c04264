"""Messages between clients and brokers about durable subscriptions; each contains the client's session."""

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
    """Identifies this attachment of the client. With a shared subscription, each retry has a new identifier."""
    was_attached: bool = False
    """Shared: whether the client was attached before, so that a missing subscription is not created again."""


class ClientAck(_OfSession, frozen=True):
    """All acknowledgements of the client, for subscriptions that are not shared."""

    subscription: str
    name: str
    generation: int
    serial: int
    progress: Progress
    is_leaving: bool = False


class ClientMove(_OfSession, frozen=True):
    """Moves the durable subscription to another position; below 0, deletes it."""

    request: str
    name: str
    filter: str
    position: int
    after: tuple[int, str, int] | None = None


class ClientList(_OfSession, frozen=True):
    request: int


class ClientGroupReport(_OfSession, frozen=True):
    """A member's report, for its coordinator."""

    subscription: str
    name: str
    report: Report


DURABLE_CALLS = (ClientAttach, ClientAck, ClientMove, ClientList, ClientGroupReport)


# ---- answers -------------------------------------------------------------------------------------------------


class DurableReply(_OfSession, frozen=True):
    """Base of answers to these calls, outside the order of deliveries."""


class DurableAttached(DurableReply, frozen=True):
    """Says that the client is attached; to the record's owner, if it is shared."""

    subscription: str
    line: str
    record: DurableRecord


class DurableLost(DurableReply, frozen=True):
    """Says that the client is not attached, or no longer."""

    subscription: str
    reason: str


class AckResult(DurableReply, frozen=True):
    """Says that the acknowledgement with this serial is stored."""

    subscription: str
    serial: int


class DurableListed(DurableReply, frozen=True):
    """Some of the durable subscriptions."""

    request: int
    records: list[DurableRecord]
    newest: int
    """The clock of the answering broker: an upper bound of all timestamps it has seen."""
    is_last: bool
    published: int
    """An upper bound of the timestamps of published events."""


class DurableMoved(DurableReply, frozen=True):
    """Says that it was moved or deleted; or the reason why not."""

    request: str
    reason: str


class DealtNote(_OfSession, frozen=True):
    """A note of the coordinator, in its place among the client's deliveries."""

    number: int
    subscription: str
    deal: Deal


DurableAnswer: TypeAlias = DurableAttached | DurableLost | AckResult | DurableListed | DurableMoved
