"""Converts attributes to JSON text and back, without losing a value.

Equal attributes give equal texts: keys are sorted, and there are no spaces. JSON lacks NaN and
infinities: they are written as `NaN`, `Infinity` and `-Infinity`, which Python's and Spark's JSON
readers accept.
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
    """Return an event's attributes as JSON text."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in attributes.values()):
        return json.dumps(attributes, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _ENCODER.encode(attributes).decode()


def attributes_from_text(text: str) -> Attributes:
    """Return the attributes in a JSON text. Raise an error if it is not an object of attribute values."""
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
