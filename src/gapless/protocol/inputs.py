"""Defines the inputs of a node: messages, connections, suspicions and timers, and calls of a client, an operator or a
disk.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from gapless.event_runs import EventTable
from gapless.events import Attributes
from gapless.names import AckMode, Acknowledge, AcknowledgeEach, ExtendAck, ListDurables, MoveDurable, Nack
from gapless.positions import TIMESTAMP_MAX, Position, Volume

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
"""When a subscription counts as active: with a cut for every publisher that may match it (`whole`), so that nothing
published from then on is missed, or with its first cut, as the papers define it."""
NEWEST = Position.at(TIMESTAMP_MAX)
"""The newest position, which the broker knows; larger than any other position."""
Message: TypeAlias = Any  # each protocol has its own message classes


class Start(msgspec.Struct, frozen=True):
    """The first input of a node, also after each restart without memory."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message from a peer."""

    peer: str
    message: Message


class Connected(msgspec.Struct, frozen=True):
    """There is a new connection to the peer. Messages sent before it may have been lost."""

    peer: str


class Suspected(msgspec.Struct, frozen=True):
    """The failure detector believes that the peer has failed."""

    peer: str


class Trusted(msgspec.Struct, frozen=True):
    """The failure detector no longer believes that the peer has failed."""

    peer: str


class Linked(msgspec.Struct, frozen=True):
    """The tree now has a link to the peer. Only protocols that support `relink` get this."""

    peer: str


class Unlinked(msgspec.Struct, frozen=True):
    """The tree no longer has a link to the peer. Only protocols that support `relink` get this."""

    peer: str


class Resumed(msgspec.Struct, frozen=True):
    """The node was paused for so long that others may have excluded it. Only brokers with a disk get this."""


class TimerFired(msgspec.Struct, frozen=True):
    """A timer set by `SetTimer` has expired."""

    key: str


class Advertise(msgspec.Struct, frozen=True):
    """A client's call: announce events that match `filter`."""

    advertisement: str
    filter: str


class Unadvertise(msgspec.Struct, frozen=True):
    """A client's call: withdraw an advertisement. Later publications do not rely on it."""

    advertisement: str


class Subscribe(msgspec.Struct, frozen=True):
    """A client's call: deliver events that match `filter`. Protocols with only one meaning of
    `ready` ignore it.
    """

    subscription: str
    filter: str
    ready: Ready = "whole"
    since: Position | None = None
    """The position after which past events are delivered, in protocols that keep history (`keeps_history`). None: only
    new events. `NEWEST`: no event admitted so far, but `CaughtUp` reports that position."""
    until: Position | None = None
    """With `since`: the position at which the subscription ends. `NEWEST`: at the newest event admitted so far. None:
    it does not end."""
    name: str = ""
    """The network-wide name of a durable subscription, which continues after the acknowledged events, in protocols that
    have them (`keeps_names`)."""
    ack: AckMode = "auto"
    replace: bool = False
    """Whether the durable subscription may change its filter."""
    group: bool = False
    """Whether a group shares the durable subscription: each event is delivered to one of its members."""
    redeliver_s: float = 30.0
    """In a group: an event that is not acknowledged within this time is redelivered to another member."""
    max_deliveries: int = 0
    """The number of deliveries without an acknowledgement after which an event becomes a dead letter; 0 means never."""
    letter_max: int = 65_536
    """The maximum size of a dead letter, measured like the size of an event. A letter that would be larger omits parts
    of the event."""
    survey: Volume | None = None
    """With `since` and `until`: deliver no events, but count them. `CaughtUp` reports at most this volume at a time."""


class Unsubscribe(msgspec.Struct, frozen=True):
    """A client's call: end the subscription with an exact ending cut."""

    subscription: str


class Publish(msgspec.Struct, frozen=True, gc=False):
    """A client's call: publish an event. The client node numbers it and answers with `Published` or `Rejected`."""

    attributes: Attributes
    payload: bytes = b""


class PublishMany(msgspec.Struct, frozen=True, gc=False):
    """A client's call: publish several events in order. The node answers with `PublishedMany` or individually. Only
    protocols with `takes_many` support it.
    """

    table: EventTable

    def publications(self) -> list[Publish]:
        """Return the publications as single calls."""
        return list(map(Publish, self.table.rows(), self.table.payload_list()))


class Consumed(msgspec.Struct, frozen=True):
    """The application has taken the first `count` deliveries to this client. Only protocols with flow control (`paces`)
    get this.
    """

    count: int


class EndSession(msgspec.Struct, frozen=True):
    """An operator's call to a broker: end the session of a client, connected or not. Only protocols with sessions
    (`ends_sessions`) support it.
    """

    client: str


class Forget(msgspec.Struct, frozen=True):
    """An operator's call to a broker: stop waiting for another broker, which will not return. Only protocols whose
    brokers wait for each other (`forgets`) support it.
    """

    broker: str


class DeleteEvents(msgspec.Struct, frozen=True):
    """An operator's call to a broker: delete from history all events that a publisher has published so far. Only
    protocols with `deletes` support it.
    """

    publisher: str


class Persisted(msgspec.Struct, frozen=True):
    """All batches of `Keep` up to this number are durable on disk."""

    number: int


Input: TypeAlias = (
    Start | Received | Connected | Suspected | Trusted | Resumed | Linked | Unlinked | TimerFired
    | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | PublishMany | Consumed | DeleteEvents | EndSession
    | Forget
    | Persisted | Acknowledge | AcknowledgeEach | Nack | ExtendAck
    | ListDurables | MoveDurable
)  # fmt: skip
