"""From what an application wants to publish to calls that the node can take.

Everything that the network would choke on is noticed here: what is no attribute, what cannot be encoded, what is too
large. So one bad event ends the call that brought it, and harms nobody else.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from gapless.client.arguments import surrogate_in
from gapless.errors import EventError
from gapless.protocol import Publish

__all__ = ["Checked", "Payload", "Publication", "check_publication"]

Payload: TypeAlias = bytes | bytearray | memoryview

Publication: TypeAlias = Mapping[str, Any] | tuple[Mapping[str, Any], Payload]
"""What `publish_many` takes: attributes, or attributes and a payload."""

Checked: TypeAlias = tuple[Publish, int]
"""The call, and its size in bytes."""

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
ATTRIBUTE_BYTES = 16
"""What an attribute counts beside its name and its text."""


def check_publication(item: Publication, event_max: int) -> Checked:
    """The call that publishes it, or an `EventError`."""
    attributes, payload = _parts(item)
    size = len(payload) + ATTRIBUTE_BYTES * len(attributes)
    for name, value in attributes.items():
        if type(name) is not str:
            raise EventError(f"attribute {name!r} has a name that is no string")
        size += len(name) if name.isascii() else _bytes_of(name, "the name of an attribute")
        kind = type(value)
        if kind is str:
            size += len(value) if value.isascii() else _bytes_of(value, f"attribute {name!r}")
        elif kind is int:
            if not INT_MIN <= value <= INT_MAX:
                raise EventError(f"attribute {name!r} is {value}, which does not fit into 64 bits")
        elif kind is not float and kind is not bool:
            raise EventError(
                f"attribute {name!r} is a {kind.__name__}; attributes are strings, integers, floats "
                "and booleans (put anything else into the payload)"
            )
    if size > event_max:
        raise EventError(
            f"the event has {size:,} bytes, but {event_max:,} is the limit; make it smaller, or raise event_max "
            "in the network's file"
        )
    return Publish({**attributes}, payload), size


def _parts(item: Any) -> tuple[Mapping[str, Any], bytes]:
    if isinstance(item, tuple):
        if len(item) != 2:
            raise EventError(f"an event is its attributes, or attributes and a payload, but this has {len(item)} parts")
        attributes, payload = item
    else:
        attributes, payload = item, b""
    if type(attributes) is not dict and not isinstance(attributes, Mapping):
        raise EventError(
            f"an event's attributes are a dictionary, such as {{'topic': 'price'}}, but this is {_article(attributes)}"
        )
    if type(payload) is not bytes:
        if not isinstance(payload, bytes | bytearray | memoryview):
            way_out = "; encode it first" if isinstance(payload, str) else ""
            raise EventError(f"a payload is bytes, but this is {_article(payload)}{way_out}")
        payload = bytes(payload)
    return attributes, payload


def _bytes_of(text: str, what: str) -> int:
    half = surrogate_in(text)
    if half:
        raise EventError(
            f"{what} contains {half}, half of a surrogate pair, which cannot be sent; put bytes that are no text into "
            "the payload"
        )
    return len(text.encode())


def _article(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
