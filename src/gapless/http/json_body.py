"""Decodes JSON from untrusted peers, or refuses it with a clear message."""

from typing import TypeVar

import msgspec

from gapless.http.problems import ProblemError

__all__ = ["UNREADABLE", "decoded"]

T = TypeVar("T")

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that msgspec raises for malformed JSON, for bytes that are not UTF-8, and for deeply nested arrays."""


def decoded(body: bytes | str, kind: type[T], complaint: str) -> T:
    """Return the body decoded as this type. If that fails, raise a `ProblemError` that begins with `complaint`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProblemError("bad-request", f"{complaint}: {reason}") from None
