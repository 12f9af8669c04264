"""What a node asks of its runtime: to send, to wait, to keep, and to tell the application."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from gapless.disk import Change
from gapless.events import Event, Events
from gapless.names import (
    Acknowledged,
    Attached,
    DeadLettered,
    DurableChanged,
    DurablesListed,
    EachAcknowledged,
    JoinedGroup,
    Revoked,
)
from gapless.positions import Position
from gapless.protocol.inputs import Advertise, Message, Publish, ReadHistory, Subscribe, Unadvertise, Unsubscribe

__all__ = [
    "Activated",
    "Advertised",
    "CaughtUp",
    "Confirmed",
    "CutFixed",
    "CutsVoided",
    "Deliver",
    "DeliverMany",
    "Effect",
    "Ended",
    "Expel",
    "Keep",
    "PublicationsLost",
    "Published",
    "PublishedMany",
    "Rejected",
    "Send",
    "SetTimer",
    "Skipped",
]


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message to a peer; the runtime opens a connection where there is none."""

    peer: str
    message: Message


class SetTimer(msgspec.Struct, frozen=True):
    """Give `TimerFired(key)` after `delay_us`; replaces a running timer of the same key."""

    key: str
    delay_us: int


class Expel(msgspec.Struct, frozen=True):
    """Send a client away, with a sentence: it said what no client may say."""

    client: str
    reason: str


class Keep(msgspec.Struct, frozen=True):
    """Put this on the disk, as a whole, after all with smaller numbers; `Persisted` follows. Only from a broker whose
    place has a disk."""

    number: int
    """One more than that of the last one, of this node."""
    changes: Sequence[Change]


class Published(msgspec.Struct, frozen=True, gc=False):
    """A client node accepted and numbered an event."""

    event: Event


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A client node hands an event to the application, for one subscription."""

    event: Event
    subscription: str
    redelivered: bool = False
    """Whether another member of the group that shares the subscription may have received it before."""
    deliveries: int = 1
    """How many times it was delivered, this time included; for protocols that count (`acknowledges_each`)."""


class PublishedMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Published` for each of these events, in order; in answer to `PublishMany`."""

    events: Events


class DeliverMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Deliver` for each of these events, in order."""

    events: Events
    subscription: str


class CutFixed(msgspec.Struct, frozen=True):
    """The subscription gets every matching event of the publisher from `from_seq` on."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(msgspec.Struct, frozen=True):
    """The broker was lost before the cuts were safe. Nothing was delivered yet; later cuts follow."""

    subscription: str


class Skipped(msgspec.Struct, frozen=True):
    """A subscription that reads history will not get these numbers of these publishers, for nobody holds them any more.
    (They may not all have matched.)"""

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None
    """Timestamps of two positions between which it is not even known what there was. If the first is 0, the second is
    the earliest position from which on there is anything."""


class CaughtUp(msgspec.Struct, frozen=True):
    """A subscription that reads history has got everything up to a position; if `is_live`, it reads history no more."""

    subscription: str
    position: Position
    is_live: bool


class Activated(msgspec.Struct, frozen=True):
    """The subscription holds its starting cut, the whole one or its first part: `subscribe()` may return."""

    subscription: str


class Ended(msgspec.Struct, frozen=True):
    """The subscription is over: it got everything up to `last_seq` of each publisher, and nothing after."""

    subscription: str
    last_seq: dict[str, int]
    is_complete: bool = False
    """It read history up to a position, and got all of it."""
    reason: str = ""
    """Why a durable subscription is over, if its client did not end it."""


class Advertised(msgspec.Struct, frozen=True):
    """The advertisement is stable: events under it are no longer held back."""

    advertisement: str


class Confirmed(msgspec.Struct, frozen=True):
    """Every event of this client up to `seq` is safe: f + 1 brokers hold it."""

    seq: int


class PublicationsLost(msgspec.Struct, frozen=True):
    """Of what this client published and was told to be safe, nobody holds these numbers any more, from the first to the
    last of each range: more brokers failed than may. Whoever should have got them is told."""

    ranges: list[tuple[int, int]]


class Rejected(msgspec.Struct, frozen=True):
    """A client's call was refused; `reason` is a sentence for its user."""

    call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
    reason: str


Effect: TypeAlias = (
    Send
    | SetTimer
    | Expel
    | Keep
    | ReadHistory
    | Published
    | PublishedMany
    | Deliver
    | DeliverMany
    | CutFixed
    | CutsVoided
    | Skipped
    | CaughtUp
    | Activated
    | Ended
    | Advertised
    | Confirmed
    | PublicationsLost
    | Rejected
    | Attached
    | Acknowledged
    | EachAcknowledged
    | DeadLettered
    | JoinedGroup
    | Revoked
    | DurablesListed
    | DurableChanged
)
