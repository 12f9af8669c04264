"""Converts events to JSON lines and back: `gapless sub` prints this format, and `gapless pub` reads it.

`{"publisher": "a", "seq": 7, "position": "p1793280000000000-7-a", "attributes": {"topic": "price"}, "payload": "x"}`:
the position can be passed to `--since`, and is present if the protocol has positions. A payload that is not UTF-8 text
is printed as `payload_base64`. For publishing, attributes and payload are enough, and an object without `attributes` is
taken as the attributes.
"""

import base64
import binascii
import json
from typing import Any

import msgspec

from gapless.errors import EventError
from gapless.events import INTEGER_MAX, INTEGER_MIN, Event
from gapless.printable import printable_json

__all__ = ["event_line", "read_argument", "read_line"]

_encode = msgspec.json.Encoder().encode


def event_line(event: Event) -> bytes:
    """Return the event as one line of JSON, including the line end."""
    document: dict[str, Any] = {"publisher": event.publisher, "seq": event.seq}
    if event.stamp:
        document["position"] = str(event.position)
    document["attributes"] = event.attributes
    if event.payload:
        try:
            document["payload"] = event.payload.decode()
        except UnicodeDecodeError:
            document["payload_base64"] = base64.b64encode(event.payload).decode()
    line = _encode(document)
    if line.isascii() and b"\x7f" not in line:  # JSON escapes characters below the space
        return line + b"\n"
    return printable_json(line.decode()).encode() + b"\n"


def read_argument(text: str, option: str) -> tuple[dict[str, Any], bytes]:
    """Return the attributes and the payload given in a command-line argument."""
    return read_line(text.encode(errors="surrogateescape"), option)


def read_line(line: bytes, place: str) -> tuple[dict[str, Any], bytes]:
    """Return the attributes and the payload in a line of JSON. Raise an `EventError` that names the place."""
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if isinstance(error, msgspec.DecodeError) and _has_half_a_character(line):
            raise EventError(f"{place}: a string contains half of a surrogate pair, which cannot be sent") from None
        raise EventError(f"{place}: this is not JSON: {error}") from None
    except RecursionError:
        raise EventError(f"{place}: the JSON is nested too deeply for an event") from None
    if not isinstance(document, dict):
        raise EventError(f'{place}: an event is a JSON object, such as {{"topic": "price", "amount": 7}}')
    attributes = document.get("attributes", document)
    if not isinstance(attributes, dict):
        raise EventError(f"{place}: attributes must be a JSON object")
    for name, value in attributes.items():
        if not isinstance(value, str | int | float):  # `bool` is a subclass of `int`
            kind = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "null"
            raise EventError(
                f"{place}: attribute {name!r} is {kind}; attributes are strings, integers, floats and "
                "booleans; leave out absent values"
            )
        if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
            raise EventError(
                f"{place}: attribute {name!r} is {value}, which does not fit into a signed 64-bit integer "
                "(-2**63 to 2**63 - 1); publish it as a string"
            )
    if attributes is document:
        return document, b""
    if "payload_base64" in document:
        try:
            return attributes, base64.b64decode(document["payload_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise EventError(f"{place}: payload_base64 is not base64") from None
    payload = document.get("payload", "")
    if not isinstance(payload, str):
        raise EventError(f"{place}: the payload must be a string")
    return attributes, payload.encode()


def _has_half_a_character(line: bytes) -> bool:
    """Return whether the line is JSON with an unpaired surrogate, which the `json` module accepts."""
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False
