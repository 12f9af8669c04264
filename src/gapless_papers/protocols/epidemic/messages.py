"""What brokers and clients of the `epidemic` protocol say to each other.

Between brokers everything may be lost or arrive twice. `Publication`, `Interest`, `InterestKnown` and gossip go along
the links of the tree; `Request` and `Retransmission` go straight to whom they concern, and a `PublisherPull` from
broker to broker along the route that it names, whether these are still neighbours or not.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.protocols.parts.messages import ClientPublish, ClientSubscribe, ClientUnsubscribe, Delivery, Message

__all__ = [
    "Accepted",
    "ClientPublish",
    "ClientState",
    "ClientSubscribe",
    "ClientUnsubscribe",
    "Delivery",
    "EventId",
    "FromBroker",
    "FromClient",
    "Interest",
    "InterestKnown",
    "Numbers",
    "Publication",
    "PublisherPull",
    "Pulling",
    "PushDigest",
    "Pushing",
    "Request",
    "Retransmission",
    "Stamped",
    "SubscriberPull",
    "ToClient",
]  # fmt: skip

EventId: TypeAlias = tuple[str, int]
"""The publisher and its number: the name of an event in the whole network."""
Numbers: TypeAlias = dict[str, tuple[int, ...]]
"""Numbers of events, by source or by pattern."""


class Stamped(msgspec.Struct, frozen=True, array_like=True):
    """An event with the paper's identifier: its source and, for each pattern that it matches there, a number."""

    event: Event
    source: str
    """The broker at which it was published, by its name and life."""
    numbers: dict[str, int]
    """By pattern; empty where nobody detects losses."""


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event on its way to its subscribers."""

    stamped: Stamped
    route: tuple[str, ...]
    """The brokers that it came through, its source first; empty where nobody follows routes."""


class Interest(Message, frozen=True):
    """Which patterns are wanted behind the sender: what changed since the version before, or all of it."""

    version: int
    whole: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]


class InterestKnown(Message, frozen=True):
    """The receiver of an `Interest` has it."""

    version: int


class PushDigest(Message, frozen=True):
    """Gossip of push: the initiator caches these events, all of which match the pattern."""

    initiator: str
    pattern: str
    events: tuple[EventId, ...]


class Request(Message, frozen=True):
    """The answer to a `PushDigest`: these of its events I lack."""

    events: tuple[EventId, ...]


class SubscriberPull(Message, frozen=True):
    """Gossip of subscriber-based pull: the initiator lacks these events of the pattern."""

    initiator: str
    pattern: str
    missing: Numbers
    """By source."""


class PublisherPull(Message, frozen=True):
    """Gossip of publisher-based pull: the initiator lacks these events of the source."""

    initiator: str
    source: str
    missing: Numbers
    """By pattern."""
    route: tuple[str, ...]
    """The brokers still to be asked, the last one first."""


class Retransmission(Message, frozen=True):
    """An event from a cache, for a broker that lacks it."""

    stamped: Stamped


# ---- between a client and its broker ----------------------------------------------------------------------


class ClientState(Message, frozen=True):
    """All subscriptions of a client, on a fresh connection."""

    filters: dict[int, str]
    """By number."""


class Accepted(Message, frozen=True):
    """The broker has the subscription."""

    number: int


Pushing: TypeAlias = PushDigest | Request
Pulling: TypeAlias = SubscriberPull | PublisherPull
FromBroker: TypeAlias = Publication | Retransmission | Interest | InterestKnown | Pushing | Pulling
FromClient: TypeAlias = ClientPublish | ClientSubscribe | ClientUnsubscribe | ClientState
ToClient: TypeAlias = Accepted | Delivery
