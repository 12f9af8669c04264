"""The calls and answers of a client's node that concern durable subscriptions."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from gapless.positions import Position

__all__ = [
    "DEAD_LETTER", "LISTING", "AckMode", "Acknowledge", "AcknowledgeEach", "Acknowledged", "Attached", "DeadLettered",
    "DurableChanged", "DurableInfo", "DurablesListed", "EachAcknowledged", "ExtendAck", "JoinedGroup", "ListDurables",
    "MoveDurable", "Nack", "Revoked",
]  # fmt: skip

AckMode: TypeAlias = Literal["auto", "manual"]
"""When an event of a durable subscription is acknowledged: `auto` when the application asks for the next event,
`manual` when the application calls `ack`."""


DEAD_LETTER = "dead_letter."
"""The prefix of the attributes that describe why an event became a dead letter."""
LISTING = "names/"
"""The prefix of the number of a `ListDurables` request, in the message that denies the request."""


class Acknowledge(msgspec.Struct, frozen=True):
    """A client's call: acknowledge everything up to a delivery to this client, for one durable subscription."""

    subscription: str
    count: int
    is_urgent: bool = True
    """Whether a caller is waiting for the acknowledgement. If not, the node can combine it with later ones."""


class AcknowledgeEach(msgspec.Struct, frozen=True):
    """A client's call: acknowledge exactly these deliveries, in any order. `EachAcknowledged` follows."""

    subscription: str
    counts: Sequence[int]
    is_urgent: bool = True


class Nack(msgspec.Struct, frozen=True):
    """A client's call: these deliveries failed. The events are redelivered after the delay, in a group to any
    member."""

    subscription: str
    counts: Sequence[int]
    delay_us: int = 0


class ExtendAck(msgspec.Struct, frozen=True):
    """A client's call: restart the redelivery timeout of these deliveries, which are still being processed."""

    subscription: str
    counts: Sequence[int]


class ListDurables(msgspec.Struct, frozen=True):
    """A client's call: list the durable subscriptions of the network. `DurablesListed` follows."""

    request: int


class MoveDurable(msgspec.Struct, frozen=True):
    """A client's call: continue a durable subscription after another position, or delete it. `DurableChanged`
    follows."""

    request: str
    """A unique identifier that begins with the client's name, as those of subscriptions do."""
    name: str
    filter: str
    """The durable subscription's filter. Brokers check that the user may subscribe to it, which a change requires."""
    position: Position | None
    """The new position; None deletes the durable subscription."""


class Attached(msgspec.Struct, frozen=True):
    """The durable subscription is attached to this client. It continues after a position, without the listed numbers of
    publishers."""

    subscription: str
    name: str
    generation: int
    """The generation of the attachment, which grows with each client that attaches."""
    position: int
    got: dict[str, int]
    delivered: int = 0
    """The timestamp up to which events may have been delivered before."""


class Acknowledged(msgspec.Struct, frozen=True):
    """Everything up to that delivery to the client is acknowledged for a durable subscription. Once it `is_stored` by a
    majority of the registry replicas, it is never delivered again."""

    subscription: str
    count: int
    is_stored: bool


class EachAcknowledged(msgspec.Struct, frozen=True):
    """These deliveries are acknowledged individually. Once this `is_stored` by a majority of the registry replicas, the
    events are never delivered again.
    """

    subscription: str
    counts: Sequence[int]
    is_stored: bool = True


class DeadLettered(msgspec.Struct, frozen=True):
    """The client publishes a dead letter for an event of a durable subscription: it was delivered `max_deliveries`
    times, and never acknowledged. When the letter is confirmed, the client's node acknowledges the event."""

    subscription: str
    publisher: str
    seq: int
    deliveries: int
    reason: str
    letter: int
    """The number of the dead letter among the client's events."""
    count: int = 0
    """The number of the delivery to this client that failed; 0 if the event was not delivered to it."""


class JoinedGroup(msgspec.Struct, frozen=True):
    """The client is a member of the group of a shared subscription, which is acknowledged up to that position."""

    subscription: str
    name: str
    position: int


class Revoked(msgspec.Struct, frozen=True):
    """These deliveries were returned, or in a group reassigned to another member. This client can no longer acknowledge
    them.
    """

    subscription: str
    counts: Sequence[int]


class DurableInfo(msgspec.Struct, frozen=True):
    """A durable subscription as `client.admin.list()` shows it."""

    name: str
    filter: str
    position: Position
    """The position up to which everything is acknowledged."""
    client: str
    """The attached client, or the coordinator of the group; empty if there is none."""
    lag_s: float
    """The age of the position in seconds; 0 if nothing was published after it. Brokers do not know whether newer events
    match, so this is an upper bound of the age of the oldest unacknowledged event."""
    is_shared: bool = False
    """Whether a group shares the subscription."""


class DurablesListed(msgspec.Struct, frozen=True):
    """The durable subscriptions of the network."""

    request: int
    found: Sequence[DurableInfo]
    position: int
    """The newest position."""


class DurableChanged(msgspec.Struct, frozen=True):
    """A durable subscription was moved or deleted, or `reason` says why it was not."""

    request: str
    reason: str
