"""What brokers and clients of the `locaps` protocol say to each other.

Subscriptions and advertisements are named `client/number` between brokers: the client numbers its calls, so a name
that its user takes twice means two things here, and no late marker is taken for another's.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.protocols.parts.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWord,
    Cuts,
    Message,
    Started,
)

__all__ = [
    "AddAdvertisement",
    "AddSubscription",
    "AdvertisementStable",
    "AskEstate",
    "AskPartial",
    "ClientAdvertise",
    "ClientPublish",
    "ClientReturn",
    "ClientSubscribe",
    "ClientUnadvertise",
    "ClientUnsubscribe",
    "ClientWord",
    "Confirmation",
    "Content",
    "Cuts",
    "Dead",
    "Delivery",
    "Done",
    "Due",
    "EndSubscription",
    "Estate",
    "ForgetSubscription",
    "FromBroker",
    "FromClient",
    "FromNeighbour",
    "Hop",
    "Keep",
    "Kept",
    "Marker",
    "Packet",
    "PartialMarker",
    "PathMarker",
    "PathSubscribe",
    "PivotMarker",
    "Publication",
    "RemoveAdvertisement",
    "RemoveSubscription",
    "Stable",
    "Started",
    "Takeover",
    "ToClient",
]  # fmt: skip


Due: TypeAlias = dict[str, dict[str, int]]
"""By broker and stream, the number up to which the broker has to have what it is sent."""


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event on its way."""

    event: Event


class AddAdvertisement(Message, frozen=True):
    """A publisher may publish what matches the filter. Answered by `AdvertisementStable`."""

    advertisement: str
    publisher: str
    filter: str
    epoch: int = 0
    """On a graph: how many brokers the publisher has lost."""


class AdvertisementStable(Message, frozen=True):
    """Whoever lies behind the sender has passed all matching subscriptions on towards the publisher."""

    advertisement: str


class RemoveAdvertisement(Message, frozen=True):
    """The publisher publishes nothing more under this advertisement."""

    advertisement: str


class AddSubscription(Message, frozen=True):
    """Someone behind the sender subscribes."""

    subscription: str
    filter: str
    pivot: str = ""
    """The broker that speaks for it already, if any."""
    left: int = 0
    """How many brokers of the pivot's set, the receiver first, have yet to send their partial markers."""


class RemoveSubscription(Message, frozen=True):
    """The subscription is over, or nobody behind the receiver publishes for it any more."""

    subscription: str


class AskPartial(Message, frozen=True):
    """A pivot was found after the subscription had passed: the next `left` brokers join its set."""

    subscription: str
    pivot: str
    left: int


class Marker(Message, frozen=True):
    """The publishers' own broker says: from these numbers on, everything goes to the subscription."""

    subscription: str
    cuts: Cuts


class PartialMarker(Message, frozen=True):
    """A broker of a pivot's set says: I pass everything from these numbers on to the subscription."""

    subscription: str
    pivot: str
    broker: str
    cuts: Cuts


# ---- between brokers, on a graph (`gapless_papers.protocols.locamu`) ---------------------------------------------


class PathSubscribe(Message, frozen=True):
    """A client of the home broker subscribes; for all brokers on the ways to the publishers."""

    subscription: str
    filter: str
    home: str
    is_new: bool
    """Whether this goes to all publishers there are; else only to some who came later."""


class EndSubscription(Message, frozen=True):
    """The client has ended the subscription: nobody may rely on it any more. Events still come for it."""

    subscription: str


class ForgetSubscription(Message, frozen=True):
    """All who relied on the subscription have been passed on: nobody needs it any more."""

    subscription: str


class PathMarker(Message, frozen=True):
    """The publishers' own broker says: from these numbers on, everything goes to the subscription."""

    subscription: str
    cuts: Cuts
    filter: str = ""
    """Of the subscription, and its home: for publishers that know it from here only (the cascade)."""
    home: str = ""


class PivotMarker(Message, frozen=True):
    """A partial pivot says: I carry everything from these numbers on to the subscription, as its cover gets it."""

    subscription: str
    broker: str
    cuts: Cuts


class Takeover(Message, frozen=True):
    """The publisher of this stream has come to another broker, and all that was left of it has been sent again."""

    last: int
    """Its last event that was held."""


Content: TypeAlias = (
    Publication | AddAdvertisement | AdvertisementStable | RemoveAdvertisement | PathSubscribe | EndSubscription
    | ForgetSubscription | PathMarker | PivotMarker | Takeover
)  # fmt: skip


class Packet(msgspec.Struct, frozen=True, array_like=True):
    """A message of the causal multicast."""

    stream: str
    number: int
    origin: str
    ends: tuple[str, ...]
    due: Due
    settled: dict[str, int]
    content: Content


class Hop(Message, frozen=True):
    """A message on its way, and ends that brokers on the way have added."""

    packet: Packet
    extra: tuple[str, ...] = ()


class Done(Message, frozen=True):
    """Up to where the sender is done with the receiver's streams, and what it knew by then."""

    done: dict[str, int]
    due: Due


class Dead(Message, frozen=True):
    """A broker has failed."""

    broker: str


class Keep(Message, frozen=True):
    """Hold this part of the stream of a publisher of the sender, with its past, until it has come through."""

    publisher: str
    number: int
    content: Content
    due: Due


class Kept(Message, frozen=True):
    """The sender holds the publisher's stream up to this number."""

    publisher: str
    number: int


class AskEstate(Message, frozen=True):
    """The broker has failed, and the publisher has come to the sender: what was kept of it?"""

    broker: str
    publisher: str


class Estate(Message, frozen=True):
    """What was kept: the last event's number, and what has not come through, with its past."""

    broker: str
    publisher: str
    last: int
    items: list[tuple[int, Content, Due]]


# ---- between a client and its broker ----------------------------------------------------------------------


class ClientReturn(Message, frozen=True):
    """The client's broker has failed; it goes on here."""

    brokers: tuple[str, ...]
    """Those it was attached to before."""
    offers: dict[int, str]
    """Its advertisements."""
    closing: tuple[int, ...]
    """Of these, those that it has taken back, behind its last event."""
    events: list[Event]
    """Those of which it does not know that they have come through."""
    due: Due
    """Its past."""


class Confirmation(Message, frozen=True):
    """All events of the client up to this number have come through."""

    seq: int


class Stable(Message, frozen=True):
    """The advertisement is stable."""

    number: int
    confirms: bool = False
    """Whether the broker will say which events have come through."""


class Delivery(Message, frozen=True):
    """An event for some of the client's subscriptions."""

    event: Event
    numbers: list[int]
    due: Due = msgspec.field(default_factory=dict)
    """On a graph: what its broker knew others to have coming; the client takes it along if the broker fails."""


FromNeighbour: TypeAlias = (
    Publication | AddSubscription | RemoveSubscription | AskPartial | Marker | PartialMarker | AddAdvertisement
    | AdvertisementStable | RemoveAdvertisement
)  # fmt: skip
"""On the bare tree."""
FromBroker: TypeAlias = Hop | Done | Dead | Keep | Kept | AskEstate | Estate
"""Over f + 1 paths."""
FromClient: TypeAlias = ClientWord | ClientReturn
ToClient: TypeAlias = Started | Stable | Delivery | Confirmation | Dead
