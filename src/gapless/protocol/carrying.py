"""The content of a message, found by the names of its fields, which mean the same in all protocols.

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
    """Return the events of the message itself, without those of a wrapped message."""
    events: Sequence[Any] = getattr(message, "events", ())
    return events


def body_of(message: Any) -> Any:
    """Return the wrapped message, or None."""
    return getattr(message, "body", None)


def layers_of(message: Any) -> Iterator[Any]:
    """Yield the message, the one that it wraps, and so on."""
    while message is not None:
        yield message
        message = body_of(message)


def may_carry_events(kind: type[msgspec.Struct]) -> bool:
    """Return whether such messages can carry events, or wrap others that can."""
    return not {"events", "body"}.isdisjoint(kind.__struct_fields__)
