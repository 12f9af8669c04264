"""Converts events to JSON and back.

An event has `attributes`, and its payload in one of three members: `data`, any JSON value, if the attribute
`datacontenttype` says that the payload is JSON; `text`, if the payload is UTF-8; `data_base64` otherwise. A delivered
event also has `id` (`publisher:number`), `publisher`, `number`, and, if the protocol supports them, `position` and
`time`.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Any

import msgspec

from gapless.events import Event
from gapless.http.json_body import UNREADABLE
from gapless.http.problems import ProblemError

__all__ = [
    "JSON_TYPE",
    "Draft",
    "JsonEvent",
    "checked_id",
    "checked_utf8",
    "draft_of",
    "event_document",
    "is_json_type",
]

JSON_TYPE = "application/json"
ID_MAX = 1_000


class JsonEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event in a request to publish."""

    attributes: dict[str, str | bool | int | float] = {}
    id: str = ""
    """An identifier that makes a retry idempotent; it becomes the attribute `id`."""
    data: msgspec.Raw = msgspec.Raw()
    text: str | None = None
    data_base64: str | None = None
    causes: list[str] = []
    """Positions of the event's direct causes."""


class Draft(msgspec.Struct, frozen=True):
    """An event that is to be published."""

    attributes: dict[str, Any]
    payload: bytes
    id: str = ""
    """The client's identifier for the event, unique together with `source`. If it is empty, a retry publishes the event
    again."""
    source: str = ""


def draft_of(event: JsonEvent) -> Draft:
    """Return the event to publish. Raise a `ProblemError` if the members of the JSON object contradict each other."""
    parts = {"data": bytes(event.data) or None, "text": event.text, "data_base64": event.data_base64}
    given = [name for name, part in parts.items() if part is not None]
    if len(given) > 1:
        raise ProblemError(
            "bad-request", f"an event has one payload, but this one has {' and '.join(given)}; remove all but one"
        )
    attributes: dict[str, Any] = dict(event.attributes)
    payload = b""
    if bytes(event.data):
        payload = checked_utf8(bytes(event.data))
        attributes.setdefault("datacontenttype", JSON_TYPE)
    elif event.text is not None:
        payload = event.text.encode("utf-8", "surrogatepass")
    elif event.data_base64 is not None:
        payload = decode_base64(event.data_base64)
    own = attributes.get("id", "")
    if event.id and own and own != event.id:
        raise ProblemError("bad-request", f"id is {event.id!r}, but the attribute id is {own!r}; remove one of them")
    if event.id:
        attributes["id"] = checked_id(event.id)
    if event.causes:
        attributes["causes"] = " ".join(event.causes)
    source = attributes.get("source", "")
    return Draft(attributes, payload, event.id, source if isinstance(source, str) else "")


def checked_id(name: str) -> str:
    """Return an identifier of an event. Raise a `ProblemError` if it is too long for a filter."""
    if len(name) > ID_MAX:
        raise ProblemError("bad-request", f"an id has at most {ID_MAX:,} characters, but this one has {len(name):,}")
    return name


def checked_utf8(data: bytes) -> bytes:
    """Return the bytes of a JSON value. Raise a `ProblemError` if they are not UTF-8, which msgspec does not check."""
    try:
        data.decode()
    except UnicodeDecodeError:
        raise ProblemError(
            "bad-request", "data is not UTF-8, which JSON requires; send other bytes as data_base64"
        ) from None
    return data


def decode_base64(text: str) -> bytes:
    """Return the decoded bytes. Raise a `ProblemError` if the text is not base64."""
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise ProblemError(
            "bad-request", "data_base64 is not base64; encode the payload with the standard alphabet"
        ) from None


def is_json_type(content_type: object) -> bool:
    """Return whether a media type is JSON."""
    if not isinstance(content_type, str):
        return False
    kind = content_type.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or kind.endswith("+json")


def event_document(event: Event) -> dict[str, Any]:
    """Return a delivered event as a JSON object."""
    document: dict[str, Any] = {"id": event.id, "publisher": event.publisher, "number": event.seq}
    if event.stamp:
        document["position"] = str(event.position)
        document["time"] = event.position.time.isoformat(timespec="microseconds").replace("+00:00", "Z")
    document["attributes"] = event.attributes
    if getattr(event, "redelivered", False):
        document["redelivered"] = True
    return document | _payload(event)


def _payload(event: Event) -> dict[str, Any]:
    if not event.payload:
        return {}
    if is_json_type(event.attributes.get("datacontenttype")):
        try:
            msgspec.json.decode(event.payload, type=msgspec.Raw)
            event.payload.decode()
            return {"data": msgspec.Raw(event.payload.replace(b"\n", b" ").replace(b"\r", b" "))}
        except UNREADABLE:
            pass
    try:
        return {"text": event.payload.decode()}
    except UnicodeDecodeError:
        return {"data_base64": b64encode(event.payload).decode()}
