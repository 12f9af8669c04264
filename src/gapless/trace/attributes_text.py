"""Attributes as JSON text, and back, without losing a value.

Two equal attribute sets give the same text: keys are sorted, no spaces. JSON has no NaN and no infinities, though
floats do: they are written `NaN`, `Infinity` and `-Infinity`, which Python's and Spark's JSON readers both take.
"""

import json
import math

import msgspec

from gapless.errors import TraceError
from gapless.events import Attributes

__all__ = ["attributes_from_text", "attributes_to_text"]

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(Attributes)


def attributes_to_text(attributes: Attributes) -> str:
    """The JSON text of an event's attributes."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in attributes.values()):
        return json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _ENCODER.encode(attributes).decode()


def attributes_from_text(text: str) -> Attributes:
    """The attributes that a JSON text holds."""
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError:
        return _with_odd_floats(text)


def _with_odd_floats(text: str) -> Attributes:
    try:
        return msgspec.convert(json.loads(text), Attributes)
    except (ValueError, msgspec.ValidationError) as error:
        raise TraceError(
            f"the attributes {text!r} are not a JSON object of strings, numbers and booleans: {error}"
        ) from None
