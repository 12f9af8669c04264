"""The effects of a node: to send, to set timers, to write to disk, and to notify the application."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from gapless.disk import Change
from gapless.event_runs import EventRun
from gapless.events import Event
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
from gapless.protocol.inputs import Advertise, Message, Publish, Subscribe, Unadvertise, Unsubscribe

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
    "Superseded",
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
    """Disconnect a client with a reason: it sent a message that no client may send."""

    client: str
    reason: str


class Keep(msgspec.Struct, frozen=True):
    """Write this to disk, as a whole, after all with smaller numbers; `Persisted` follows. Only
    from a broker with a disk.
    """

    number: int
    """One more than the number of the previous one."""
    changes: Sequence[Change]


class Published(msgspec.Struct, frozen=True, gc=False):
    """A client node accepted and numbered an event."""

    event: Event


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """A client node passes an event to the application, for one subscription."""

    event: Event
    subscription: str
    redelivered: bool = False
    """Whether another member of the group that shares the subscription may have received it before."""
    deliveries: int = 1
    """How many times it was delivered, this time included; for protocols that count (`keeps_names`)."""


class PublishedMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Published` for each of these events, in order; in answer to `PublishMany`."""

    events: EventRun


class DeliverMany(msgspec.Struct, frozen=True, gc=False):
    """The same as `Deliver` for each of these events, in order."""

    events: EventRun
    subscription: str


class CutFixed(msgspec.Struct, frozen=True):
    """The subscription gets every matching event of the publisher from `from_seq` on."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(msgspec.Struct, frozen=True):
    """The broker was lost before the cuts were replicated. Nothing was delivered yet; later cuts follow."""

    subscription: str


class Skipped(msgspec.Struct, frozen=True):
    """A history read will not receive the events with these numbers, because no broker holds them
    any longer. Some of them may not match the filter.
    """

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None
    """Timestamps of two positions between which even the content is unknown. If the first is 0, the
    second is the earliest position with history.
    """


class CaughtUp(msgspec.Struct, frozen=True):
    """A subscription to history has received everything up to a position; if `is_live`, it no
    longer reads history.
    """

    subscription: str
    position: Position
    is_live: bool


class Activated(msgspec.Struct, frozen=True):
    """The subscription has its starting cut, complete or its first part: `subscribe()` may return."""

    subscription: str


class Ended(msgspec.Struct, frozen=True):
    """The subscription has ended: it received everything up to `last_seq` of each publisher, and
    nothing after.
    """

    subscription: str
    last_seq: dict[str, int]
    is_complete: bool = False
    """It read history up to a position, and received all of it."""
    reason: str = ""
    """Why a durable subscription ended, if its client did not end it."""


class Advertised(msgspec.Struct, frozen=True):
    """The advertisement is stable: events under it are no longer held back."""

    advertisement: str


class Confirmed(msgspec.Struct, frozen=True):
    """Every event of this client up to `seq` is confirmed: f + 1 brokers hold it."""

    seq: int


class PublicationsLost(msgspec.Struct, frozen=True):
    """No broker still holds these confirmed publications of the client, from the first to the
    last of each range: more than f brokers failed. The affected subscriptions are notified.
    """

    ranges: list[tuple[int, int]]


class Rejected(msgspec.Struct, frozen=True):
    """A client's call was refused; `reason` is a sentence for its user."""

    call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
    reason: str


class Superseded(msgspec.Struct, frozen=True):
    """Another process continues as this client. Brokers ignore this one, so it accepts no further calls."""


Effect: TypeAlias = (
    Send
    | SetTimer
    | Expel
    | Keep
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
    | Superseded
    | Attached
    | Acknowledged
    | EachAcknowledged
    | DeadLettered
    | JoinedGroup
    | Revoked
    | DurablesListed
    | DurableChanged
)
