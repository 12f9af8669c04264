"""Decodes JSON from outside, or refuses it with a clear message."""

from typing import TypeVar

import msgspec

from gapless.http.problems import ProblemError

__all__ = ["UNREADABLE", "decoded"]

T = TypeVar("T")

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises for malformed JSON, for bytes that are not UTF-8, and for deeply nested arrays."""


def decoded(body: bytes | str, kind: type[T], complaint: str) -> T:
    """Return the document of this type in a body; raise a `ProblemError` that begins with `complaint` if it
    is invalid."""
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProblemError("bad-request", f"{complaint}: {reason}") from None
