"""Defines the effects of a node, which the runtime carries out."""

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
from gapless.positions import NO_EVENTS, Position, Volume
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
    """Send a message to a peer. The runtime opens a connection if there is none."""

    peer: str
    message: Message


class SetTimer(msgspec.Struct, frozen=True):
    """Pass `TimerFired(key)` to the node after `delay_us`. A running timer with the same key is replaced."""

    key: str
    delay_us: int


class Expel(msgspec.Struct, frozen=True):
    """Disconnect a client that sent a message which no client may send, and tell it the reason."""

    client: str
    reason: str


class Keep(msgspec.Struct, frozen=True):
    """Write these changes to disk as a whole, after all batches with smaller numbers. `Persisted` follows. Only brokers
    with a disk use it.
    """

    number: int
    """The number of the batch, one more than that of the previous one."""
    changes: Sequence[Change]


class Published(msgspec.Struct, frozen=True, gc=False):
    """The client node has accepted and numbered an event."""

    event: Event


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Pass an event to the client's application, for one subscription."""

    event: Event
    subscription: str
    redelivered: bool = False
    """Whether another member of the group that shares the subscription may have received the event before."""
    deliveries: int = 1
    """How many times the event was delivered, including this time, in protocols that count (`keeps_names`)."""


class PublishedMany(msgspec.Struct, frozen=True, gc=False):
    """The client node has accepted and numbered several events, in answer to `PublishMany`."""

    events: EventRun


class DeliverMany(msgspec.Struct, frozen=True, gc=False):
    """Pass several events to the client's application, in order, for one subscription."""

    events: EventRun
    subscription: str


class CutFixed(msgspec.Struct, frozen=True):
    """The subscription receives every matching event of the publisher from `from_seq` on."""

    subscription: str
    publisher: str
    from_seq: int


class CutsVoided(msgspec.Struct, frozen=True):
    """The broker was lost before the subscription's cuts were replicated. Nothing was delivered yet; later
    cuts follow.
    """

    subscription: str


class Skipped(msgspec.Struct, frozen=True):
    """A read of history will not deliver the events with these numbers, because no broker has them any more. Some of
    them may not match the filter."""

    subscription: str
    lost: dict[str, list[tuple[int, int]]]
    gap: tuple[int, int] | None = None
    """The timestamps of two positions between which even the numbers of the events are unknown. If the first is 0, the
    second is the earliest position with history."""


class CaughtUp(msgspec.Struct, frozen=True):
    """A subscription to history has received everything up to a position. If `is_live`, it no longer reads history."""

    subscription: str
    position: Position
    is_live: bool
    counted: Volume = NO_EVENTS
    """In a survey: the volume of the matching events since the last report."""


class Activated(msgspec.Struct, frozen=True):
    """The subscription has its starting cut, or the first part of it, so `subscribe()` may return."""

    subscription: str


class Ended(msgspec.Struct, frozen=True):
    """The subscription has ended. It received everything up to `last_seq` of each publisher, and nothing after that."""

    subscription: str
    last_seq: dict[str, int]
    is_complete: bool = False
    """Whether the subscription was to end at a position, and has received everything up to it."""
    reason: str = ""
    """Why a durable subscription ended, if the end was not requested by the client."""


class Advertised(msgspec.Struct, frozen=True):
    """All brokers know the advertisement, so events under it are no longer delayed."""

    advertisement: str


class Confirmed(msgspec.Struct, frozen=True):
    """Every event of this client up to `seq` is confirmed: f + 1 brokers hold it."""

    seq: int


class PublicationsLost(msgspec.Struct, frozen=True):
    """No broker has these confirmed publications of the client any more, because more than f brokers failed. Each range
    has a first and a last number. The affected subscriptions are notified."""

    ranges: list[tuple[int, int]]


class Rejected(msgspec.Struct, frozen=True):
    """A client's call was refused; `reason` is a sentence for the user."""

    call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
    reason: str


class Superseded(msgspec.Struct, frozen=True):
    """Another process has taken over as this client. Brokers ignore this one, so it accepts no further calls."""


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
