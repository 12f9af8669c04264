"""The messages between brokers and clients of the `delta` protocol.

Between brokers a subscription is named `client/number.attempt`: the client numbers its calls, and a subscription that
had not started when a connection broke is requested again under a new name.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.protocols.parts.messages import ClientPublish, Cuts, Message

__all__ = [
    "NO_TAGS",
    "Accepted",
    "Acknowledge",
    "AddSubscription",
    "Attach",
    "Claim",
    "ClientOffers",
    "ClientPublish",
    "ClientSubscribe",
    "ClientUnsubscribe",
    "ConfirmPublication",
    "ConfirmSubscription",
    "Cuts",
    "Delivery",
    "Detach",
    "FromBroker",
    "FromClient",
    "Hello",
    "Lost",
    "Number",
    "Partition",
    "PartitionOver",
    "Partitions",
    "Publication",
    "Recovered",
    "RemoveSubscription",
    "Started",
    "SubscriptionsReceived",
    "Synchronised",
    "Tags",
    "ToClient",
    "Use",
    "Vector",
]  # fmt: skip

Vector: TypeAlias = tuple[tuple[str, int, int], ...]
"""The last part of a message's path: name, incarnation, and the number that each gave it, or -1 if it was bypassed."""


Number: TypeAlias = tuple[int, ...]
"""A number that a broker gives, unique over its incarnations: incarnation and count. Empty if there is none."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """A partition identifier: the nodes that the detector cannot reach, nearest first. `number` is unique at the
    detector.
    """

    detector: str
    number: Number
    nodes: tuple[str, ...]


Tags: TypeAlias = frozenset[Partition]
NO_TAGS: Tags = frozenset()


# ---- between brokers: sessions ----------------------------------------------------------------------------


class Hello(Message, frozen=True):
    """Opens a session or accepts one; later messages belong to it."""

    mine: Number
    """The sender's number for the session."""
    yours: Number
    """The receiver's number, if the sender knows it."""
    active: bool
    """Whether the sender routes over the session."""
    confirmed: tuple[str, ...]
    """The subscriptions that the sender and all brokers behind it know."""
    pending: tuple[str, ...]
    """The other subscriptions that the sender knows."""
    partitions: tuple[Partition, ...]
    """All current partitions that the sender has detected."""


class Use(Message, frozen=True):
    """Announces whether the sender routes over the session from now on. A session that neither end uses is closed."""

    active: bool


class Synchronised(Message, frozen=True):
    """Announces that the receiver has been sent all subscriptions it lacked, and can send publications."""

    is_informed: bool
    """Whether the sender's knowledge is complete. It is not if it lost its memory and no broker has restored it."""


class SubscriptionsReceived(Message, frozen=True, tag="Heard"):
    """The number of subscriptions that the sender had received in this session before the messages that follow."""

    count: int


class Partitions(Message, frozen=True):
    """New partitions, for brokers at most `left` hops further."""

    partitions: tuple[Partition, ...]
    left: int


class PartitionOver(Message, frozen=True):
    """Ends the detector's partitions with this node, up to a number, for brokers at most `left` hops further."""

    detector: str
    node: str
    upto: Number
    left: int


# ---- between brokers: subscriptions -----------------------------------------------------------------------


class AddSubscription(Message, frozen=True):
    """A new subscription at `source`. Travels away from there to be confirmed, or back to brokers that may
    not know it.
    """

    name: str
    filter: str
    source: str
    path: tuple[str, ...]
    """The last brokers on the tree path from the source to the receiver."""
    bypassed: tuple[str, ...]
    """The brokers of the path that were bypassed."""


class ConfirmSubscription(Message, frozen=True):
    """Confirms that the sender and all reachable brokers behind it know the subscription."""

    name: str
    tags: Tags
    """Partitions whose last nodes did not receive it."""
    cuts: dict[str, Cuts]
    """By broker and publisher, the number from which on all matching events are sent."""


class RemoveSubscription(Message, frozen=True):
    """Ends the subscription."""

    name: str


# ---- between brokers: publications ------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event in transit."""

    event: Event
    number: int
    """The number by which the sender expects its confirmation."""
    vector: Vector
    tags: Tags
    missed: frozenset[str]
    """Subscriptions that a broker on the path did not know when it processed the event: it is not delivered to them."""


class Recovered(Message, frozen=True):
    """The partition recovery notifier: ends the detector's partitions with this node. Travels like an event."""

    origin: str
    serial: Number
    """Identifies the notifier, together with the origin."""
    detector: str
    node: str
    number: int
    vector: Vector


class ConfirmPublication(Message, frozen=True):
    """Confirms that the publication has reached all subscribers behind the sender."""

    number: int


# ---- between a client and its broker ----------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """A subscription that has started, and by publisher the last number that need not be sent again."""

    name: str
    positions: Cuts


class ClientSubscribe(Message, frozen=True):
    """A client's request for events that match the filter."""

    name: str
    filter: str


class Attach(Message, frozen=True):
    """Attaches the client with exactly these subscriptions. Its unconfirmed publications follow."""

    numbered: int
    """The number of the client's last event."""
    publishes: bool
    claims: tuple[Claim, ...]
    wishes: tuple[ClientSubscribe, ...]


class Detach(Message, frozen=True):
    """Announces that the client has moved to another broker."""


class ClientUnsubscribe(Message, frozen=True):
    """Ends a subscription of the client."""

    name: str


class ClientOffers(Message, frozen=True):
    """Announces that the client will publish, so that new subscriptions get a starting cut for it."""


class Acknowledge(Message, frozen=True):
    """Acknowledges that the client has received the delivery."""

    ticket: int


class Accepted(Message, frozen=True):
    """Confirms that all events of the client up to this number have reached all subscribers."""

    seq: int


class Started(Message, frozen=True):
    """Confirms that every reachable broker knows the subscription."""

    name: str
    cuts: Cuts
    """The starting cuts for the publishers whose brokers have reported them."""
    skipped: Cuts
    """By publisher, the last number that arrived before the start."""


class Lost(Message, frozen=True):
    """Announces that the subscription was given up: its next events are no longer kept."""

    name: str


class Delivery(Message, frozen=True):
    """An event for some of the client's subscriptions."""

    ticket: int
    event: Event
    names: tuple[str, ...]


FromBroker: TypeAlias = (
    Publication | ConfirmPublication | Recovered | AddSubscription | ConfirmSubscription | RemoveSubscription
    | SubscriptionsReceived | Synchronised | Partitions | PartitionOver
)  # fmt: skip
"""Messages within a session, which begins with `Hello` and `Use`."""
FromClient: TypeAlias = (
    Attach | Detach | ClientSubscribe | ClientUnsubscribe | ClientOffers | ClientPublish | Acknowledge
)  # fmt: skip
ToClient: TypeAlias = Accepted | Started | Delivery | Lost
