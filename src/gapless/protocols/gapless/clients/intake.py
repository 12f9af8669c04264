"""What a client says while its broker is busy has to wait; what is wrong with it, the client is told at once.

Whatever waits is taken in the turn of another, where nobody would know any more whom to send away.
"""

from collections.abc import Iterable
from typing import Any

from gapless.errors import EventError
from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import Input
from gapless.protocols.gapless.messages import Attach, ClientAdvertise, ClientPublish, ClientSubscribe

__all__ = ["check_message", "check_publisher", "weigh"]

HANDLED = 4
"""Units of work for a message that carries no event."""


def weigh(item: Input) -> int:
    """How much work an input is, in units (see `recovery.pieces`): that of the events in it, mostly."""
    units = HANDLED
    message = getattr(item, "message", None)
    while message is not None:
        units += len(getattr(message, "events", ()))
        message = getattr(message, "body", None)
    return units


def check_message(client: str, message: Any) -> None:
    """Raise what taking the message would raise."""
    match message:
        case Attach():
            for text in [item.filter for item in message.brought]:
                parse(text)
            for text, _ in message.advertisements.values():
                parse(text)
            check_publisher(client, message.publications)
        case ClientSubscribe() | ClientAdvertise():
            parse(message.filter)
        case ClientPublish():
            check_publisher(client, message.events)


def check_publisher(client: str, events: Iterable[Event]) -> None:
    """A client publishes in its own name alone."""
    for event in events:
        if event.publisher != client:
            raise EventError(f"{client!r} cannot publish in the name of {event.publisher!r}")
