"""What brokers of the `srpt` protocol say to each other; with clients they talk as all that serve topics do."""

from typing import TypeAlias

from gapless.events import Event
from gapless.protocols.parts.messages import Message

__all__ = ["FromBroker", "Join", "Joined", "Leave", "Pub", "ToRoot"]


class _Message(Message, frozen=True):
    """Of one topic."""

    topic: str


class Join(_Message, frozen=True):
    """From a child: pass on to me what is published. Answered by `Joined`."""


class Joined(_Message, frozen=True):
    """From the parent: you get everything from now on."""


class Leave(_Message, frozen=True):
    """From a child: nobody below me needs it any longer."""


class ToRoot(_Message, frozen=True):
    """An event on its way to the root."""

    event: Event


class Pub(_Message, frozen=True):
    """An event on its way down the tree."""

    event: Event


FromBroker: TypeAlias = Join | Joined | Leave | ToRoot | Pub
