"""The messages between brokers and clients of the `vcube` protocol.

A broadcast is identified by its source, its topic and its number; a source has at most one in flight for each topic.
Brokers are numbers: see `hypercube`. A message in a causal barrier is one integer, its *stamp*: see `causal_order`.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event
from gapless.protocols.parts.messages import Cuts, Message
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    FromClient,
    Ready,
    Refused,
    Taken,
)

__all__ = [
    "Ack",
    "Answer",
    "ClientAdvertise",
    "ClientEnd",
    "ClientPublish",
    "ClientSubscribe",
    "Cuts",
    "Delivery",
    "Entry",
    "FromBroker",
    "FromClient",
    "Pub",
    "Ready",
    "Refused",
    "Sub",
    "Taken",
    "Uns",
]  # fmt: skip

Entry: TypeAlias = tuple[int, int, bool]
"""A broker, its clock when it last joined or left the topic, and whether it has been a member since."""


# ---- between brokers --------------------------------------------------------------------------------------


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The answer of the brokers of a sub-tree to a new member."""

    entries: tuple[Entry, ...]
    """The present and former members among them."""
    settled: dict[int, int]
    """By source, the stamp of the last message that one of them has delivered or omitted."""
    last: dict[str, int]
    """By publisher, the number of its last event among them."""


class Sub(Message, frozen=True):
    """Announces to every broker that the source joins the topic."""

    source: int
    topic: str
    number: int


class Uns(Message, frozen=True):
    """Announces to the members that the source leaves the topic."""

    source: int
    topic: str
    number: int
    behind: bytes
    """The members to which the receiver forwards it, as bits of its sub-cube."""


class Pub(Message, frozen=True):
    """An event; goes to the members of the topic."""

    source: int
    topic: str
    number: int
    event: Event
    barrier: frozenset[int]
    """The stamps of its direct causes."""
    behind: bytes
    """The members to which the receiver forwards it, as bits of its sub-cube."""


class Ack(Message, frozen=True):
    """Confirms that a broadcast has reached all receivers behind the sender."""

    source: int
    topic: str
    number: int
    answer: Answer | None = None


FromBroker: TypeAlias = Sub | Uns | Pub | Ack
