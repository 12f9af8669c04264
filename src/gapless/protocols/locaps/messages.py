"""What brokers and clients of the `locaps` protocol say to each other.

Subscriptions and advertisements are named `client/number` between brokers: the client numbers its calls, so a name
that its user takes twice means two things here, and no late marker is taken for another's.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event

__all__ = [
    "AddAdvertisement", "AddSubscription", "AdvertisementStable", "AskPartial", "ClientAdvertise", "ClientPublish",
    "ClientSubscribe", "ClientUnadvertise", "ClientUnsubscribe", "Cuts", "Delivery", "Marker", "PartialMarker",
    "Publication", "RemoveAdvertisement", "RemoveSubscription", "Stable", "Started",
]  # fmt: skip

Cuts: TypeAlias = dict[str, int]
"""For each publisher, the first sequence number that counts."""


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Base of all messages: frozen, tagged by their class name, compact on the wire."""


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(_Message, frozen=True):
    """An event on its way."""

    event: Event


class AddAdvertisement(_Message, frozen=True):
    """A publisher may publish what matches the filter. Answered by `AdvertisementStable`."""

    advertisement: str
    publisher: str
    filter: str


class AdvertisementStable(_Message, frozen=True):
    """Whoever lies behind the sender has passed all matching subscriptions on towards the publisher."""

    advertisement: str


class RemoveAdvertisement(_Message, frozen=True):
    """The publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(_Message, frozen=True):
    """Someone behind the sender subscribes."""

    subscription: str
    filter: str
    pivot: str = ""
    """The broker that speaks for it already, if any."""
    left: int = 0
    """How many brokers of the pivot's set, the receiver first, have yet to send their partial markers."""


class RemoveSubscription(_Message, frozen=True):
    """The subscription is over, or nobody behind the receiver publishes for it any more."""

    subscription: str


class AskPartial(_Message, frozen=True):
    """A pivot was found after the subscription had passed: the next `left` brokers join its set."""

    subscription: str
    pivot: str
    left: int


class Marker(_Message, frozen=True):
    """The publishers' own broker says: from these numbers on, everything goes to the subscription."""

    subscription: str
    cuts: Cuts


class PartialMarker(_Message, frozen=True):
    """A broker of a pivot's set says: I pass everything from these numbers on to the subscription."""

    subscription: str
    pivot: str
    broker: str
    cuts: Cuts


# ---- between a client and its broker ----------------------------------------------------------------------


class ClientAdvertise(_Message, frozen=True):
    """The client may publish what matches the filter."""

    number: int
    filter: str


class ClientUnadvertise(_Message, frozen=True):
    """What the client publishes after this does not rely on the advertisement."""

    number: int


class ClientSubscribe(_Message, frozen=True):
    """The client wants what matches the filter."""

    number: int
    filter: str


class ClientUnsubscribe(_Message, frozen=True):
    """The client has ended the subscription."""

    number: int


class ClientPublish(_Message, frozen=True):
    """The client's next event."""

    event: Event


class Stable(_Message, frozen=True):
    """The advertisement is stable."""

    number: int


class Started(_Message, frozen=True):
    """The subscription's starting cut for some publishers; for none, if nobody advertises what it asks for."""

    number: int
    cuts: Cuts


class Delivery(_Message, frozen=True):
    """An event for some of the client's subscriptions."""

    event: Event
    numbers: list[int]
