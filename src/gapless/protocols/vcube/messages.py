"""What brokers and clients of the `vcube` protocol say to each other.

A broadcast is named by its source, its topic and its number; a source has one under way for each topic at most. Brokers
are numbers: see `hypercube`. A message in a causal barrier is one integer, its *stamp*: see `causal_order`.
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event

__all__ = [
    "Ack", "Answer", "ClientAdvertise", "ClientEnd", "ClientPublish", "ClientSubscribe", "Cuts", "Delivery", "Entry",
    "Pub", "Ready", "Refused", "Sub", "Taken", "Uns",
]  # fmt: skip

Entry: TypeAlias = tuple[int, int, bool]
"""A broker, its clock when it last joined or left the topic, and whether it is a member since."""

Cuts: TypeAlias = dict[str, int]
"""For each publisher, the first sequence number that counts."""


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """Base of all messages: frozen, tagged by their class name, compact on the wire."""


# ---- between brokers --------------------------------------------------------------------------------------


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """What the brokers of a sub-tree say to a new member."""

    entries: tuple[Entry, ...]
    """Of those that are, or were, members."""
    settled: dict[int, int]
    """By source, the stamp of the last message that one of them has delivered or left out."""
    last: dict[str, int]
    """By publisher, the number of its last event among them."""


class Sub(_Message, frozen=True):
    """The source joins the topic; goes to every broker."""

    source: int
    topic: str
    number: int


class Uns(_Message, frozen=True):
    """The source leaves the topic; goes to its members."""

    source: int
    topic: str
    number: int
    behind: bytes
    """The members that the receiver passes it on to, as bits of its sub-cube."""


class Pub(_Message, frozen=True):
    """An event; goes to the members of the topic."""

    source: int
    topic: str
    number: int
    event: Event
    barrier: frozenset[int]
    """The stamps of its direct causes."""
    behind: bytes
    """The members that the receiver passes it on to, as bits of its sub-cube."""


class Ack(_Message, frozen=True):
    """A broadcast has reached everyone behind the sender."""

    source: int
    topic: str
    number: int
    answer: Answer | None = None


# ---- from a client to its broker --------------------------------------------------------------------------


class ClientSubscribe(_Message, frozen=True):
    """The client wants what is published on the topic. Answered by `Ready` or `Refused`."""

    number: int
    topic: str


class ClientAdvertise(_Message, frozen=True):
    """The client may publish on the topic. Answered by `Ready` or `Refused`."""

    number: int
    topic: str


class ClientEnd(_Message, frozen=True):
    """The client has ended a subscription, or taken an advertisement back."""

    number: int
    topic: str


class ClientPublish(_Message, frozen=True):
    """The client's next event on the topic."""

    topic: str
    event: Event


# ---- from a broker to its client --------------------------------------------------------------------------


class Ready(_Message, frozen=True):
    """The broker is a member of the topic. A subscription starts with these numbers, and with all of any other one."""

    number: int
    cuts: Cuts


class Refused(_Message, frozen=True):
    """The broker cannot serve the call."""

    number: int
    reason: str


class Delivery(_Message, frozen=True):
    """An event for some of the client's subscriptions."""

    event: Event
    numbers: tuple[int, ...]


class Taken(_Message, frozen=True):
    """Every member has received the client's event."""

    seq: int
