"""What a runtime gives a node: what happened around it, and what its client, operator or disk wants or says."""

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from gapless.disk import HistoryRow
from gapless.events import Attributes, Stretch, bounds_of
from gapless.names import AckMode, Acknowledge, AcknowledgeEach, ExtendAck, ListDurables, MoveDurable, Nack
from gapless.positions import TIMESTAMP_MAX, Position

__all__ = [
    "NEWEST",
    "Advertise",
    "Connected",
    "Consumed",
    "EndSession",
    "Forget",
    "HistoryRead",
    "Input",
    "Linked",
    "Message",
    "Persisted",
    "Publish",
    "PublishMany",
    "ReadHistory",
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
"""When a subscription is active: with a cut for every publisher that may match it, so that nothing published from then
on is left out; or with its first cut, as the papers define it."""
NEWEST = Position.at(TIMESTAMP_MAX)
"""Stands for the newest position, which the broker knows. It is larger than any position."""
Message: TypeAlias = Any  # each protocol has its own frozen msgspec structs


class Start(msgspec.Struct, frozen=True):
    """The first input a node gets, and the first after each restart without memory."""


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message from a peer."""

    peer: str
    message: Message


class Connected(msgspec.Struct, frozen=True):
    """A fresh connection to the peer; messages sent before it may have been lost."""

    peer: str


class Suspected(msgspec.Struct, frozen=True):
    """The failure detector believes that the peer is dead."""

    peer: str


class Trusted(msgspec.Struct, frozen=True):
    """The failure detector no longer believes that the peer is dead."""

    peer: str


class Linked(msgspec.Struct, frozen=True):
    """From now on the tree has a link to the peer. Given to protocols that cope with `relink` only."""

    peer: str


class Unlinked(msgspec.Struct, frozen=True):
    """From now on the tree has no link to the peer any more. Given to protocols that cope with `relink` only."""

    peer: str


class Resumed(msgspec.Struct, frozen=True):
    """The node stood still for so long that others may have taken it for dead. Given to brokers with a disk only."""


class TimerFired(msgspec.Struct, frozen=True):
    """A timer set by `SetTimer` ran out."""

    key: str


class Advertise(msgspec.Struct, frozen=True):
    """A client's call: I may publish events that match `filter`."""

    advertisement: str
    filter: str


class Unadvertise(msgspec.Struct, frozen=True):
    """A client's call: what I publish from now on no longer relies on this advertisement."""

    advertisement: str


class Subscribe(msgspec.Struct, frozen=True):
    """A client's call: deliver what matches `filter`. Protocols that know but one meaning of `ready` ignore it."""

    subscription: str
    filter: str
    ready: Ready = "whole"
    since: Position | None = None
    """Everything that came after it is delivered, too; for protocols that keep history (`keeps_history`). None: what is
    published from now on. `NEWEST`: nothing that was admitted by now, but `CaughtUp` says which position that is."""
    until: Position | None = None
    """With `since`: nothing that came after it is delivered, and the subscription ends there. `NEWEST`: what was
    admitted by now. None: it does not end."""
    name: str = ""
    """If it is a durable subscription: its name in the network. It continues after what was acknowledged; for protocols
    with durable subscriptions (`keeps_names`)."""
    ack: AckMode = "auto"
    replace: bool = False
    """Whether the durable subscription may change its filter."""
    group: bool = False
    """Whether a group shares the durable subscription: each event is delivered to one of its members."""
    redeliver_s: float = 30.0
    """In a group: an event that is not acknowledged within this time is redelivered to another member."""
    max_deliveries: int = 0
    """An event that was delivered so often without an acknowledgement becomes a dead letter; 0: never. For protocols
    that keep acknowledgements one by one (`acknowledges_each`)."""
    letter_max: int = 65_536
    """So many bytes a dead letter may have, as events are counted; a longer one has less of its event."""


class Unsubscribe(msgspec.Struct, frozen=True):
    """A client's call: end the subscription with an exact ending cut."""

    subscription: str


class Publish(msgspec.Struct, frozen=True, gc=False):
    """A client's call. The client node numbers the event and answers with `Published` or `Rejected`."""

    attributes: Attributes
    payload: bytes = b""


class PublishMany(msgspec.Struct, frozen=True, gc=False):
    """Several publications in order, answered one by one or together (`PublishedMany`); for protocols that take them
    (`takes_many`)."""

    payloads: list[bytes]
    alike: list[Stretch]
    """Their attributes."""

    def publications(self) -> list[Publish]:
        """Them, one by one."""
        if len(self.alike) == 1:
            return [Publish(self.alike[0][0], payload) for payload in self.payloads]
        parts = bounds_of(self.alike)
        return [Publish(each, payload) for each, begin, end in parts for payload in self.payloads[begin:end]]


class Consumed(msgspec.Struct, frozen=True):
    """The application has taken the first `count` of all that was delivered to this client; for protocols that pace
    themselves by it (`paces`)."""

    count: int


class EndSession(msgspec.Struct, frozen=True):
    """An operator's call to a broker: end the session of this client, whether it is there or away; for protocols that
    know sessions (`ends_sessions`)."""

    client: str


class Forget(msgspec.Struct, frozen=True):
    """An operator's call to a broker: this one will not return, so nobody shall wait for it; for protocols whose
    brokers wait for each other (`forgets`)."""

    broker: str


class Persisted(msgspec.Struct, frozen=True):
    """The disk has what was told by `Keep` up to this number, and will have it whatever happens to the machine."""

    number: int


class ReadHistory(msgspec.Struct, frozen=True):
    """An effect. Read those pieces of an origin's history that reach beyond `since` and begin no later than `until`;
    `HistoryRead` follows. Only from a broker whose place has a disk."""

    request: int
    origin: str
    since: int
    until: int


class HistoryRead(msgspec.Struct, frozen=True):
    """What the disk holds of what was asked for; what cannot be read is left out."""

    asked: ReadHistory
    rows: Sequence[HistoryRow]


Input: TypeAlias = (
    Start | Received | Connected | Suspected | Trusted | Resumed | Linked | Unlinked | TimerFired
    | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | PublishMany | Consumed | EndSession | Forget
    | Persisted | HistoryRead | Acknowledge | AcknowledgeEach | Nack | ExtendAck
    | ListDurables | MoveDurable
)  # fmt: skip
