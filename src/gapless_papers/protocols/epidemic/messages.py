"""The messages between brokers and clients of the `epidemic` protocol.

Between brokers, any message can be lost or duplicated. `Publication`, `Interest`, `InterestKnown` and gossip travel
along the links of the tree; `Request` and `Retransmission` go directly to their receivers. A `PublisherPull` goes from
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
"""The publisher and its number: a network-wide name for the event."""
Numbers: TypeAlias = dict[str, tuple[int, ...]]
"""Numbers of events, by source or by pattern."""


class Stamped(msgspec.Struct, frozen=True, array_like=True):
    """An event with the paper's identifier: its source and, for each pattern that it matches there, a number."""

    event: Event
    source: str
    """The broker at which it was published, with its incarnation."""
    numbers: dict[str, int]
    """The event's number for each pattern; empty if losses are not detected."""


# ---- between brokers --------------------------------------------------------------------------------------


class Publication(Message, frozen=True):
    """An event in transit to its subscribers."""

    stamped: Stamped
    route: tuple[str, ...]
    """The brokers on its path so far, its source first; empty if routes are not used."""


class Interest(Message, frozen=True):
    """The patterns wanted behind the sender: the changes since the previous version, or all."""

    version: int
    whole: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]


class InterestKnown(Message, frozen=True):
    """Confirms an `Interest`."""

    version: int


class PushDigest(Message, frozen=True):
    """Gossip of push: the initiator has these events in its cache, and all of them match the pattern."""

    initiator: str
    pattern: str
    events: tuple[EventId, ...]


class Request(Message, frozen=True):
    """Answers a `PushDigest`: requests those of its events that the sender lacks."""

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
    """All subscriptions of a client, sent on a new connection."""

    filters: dict[int, str]
    """By number."""


class Accepted(Message, frozen=True):
    """Confirms that the broker has the subscription."""

    number: int


Pushing: TypeAlias = PushDigest | Request
Pulling: TypeAlias = SubscriberPull | PublisherPull
FromBroker: TypeAlias = Publication | Retransmission | Interest | InterestKnown | Pushing | Pulling
FromClient: TypeAlias = ClientPublish | ClientSubscribe | ClientUnsubscribe | ClientState
ToClient: TypeAlias = Accepted | Delivery
