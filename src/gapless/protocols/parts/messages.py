"""The base class of all messages, and messages that clients of several protocols send.

Such a client numbers its subscriptions and advertisements (`numbered_client`).
"""

from typing import TypeAlias

import msgspec

from gapless.events import Event

__all__ = [
    "ClientAdvertise", "ClientPublish", "ClientSubscribe", "ClientUnadvertise", "ClientUnsubscribe", "ClientWord",
    "Cuts", "Delivery", "Message", "Started",
]  # fmt: skip

Cuts: TypeAlias = dict[str, int]
"""A sequence number for each publisher: the first number that is due, or the last one."""


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """Base class of all messages: frozen, tagged by the name of their class, and compact when encoded."""


# ---- from a client to its broker --------------------------------------------------------------------------


class ClientAdvertise(Message, frozen=True):
    """Announces that the client may publish events that match the filter."""

    number: int
    filter: str


class ClientUnadvertise(Message, frozen=True):
    """Announces that the client's later publications do not rely on the advertisement."""

    number: int


class ClientSubscribe(Message, frozen=True):
    """Subscribes the client to events that match the filter."""

    number: int
    filter: str


class ClientUnsubscribe(Message, frozen=True):
    """Announces that the client has ended the subscription."""

    number: int


class ClientPublish(Message, frozen=True):
    """Contains the client's next event."""

    event: Event


ClientWord: TypeAlias = ClientAdvertise | ClientUnadvertise | ClientSubscribe | ClientUnsubscribe | ClientPublish


# ---- from a broker to its client --------------------------------------------------------------------------


class Started(Message, frozen=True):
    """Contains the subscription's starting cut for some publishers, or for none if no publisher advertises matching
    events.
    """

    number: int
    cuts: Cuts


class Delivery(Message, frozen=True):
    """Contains an event for some of the client's subscriptions."""

    event: Event
    numbers: tuple[int, ...]
