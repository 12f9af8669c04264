"""Messages between clients and brokers about durable subscriptions; each carries the client's session."""

from typing import TypeAlias

import msgspec

from gapless.protocols.gapless.durable.messages import Deal, DurableRecord, Outstanding, Report
from gapless.protocols.parts.messages import Cuts, Message
from gapless.protocols.parts.ranges import Ranges

__all__ = [
    "DURABLE_CALLS",
    "AckResult",
    "ClientAck",
    "ClientAttach",
    "ClientGroupReport",
    "ClientList",
    "ClientMove",
    "DealtNote",
    "DurableAnswer",
    "DurableAttached",
    "DurableListed",
    "DurableLost",
    "DurableMoved",
    "DurableRefused",
    "DurableReply",
    "GroupOver",
]


class _OfSession(Message, frozen=True):
    session: int


# ---- calls of clients ----------------------------------------------------------------------------------------


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


# ---- answers -------------------------------------------------------------------------------------------------


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
    published: int
    """No event that was published has a larger timestamp."""


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
