"""What brokers and clients of the `gryphon` protocol say to each other.

Everything travels in the `Packet`s of a link (`link_stream`). Between brokers, subscriptions and advertisements are
named `client/number`: the client numbers its calls, so a name that its user takes twice means two things here.
"""

from typing import TypeAlias

from gapless.events import Event
from gapless.protocols.parts.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWord,
    Cuts,
    Delivery,
    Message,
    Started,
)

__all__ = [
    "Acknowledgement",
    "AddAdvertisement",
    "AddSubscription",
    "Answered",
    "Body",
    "ClientAdvertise",
    "ClientPublish",
    "ClientSubscribe",
    "ClientUnadvertise",
    "ClientUnsubscribe",
    "ClientWord",
    "Cuts",
    "Delivery",
    "FromBroker",
    "Missing",
    "Offered",
    "Packet",
    "PathStable",
    "Publication",
    "RemoveAdvertisement",
    "RemoveSubscription",
    "Started",
    "ToClient",
]  # fmt: skip


# ---- of a link --------------------------------------------------------------------------------------------


class Packet(Message, frozen=True):
    """One message, with its number on this link, and how far the sender has received what came the other way."""

    number: int
    received: int
    body: "Body"


class Acknowledgement(Message, frozen=True):
    """Everything up to `received` is here; said alone where no packet went the other way for a while."""

    received: int


class Missing(Message, frozen=True):
    """Something later is here already: send these again."""

    first: int
    last: int


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event on its way."""

    event: Event


class AddAdvertisement(Message, frozen=True):
    """From number `since` on, the publisher may publish what matches the filter. Answered by `Answered`."""

    advertisement: str
    publisher: str
    filter: str
    since: int


class Answered(Message, frozen=True):
    """Whoever lies behind the sender has passed all matching subscriptions on towards the publisher."""

    advertisement: str


class RemoveAdvertisement(Message, frozen=True):
    """The publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(Message, frozen=True):
    """Someone behind the sender subscribes."""

    subscription: str
    filter: str


class RemoveSubscription(Message, frozen=True):
    """The subscription is over, or nobody behind the receiver publishes for it any more."""

    subscription: str


class PathStable(Message, frozen=True):
    """The publishers' broker knows the subscription: from these numbers on, every event finds it on its whole way."""

    subscription: str
    cuts: Cuts


# ---- between a client and its broker ----------------------------------------------------------------------


class Offered(Message, frozen=True):
    """Everyone has answered the advertisement: its events no longer flood."""

    number: int


FromBroker: TypeAlias = (
    Publication | AddAdvertisement | Answered | RemoveAdvertisement | AddSubscription | RemoveSubscription | PathStable
)  # fmt: skip
ToClient: TypeAlias = Offered | Started | Delivery
Body: TypeAlias = FromBroker | ClientWord | ToClient
