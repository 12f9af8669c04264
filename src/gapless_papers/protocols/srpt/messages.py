"""The messages between brokers of the `srpt` protocol; those to and from clients are in `topics.messages`."""

from typing import TypeAlias

from gapless.events import Event
from gapless.protocols.parts.messages import Message

__all__ = ["FromBroker", "Join", "Joined", "Leave", "Pub", "ToRoot"]


class _Message(Message, frozen=True):
    """Base of messages about one topic."""

    topic: str


class Join(_Message, frozen=True):
    """A child's request for all later events. Answered by `Joined`."""


class Joined(_Message, frozen=True):
    """The parent's confirmation that the child gets all events from now on."""


class Leave(_Message, frozen=True):
    """A child's announcement that it needs no further events."""


class ToRoot(_Message, frozen=True):
    """An event in transit to the root."""

    event: Event


class Pub(_Message, frozen=True):
    """An event in transit down the tree."""

    event: Event


FromBroker: TypeAlias = Join | Joined | Leave | ToRoot | Pub
