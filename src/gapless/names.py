"""Durable subscriptions: the calls that a client's node takes and the answers that it gives to its runtime."""

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
"""The prefix of the attributes that say why an event became a dead letter."""
LISTING = "names/"
"""Precedes the number of a `ListDurables` request in the message that denies it."""


class Acknowledge(msgspec.Struct, frozen=True):
    """A client's call: acknowledge everything up to a delivery to this client, for one durable subscription."""

    subscription: str
    count: int
    is_urgent: bool = True
    """Whether a caller waits for it. If not, the node can combine it with later ones."""


class AcknowledgeEach(msgspec.Struct, frozen=True):
    """A client's call: acknowledge exactly these deliveries to this client, in whatever order they came.
    `EachAcknowledged` follows."""

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
    """A client's call: these deliveries are still being processed, so their `redeliver_s` restarts."""

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
    """The filter of the durable subscription: a user who may not subscribe to it may not change it."""
    position: Position | None
    """The new position; None deletes the durable subscription."""


class Attached(msgspec.Struct, frozen=True):
    """The durable subscription is attached to this client. It continues after a position, without the listed numbers of
    publishers."""

    subscription: str
    name: str
    generation: int
    """The generation: it grows with each client that attaches."""
    position: int
    got: dict[str, int]
    delivered: int = 0
    """Events with this timestamp or an earlier one may have been delivered before."""


class Acknowledged(msgspec.Struct, frozen=True):
    """Everything up to that delivery to the client is acknowledged for a durable subscription. Once it `is_stored` by a
    majority of the registry replicas, it is never delivered again."""

    subscription: str
    count: int
    is_stored: bool


class EachAcknowledged(msgspec.Struct, frozen=True):
    """These deliveries are acknowledged one by one. Once it `is_stored` by a majority of the registry replicas, the
    events are never delivered again."""

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
    """The delivery to this client that failed; 0 if the event was not delivered to it."""


class JoinedGroup(msgspec.Struct, frozen=True):
    """The client is a member of the group of a shared subscription. Everything up to that position is acknowledged."""

    subscription: str
    name: str
    position: int


class Revoked(msgspec.Struct, frozen=True):
    """These deliveries were given back, or in a group reassigned to another member. This client can no longer
    acknowledge them."""

    subscription: str
    counts: Sequence[int]


class DurableInfo(msgspec.Struct, frozen=True):
    """A durable subscription as `client.admin.list()` shows it."""

    name: str
    filter: str
    position: Position
    """Everything up to it is acknowledged."""
    client: str
    """The client that is attached to it, or the coordinator of its group; empty if there is none."""
    lag_s: float
    """Seconds since its position; 0 if nothing was published after it. Brokers do not know whether newer events match,
    so this is an upper bound for the age of the oldest event that is not acknowledged."""
    is_shared: bool = False
    """Whether a group shares it."""


class DurablesListed(msgspec.Struct, frozen=True):
    """The durable subscriptions of the network."""

    request: int
    found: Sequence[DurableInfo]
    position: int
    """The newest position."""


class DurableChanged(msgspec.Struct, frozen=True):
    """A durable subscription was moved or deleted; or `reason` says why not."""

    request: str
    reason: str
