"""JSON that comes from outside: decoded, or refused with a sentence."""

from typing import TypeVar

import msgspec

from gapless.http.problems import ProblemError

__all__ = ["UNREADABLE", "decoded"]

T = TypeVar("T")

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""msgspec raises these: for malformed JSON, for bytes that are no UTF-8, and for arrays within arrays within arrays."""


def decoded(body: bytes | str, kind: type[T], complaint: str) -> T:
    """The document of this type in a body; a `ProblemError` that begins with the complaint if there is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except UNREADABLE as error:
        reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        raise ProblemError("bad-request", f"{complaint}: {reason}") from None
