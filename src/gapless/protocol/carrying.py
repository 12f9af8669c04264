"""What a message carries, read from the names of its fields: in all protocols they mean the same.

| field | what it holds |
| --- | --- |
| `events` | events that travel with the message |
| `publications` | events that a client brings again |
| `body` | another message, which this one wraps |
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

__all__ = ["body_of", "events_of", "layers_of", "may_carry_events", "publications_of"]


def events_of(message: Any) -> Sequence[Any]:
    """The events that travel with the message itself; not those of what it wraps."""
    events: Sequence[Any] = getattr(message, "events", ())
    return events


def publications_of(message: Any) -> Sequence[Any]:
    """The events that a client brings again."""
    publications: Sequence[Any] = getattr(message, "publications", ())
    return publications


def body_of(message: Any) -> Any:
    """What the message wraps, or None."""
    return getattr(message, "body", None)


def layers_of(message: Any) -> Iterator[Any]:
    """The message, what it wraps, and so on."""
    while message is not None:
        yield message
        message = body_of(message)


def may_carry_events(kind: type[msgspec.Struct]) -> bool:
    """Whether such messages carry events, or others that may."""
    return not {"events", "body"}.isdisjoint(kind.__struct_fields__)
