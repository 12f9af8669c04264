"""What brokers and clients of the `delta` protocol say to each other.

Between brokers a subscription is named `client/number.attempt`: the client numbers its calls, and a subscription that
had not started when a connection broke is asked for anew, as another one.
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
    "Heard",
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
    "Synchronised",
    "Tags",
    "ToClient",
    "Use",
    "Vector",
]  # fmt: skip

Vector: TypeAlias = tuple[tuple[str, int, int], ...]
"""The last part of a message's way: name, incarnation, and the number that each gave it, or -1 if it was bypassed."""


Number: TypeAlias = tuple[int, ...]
"""What a broker counts, over all its lives: incarnation and count. Empty where there is none."""


class Partition(msgspec.Struct, frozen=True, array_like=True):
    """A partition identifier: what the detector cannot reach, nearest first. `number` is unique at the detector."""

    detector: str
    number: Number
    nodes: tuple[str, ...]


Tags: TypeAlias = frozenset[Partition]
NO_TAGS: Tags = frozenset()


# ---- between brokers: sessions ----------------------------------------------------------------------------


class Hello(Message, frozen=True):
    """Opens a session, or agrees to it: what follows belongs to it."""

    mine: Number
    """The sender's number for the session."""
    yours: Number
    """The receiver's number, if the sender has heard it."""
    active: bool
    """Whether the sender routes over the session."""
    confirmed: tuple[str, ...]
    """The subscriptions that the sender, and all beyond it, know."""
    pending: tuple[str, ...]
    """Those that it knows otherwise."""
    partitions: tuple[Partition, ...]
    """All that the sender has detected and are not over."""


class Use(Message, frozen=True):
    """Whether the sender routes over the session from now on. One that neither does is closed."""

    active: bool


class Synchronised(Message, frozen=True):
    """The receiver has now been told what it lacked, and may send publications."""

    is_informed: bool
    """Whether the sender knows what there is to know. One that has lost its memory and heard from nobody does not."""


class Heard(Message, frozen=True):
    """How many subscriptions the sender had been told in this session when it sent what follows."""

    count: int


class Partitions(Message, frozen=True):
    """New partitions, for brokers at most `left` further on."""

    partitions: tuple[Partition, ...]
    left: int


class PartitionOver(Message, frozen=True):
    """The detector's partitions with this node, up to a number, are over, for brokers at most `left` further on."""

    detector: str
    node: str
    upto: Number
    left: int


# ---- between brokers: subscriptions -----------------------------------------------------------------------


class AddSubscription(Message, frozen=True):
    """Someone subscribes at `source`. Sent away from there, to be confirmed, or back, to those who may not know it."""

    name: str
    filter: str
    source: str
    path: tuple[str, ...]
    """The last brokers on the tree's way from the source to the receiver."""
    bypassed: tuple[str, ...]
    """Those of the path that were bypassed."""


class ConfirmSubscription(Message, frozen=True):
    """The sender, and all that can be reached beyond it, know the subscription."""

    name: str
    tags: Tags
    """Partitions whose last nodes were not told."""
    cuts: dict[str, Cuts]
    """By broker: publishers there, and the first number of each from which on everything that matches is sent."""


class RemoveSubscription(Message, frozen=True):
    """The subscription is over."""

    name: str


# ---- between brokers: publications ------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event on its way."""

    event: Event
    number: int
    """The sender's, to confirm it by."""
    vector: Vector
    tags: Tags
    missed: frozenset[str]
    """Subscriptions that some broker on the way did not know yet when it processed the event: it is not for them."""


class Recovered(Message, frozen=True):
    """The partition recovery notifier: the detector's partitions with this node are over. Travels like an event."""

    origin: str
    serial: Number
    """With the origin, its name."""
    detector: str
    node: str
    number: int
    vector: Vector


class ConfirmPublication(Message, frozen=True):
    """The publication has reached all subscribers behind the sender."""

    number: int


# ---- between a client and its broker ----------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """A subscription that has started, and the last number of each publisher that needs not come again."""

    name: str
    positions: Cuts


class ClientSubscribe(Message, frozen=True):
    """The client wants what matches the filter."""

    name: str
    filter: str


class Attach(Message, frozen=True):
    """The client is here, with these subscriptions and no other. What it published and keeps follows."""

    numbered: int
    """The number of its last event."""
    publishes: bool
    claims: tuple[Claim, ...]
    wishes: tuple[ClientSubscribe, ...]


class Detach(Message, frozen=True):
    """The client has gone elsewhere."""


class ClientUnsubscribe(Message, frozen=True):
    """The client has ended the subscription."""

    name: str


class ClientOffers(Message, frozen=True):
    """The client will publish: new subscriptions shall say where they start with it."""


class Acknowledge(Message, frozen=True):
    """The client has got the delivery."""

    ticket: int


class Accepted(Message, frozen=True):
    """All events of the client up to this number have reached all subscribers."""

    seq: int


class Started(Message, frozen=True):
    """The subscription is known everywhere it can be."""

    name: str
    cuts: Cuts
    """Where it starts with those publishers whose brokers have said so."""
    skipped: Cuts
    """The last numbers of publishers that came too early."""


class Lost(Message, frozen=True):
    """The subscription was given up: what came next for it is not kept any more."""

    name: str


class Delivery(Message, frozen=True):
    """An event for some of the client's subscriptions."""

    ticket: int
    event: Event
    names: tuple[str, ...]


FromBroker: TypeAlias = (
    Publication | ConfirmPublication | Recovered | AddSubscription | ConfirmSubscription | RemoveSubscription | Heard
    | Synchronised | Partitions | PartitionOver
)  # fmt: skip
"""What a broker says within a session, which begins with `Hello` and `Use`."""
FromClient: TypeAlias = (
    Attach | Detach | ClientSubscribe | ClientUnsubscribe | ClientOffers | ClientPublish | Acknowledge
)  # fmt: skip
ToClient: TypeAlias = Accepted | Started | Delivery | Lost
