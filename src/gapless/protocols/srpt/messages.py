"""What brokers of the `srpt` protocol say to each other; with clients they talk as those of `vcube` do."""

import msgspec

from gapless.events import Event

__all__ = ["Join", "Joined", "Leave", "Pub", "ToRoot"]


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """Base of all messages: frozen, tagged by their class name, compact on the wire."""

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
