"""The inputs of a node: events around it, and calls of its client, operator or disk."""

from typing import Any, Literal, TypeAlias

import msgspec

from gapless.event_runs import EventTable
from gapless.events import Attributes
from gapless.names import AckMode, Acknowledge, AcknowledgeEach, ExtendAck, ListDurables, MoveDurable, Nack
from gapless.positions import TIMESTAMP_MAX, Position

__all__ = [
    "NEWEST",
    "Advertise",
    "Connected",
    "Consumed",
    "DeleteEvents",
    "EndSession",
    "Forget",
    "Input",
    "Linked",
    "Message",
    "Persisted",
    "Publish",
    "PublishMany",
    "Ready",
    "Received",
    "Resumed",
    "Start",
    "Subscribe",
    "Suspected",
    "TimerFired",
    "Trusted",
    "Unadvertise",
    "Unlinked",
    "Unsubscribe",
]

Ready: TypeAlias = Literal["whole", "first"]
"""When a subscription is active: with a cut for every publisher that may match it, so that nothing
published from then on is missed; or with its first cut, as the papers define it.
"""
NEWEST = Position.at(TIMESTAMP_MAX)
"""The newest position, which the broker knows; larger than any other position."""
Message: TypeAlias = Any  # each protocol has its own frozen msgspec structs


class Start(msgspec.Struct, frozen=True):
    """The first input of a node, and the first after each restart without memory."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message from a peer."""

    peer: str
    message: Message


class Connected(msgspec.Struct, frozen=True):
    """A fresh connection to the peer; messages sent before it may have been lost."""

    peer: str


class Suspected(msgspec.Struct, frozen=True):
    """The failure detector believes that the peer has failed."""

    peer: str


class Trusted(msgspec.Struct, frozen=True):
    """The failure detector no longer believes that the peer has failed."""

    peer: str


class Linked(msgspec.Struct, frozen=True):
    """The tree now has a link to the peer. Only for protocols that cope with `relink`."""

    peer: str


class Unlinked(msgspec.Struct, frozen=True):
    """The tree no longer has a link to the peer. Only for protocols that cope with `relink`."""

    peer: str


class Resumed(msgspec.Struct, frozen=True):
    """The node was paused for so long that others may have excluded it. Only for brokers with a disk."""


class TimerFired(msgspec.Struct, frozen=True):
    """A timer set by `SetTimer` has expired."""

    key: str


class Advertise(msgspec.Struct, frozen=True):
    """A client's call: I may publish events that match `filter`."""

    advertisement: str
    filter: str


class Unadvertise(msgspec.Struct, frozen=True):
    """A client's call: what I publish from now on no longer relies on this advertisement."""

    advertisement: str


class Subscribe(msgspec.Struct, frozen=True):
    """A client's call: deliver events that match `filter`. Protocols with only one meaning of
    `ready` ignore it.
    """

    subscription: str
    filter: str
    ready: Ready = "whole"
    since: Position | None = None
    """Everything after this position is delivered, too; for protocols that keep history (`keeps_history`). None: only
    new events. `NEWEST`: no event admitted so far, but `CaughtUp` reports that position.
    """
    until: Position | None = None
    """With `since`: the subscription ends at this position. `NEWEST`: at the newest event admitted so far. None: it
    does not end.
    """
    name: str = ""
    """For a durable subscription: its name in the network. It continues after the acknowledged events; for protocols
    with durable subscriptions (`keeps_names`)."""
    ack: AckMode = "auto"
    replace: bool = False
    """Whether the durable subscription may change its filter."""
    group: bool = False
    """Whether a group shares the durable subscription: each event is delivered to one of its members."""
    redeliver_s: float = 30.0
    """In a group: an event that is not acknowledged within this time is redelivered to another member."""
    max_deliveries: int = 0
    """An event that was delivered so often without an acknowledgement becomes a dead letter; 0: never."""
    letter_max: int = 65_536
    """The maximum size of a dead letter, as events are counted; a longer one contains less of its event."""


class Unsubscribe(msgspec.Struct, frozen=True):
    """A client's call: end the subscription with an exact ending cut."""

    subscription: str


class Publish(msgspec.Struct, frozen=True, gc=False):
    """A client's call. The client node numbers the event and answers with `Published` or `Rejected`."""

    attributes: Attributes
    payload: bytes = b""


class PublishMany(msgspec.Struct, frozen=True, gc=False):
    """Several publications in order, answered one by one or together (`PublishedMany`); for
    protocols that support them (`takes_many`).
    """

    table: EventTable

    def publications(self) -> list[Publish]:
        """Return them as single publications."""
        return list(map(Publish, self.table.rows(), self.table.payload_list()))


class Consumed(msgspec.Struct, frozen=True):
    """The application has taken the first `count` deliveries to this client; for protocols with
    flow control (`paces`).
    """

    count: int


class EndSession(msgspec.Struct, frozen=True):
    """An operator's call to a broker: end the session of this client, connected or not; for
    protocols with sessions (`ends_sessions`).
    """

    client: str


class Forget(msgspec.Struct, frozen=True):
    """An operator's call to a broker: this broker will not return, so do not wait for it; for
    protocols whose brokers wait for each other (`forgets`).
    """

    broker: str


class DeleteEvents(msgspec.Struct, frozen=True):
    """An operator's call to a broker: delete from history everything that this publisher has published so far; for
    protocols that support it (`deletes`).
    """

    publisher: str


class Persisted(msgspec.Struct, frozen=True):
    """Everything up to this number of `Keep` is durable on disk."""

    number: int


Input: TypeAlias = (
    Start | Received | Connected | Suspected | Trusted | Resumed | Linked | Unlinked | TimerFired
    | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | PublishMany | Consumed | DeleteEvents | EndSession
    | Forget
    | Persisted | Acknowledge | AcknowledgeEach | Nack | ExtendAck
    | ListDurables | MoveDurable
)  # fmt: skip
