"""What brokers and clients of the `gryphon` protocol say to each other.

Everything travels in the `Packet`s of a link (`link_stream`). Between brokers, subscriptions and advertisements are
named `client/number`: the client numbers its calls, so a name that its user takes twice means two things here.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event

__all__ = [
    "Acknowledgement", "AddAdvertisement", "AddSubscription", "Answered", "Body", "ClientAdvertise", "ClientPublish",
    "ClientSubscribe", "ClientUnadvertise", "ClientUnsubscribe", "Cuts", "Delivery", "Missing", "Offered", "Packet",
    "PathStable", "Publication", "RemoveAdvertisement", "RemoveSubscription", "Started",
]  # fmt: skip

Cuts: TypeAlias = dict[str, int]
"""For each publisher, the first sequence number that counts."""


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Base of all messages: frozen, tagged by their class name, compact on the wire."""


# ---- of a link --------------------------------------------------------------------------------------------


class Packet(_Message, frozen=True):
    """One message, with its number on this link, and how far the sender has received what came the other way."""

    number: int
    received: int
    body: "Body"


class Acknowledgement(_Message, frozen=True):
    """Everything up to `received` is here; said alone where no packet went the other way for a while."""

    received: int


class Missing(_Message, frozen=True):
    """Something later is here already: send these again."""

    first: int
    last: int


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(_Message, frozen=True):
    """An event on its way."""

    event: Event


class AddAdvertisement(_Message, frozen=True):
    """From number `since` on, the publisher may publish what matches the filter. Answered by `Answered`."""

    advertisement: str
    publisher: str
    filter: str
    since: int


class Answered(_Message, frozen=True):
    """Whoever lies behind the sender has passed all matching subscriptions on towards the publisher."""

    advertisement: str


class RemoveAdvertisement(_Message, frozen=True):
    """The publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(_Message, frozen=True):
    """Someone behind the sender subscribes."""

    subscription: str
    filter: str


class RemoveSubscription(_Message, frozen=True):
    """The subscription is over, or nobody behind the receiver publishes for it any more."""

    subscription: str


class PathStable(_Message, frozen=True):
    """The publishers' broker knows the subscription: from these numbers on, every event finds it on its whole way."""

    subscription: str
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


class Offered(_Message, frozen=True):
    """Everyone has answered the advertisement: its events no longer flood."""

    number: int


class Started(_Message, frozen=True):
    """Where the subscription starts with some publishers; with none, if nobody advertises what it asks for."""

    number: int
    cuts: Cuts


class Delivery(_Message, frozen=True):
    """An event for some of the client's subscriptions."""

    event: Event
    numbers: list[int]


Body: TypeAlias = (
    Publication | AddAdvertisement | Answered | RemoveAdvertisement | AddSubscription | RemoveSubscription | PathStable
    | ClientAdvertise | ClientUnadvertise | ClientSubscribe | ClientUnsubscribe | ClientPublish
    | Offered | Started | Delivery
)  # fmt: skip
