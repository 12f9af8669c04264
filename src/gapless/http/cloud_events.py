"""Converts between events and CloudEvents 1.0 over HTTP, in binary, structured and batch mode.

Context attributes become attributes of the same name, so `type = 'com.example.order' AND source = '/shop'` is a filter.
`data` is the payload. `id` and `source` together identify an event, so a retry with both is idempotent.
"""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from gapless.events import Event
from gapless.http.event_json import JSON_TYPE, Draft, checked_id, checked_utf8, decode_base64, event_document
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError

__all__ = ["BATCH_TYPE", "STRUCTURED_TYPE", "binary_draft", "cloud_event_of", "is_binary", "structured_draft"]

STRUCTURED_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"
ATTRIBUTES_MAX = 1_000
_REQUIRED = ("id", "source", "type", "specversion")
_NAME = re.compile(r"[a-z0-9]+", re.ASCII)
_ORIGIN = "gapless://"


def is_binary(headers: Mapping[str, str]) -> bool:
    """Return whether a request contains one event in binary mode."""
    return "ce-specversion" in headers


def binary_draft(headers: Mapping[str, str], body: bytes) -> Draft:
    """Return the event of a request in binary mode."""
    attributes: dict[str, Any] = {name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")}
    if "content-type" in headers:
        attributes["datacontenttype"] = headers["content-type"]
    return _checked(attributes, body)


def structured_draft(document: Mapping[str, msgspec.Raw]) -> Draft:
    """Return the event that a JSON object in structured mode or in a batch describes."""
    if len(document) > ATTRIBUTES_MAX:
        raise ProblemError("invalid-event", f"a CloudEvent has at most {ATTRIBUTES_MAX:,} attributes here")
    members = {name: bytes(value) for name, value in document.items() if bytes(value) != b"null"}
    data, encoded = members.pop("data", None), members.pop("data_base64", None)
    attributes: dict[str, Any] = {}
    for name, value in members.items():
        attributes[name] = decoded(value, Any, f"the attribute {name[:80]!r}")
    if data is not None and encoded is not None:
        raise ProblemError(
            "bad-request", "a CloudEvent has data or data_base64, but this one has both; remove one of them"
        )
    if encoded is not None:
        return _checked(
            attributes, decode_base64(decoded(encoded, str, "data_base64 of a CloudEvent must be a string"))
        )
    if data is None:
        return _checked(attributes, b"")
    content_type = str(attributes.setdefault("datacontenttype", JSON_TYPE))
    if data[:1] == b'"' and "json" not in content_type:
        return _checked(attributes, decoded(data, str, "data").encode())
    return _checked(attributes, checked_utf8(data))


def _checked(attributes: dict[str, Any], payload: bytes) -> Draft:
    for name in _REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise ProblemError("bad-request", f"a CloudEvent needs the context attribute {name!r}, a non-empty string")
    if attributes["specversion"] != "1.0":
        raise ProblemError(
            "bad-request",
            f"specversion is {attributes['specversion']!r}, but this gateway supports only CloudEvents 1.0",
        )
    for name, value in attributes.items():
        if _NAME.fullmatch(name) is None:
            raise ProblemError(
                "bad-request",
                f"{name[:80]!r} is not a valid name of a CloudEvents attribute, which has only a-z and 0-9",
            )
        if not isinstance(value, str | bool | int):
            raise ProblemError(
                "bad-request", f"the CloudEvents attribute {name!r} must be a string, an integer or a boolean"
            )
    return Draft(attributes, payload, checked_id(attributes["id"]), attributes["source"])


def cloud_event_of(event: Event, network: str) -> dict[str, Any]:
    """Return a delivered event as a CloudEvent in structured mode. An event that was not published as one gets the
    required attributes: its id, its publisher as the source, and the type `gapless.event`.
    """
    document = event_document(event)
    named = {name.lower(): value for name, value in event.attributes.items() if _NAME.fullmatch(name.lower())}
    made: dict[str, Any] = {
        "specversion": "1.0", "id": event.id, "source": f"{_ORIGIN}{network}/{event.publisher}",
        "type": "gapless.event",
    }  # fmt: skip
    if "time" in document:
        made["time"] = document["time"]
    made |= {name: value if isinstance(value, str | bool | int) else str(value) for name, value in named.items()}
    if event.stamp:
        made["gaplessposition"] = str(event.position)
    if "text" in document:
        made |= {"data": document["text"]} | ({} if "datacontenttype" in made else {"datacontenttype": "text/plain"})
    return made | {name: document[name] for name in ("data", "data_base64") if name in document}
