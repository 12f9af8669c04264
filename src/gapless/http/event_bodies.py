"""Decodes the events in the body of a request: JSON, or CloudEvents 1.0 in any of its three modes.

A malicious body of 2 MiB can contain hundreds of thousands of tiny events, attributes or arrays, and decoding it at
once would hold the event loop for a second. So the events of an array are counted before they are decoded, each has a
bounded size, and other tasks run between them.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from gapless.http.cloud_events import BATCH_TYPE, STRUCTURED_TYPE, binary_draft, is_binary, structured_draft
from gapless.http.event_json import Draft, JsonEvent, draft_of, is_json_type
from gapless.http.json_body import decoded
from gapless.http.problems import ProblemError

__all__ = ["EVENTS_MAX", "JSON_SIZE", "drafts_of"]

EVENTS_MAX = 1_000
JSON_SIZE = 4
"""The maximum size of an event's JSON relative to the largest event: escapes and base64 are longer than bytes."""
TURN_BYTES = 32 * 1024
"""The number of bytes decoded in one turn of the event loop, unless one event is larger."""


_counts = {"left": 0}


class _Counted(msgspec.Struct):
    """Counts the objects that msgspec decodes, and raises an error to stop it at the limit."""

    def __post_init__(self) -> None:
        _counts["left"] -= 1
        if _counts["left"] < 0:
            raise ValueError("too many")


async def drafts_of(headers: Mapping[str, str], body: bytes, event_max: int) -> tuple[list[Draft], bool]:
    """Return the events in a body, and whether the response must be an array."""
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if is_binary(headers):
        return [binary_draft(headers, body)], False
    if content_type == STRUCTURED_TYPE:
        return await _each([body], _structured, event_max), False
    if content_type == BATCH_TYPE:
        return await _each(
            _parts(body, "a batch of CloudEvents must be a JSON array of objects"), _structured, event_max
        ), True
    if not is_json_type(content_type):
        raise ProblemError(
            "unsupported-type",
            f"the content type is {content_type or 'missing'}; send application/json, {STRUCTURED_TYPE}, {BATCH_TYPE}, "
            "or a CloudEvent in binary mode (ce- headers)",
        )
    if body.lstrip()[:1] == b"[":
        return await _each(_parts(body, "the body is not an event"), _plain, event_max), True
    return await _each([body], _plain, event_max), False


def _plain(part: bytes) -> Draft:
    return draft_of(decoded(part, JsonEvent, "the body is not an event"))


def _structured(part: bytes) -> Draft:
    return structured_draft(decoded(part, dict[str, msgspec.Raw], "the body is not a CloudEvent"))


async def _each(parts: list[bytes], read: Callable[[bytes], Draft], event_max: int) -> list[Draft]:
    drafts: list[Draft] = []
    size = 0
    for part in parts:
        if len(part) > JSON_SIZE * event_max:
            raise ProblemError(
                "invalid-event",
                f"an event has {len(part):,} bytes of JSON, but {event_max:,} bytes is the limit of events",
            )
        if drafts and size + len(part) > TURN_BYTES:
            await asyncio.sleep(0)
            size = 0
        drafts.append(read(part))
        size += len(part)
    return drafts


def _parts(body: bytes, complaint: str) -> list[bytes]:
    """Return the elements of a JSON array as bytes. Raise a `ProblemError` if there are too many."""
    _counts["left"] = EVENTS_MAX
    try:
        decoded(body, list[_Counted], complaint)
    except ProblemError:
        if _counts["left"] >= 0:
            raise
        raise ProblemError(
            "too-large", f"a body contains at most {EVENTS_MAX:,} events; send several requests"
        ) from None
    parts = decoded(body, list[msgspec.Raw], complaint)
    if not parts:
        raise ProblemError("bad-request", "the array contains no event")
    return [bytes(part) for part in parts]
