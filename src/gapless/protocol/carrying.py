"""Finds the contents of a message by the names of its fields, which have the same meaning in all protocols.

| field | content |
| --- | --- |
| `events` | events that travel with the message |
| `body` | a wrapped message |
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

__all__ = ["body_of", "events_of", "layers_of", "may_carry_events"]


def events_of(message: Any) -> Sequence[Any]:
    """Return the events of a message, without the events of a wrapped message."""
    events: Sequence[Any] = getattr(message, "events", ())
    return events


def body_of(message: Any) -> Any:
    """Return the message that this one wraps, or None."""
    return getattr(message, "body", None)


def layers_of(message: Any) -> Iterator[Any]:
    """Yield the message, the message it wraps, and so on."""
    while message is not None:
        yield message
        message = body_of(message)


def may_carry_events(kind: type[msgspec.Struct]) -> bool:
    """Return whether messages of this type can contain events, or wrap messages that can."""
    return not {"events", "body"}.isdisjoint(kind.__struct_fields__)
