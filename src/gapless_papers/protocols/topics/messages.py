"""The messages between a client of topics and its broker."""

from typing import TypeAlias

from gapless.events import Event
from gapless.protocols.parts.messages import Cuts, Delivery, Message

__all__ = [
    "ClientAdvertise",
    "ClientEnd",
    "ClientPublish",
    "ClientSubscribe",
    "Cuts",
    "Delivery",
    "FromClient",
    "Ready",
    "Refused",
    "Taken",
    "ToClient",
]  # fmt: skip


# ---- from a client to its broker --------------------------------------------------------------------------


class ClientSubscribe(Message, frozen=True):
    """A client's subscription to the topic. Answered by `Ready` or `Refused`."""

    number: int
    topic: str


class ClientAdvertise(Message, frozen=True):
    """A client's advertisement: it may publish on the topic. Answered by `Ready` or `Refused`."""

    number: int
    topic: str


class ClientEnd(Message, frozen=True):
    """Ends a subscription of the client, or withdraws an advertisement."""

    number: int
    topic: str


class ClientPublish(Message, frozen=True):
    """The client's next event on the topic."""

    topic: str
    event: Event


# ---- from a broker to its client --------------------------------------------------------------------------


class Ready(Message, frozen=True):
    """Confirms that the broker is a member of the topic. A subscription starts with these numbers, and with all events
    of other publishers."""

    number: int
    cuts: Cuts


class Refused(Message, frozen=True):
    """Refuses the call, with the reason."""

    number: int
    reason: str


class Taken(Message, frozen=True):
    """Confirms that every member has received the client's event."""

    seq: int


FromClient: TypeAlias = ClientSubscribe | ClientAdvertise | ClientEnd | ClientPublish
ToClient: TypeAlias = Ready | Refused | Delivery | Taken
