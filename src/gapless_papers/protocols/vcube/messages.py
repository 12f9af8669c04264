"""What brokers and clients of the `vcube` protocol say to each other.

A broadcast is named by its source, its topic and its number; a source has one under way for each topic at most. Brokers
are numbers: see `hypercube`. A message in a causal barrier is one integer, its *stamp*: see `causal_order`.
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
"""A broker, its clock when it last joined or left the topic, and whether it is a member since."""


# ---- between brokers --------------------------------------------------------------------------------------


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What the brokers of a sub-tree say to a new member."""

    entries: tuple[Entry, ...]
    """Of those that are, or were, members."""
    settled: dict[int, int]
    """By source, the stamp of the last message that one of them has delivered or left out."""
    last: dict[str, int]
    """By publisher, the number of its last event among them."""


class Sub(Message, frozen=True):
    """The source joins the topic; goes to every broker."""

    source: int
    topic: str
    number: int


class Uns(Message, frozen=True):
    """The source leaves the topic; goes to its members."""

    source: int
    topic: str
    number: int
    behind: bytes
    """The members that the receiver passes it on to, as bits of its sub-cube."""


class Pub(Message, frozen=True):
    """An event; goes to the members of the topic."""

    source: int
    topic: str
    number: int
    event: Event
    barrier: frozenset[int]
    """The stamps of its direct causes."""
    behind: bytes
    """The members that the receiver passes it on to, as bits of its sub-cube."""


class Ack(Message, frozen=True):
    """A broadcast has reached everyone behind the sender."""

    source: int
    topic: str
    number: int
    answer: Answer | None = None


FromBroker: TypeAlias = Sub | Uns | Pub | Ack
