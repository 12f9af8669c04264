"""The messages between brokers and clients of the `gryphon` protocol.

All messages travel in the `Packet`s of a link (`link_stream`). Between brokers, subscriptions and advertisements are
named `client/number`: the client numbers its calls, so a name that its user reuses denotes two things here.
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
    """One message, with its number on this link, and an acknowledgement of the other direction."""

    number: int
    received: int
    body: "Body"


class Acknowledgement(Message, frozen=True):
    """Acknowledges all packets up to `received`; sent alone if no packet went the other way for a while."""

    received: int


class Missing(Message, frozen=True):
    """Requests these packets again, because later ones have arrived."""

    first: int
    last: int


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event in transit."""

    event: Event


class AddAdvertisement(Message, frozen=True):
    """Announces that the publisher can publish matching events from number `since` on. Answered by `Answered`."""

    advertisement: str
    publisher: str
    filter: str
    since: int


class Answered(Message, frozen=True):
    """Confirms that all brokers behind the sender have forwarded their matching subscriptions towards the publisher."""

    advertisement: str


class RemoveAdvertisement(Message, frozen=True):
    """Announces that the publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(Message, frozen=True):
    """A new subscription of a client behind the sender."""

    subscription: str
    filter: str


class RemoveSubscription(Message, frozen=True):
    """Ends the subscription, or announces that publishers behind the receiver no longer match it."""

    subscription: str


class PathStable(Message, frozen=True):
    """Confirms that the publishers' broker knows the subscription, so that events from these numbers on reach it."""

    subscription: str
    cuts: Cuts


# ---- between a client and its broker ----------------------------------------------------------------------


class Offered(Message, frozen=True):
    """Confirms that all brokers have answered the advertisement: its events no longer flood."""

    number: int


FromBroker: TypeAlias = (
    Publication | AddAdvertisement | Answered | RemoveAdvertisement | AddSubscription | RemoveSubscription | PathStable
)  # fmt: skip
ToClient: TypeAlias = Offered | Started | Delivery
Body: TypeAlias = FromBroker | ClientWord | ToClient
