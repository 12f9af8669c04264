"""Functions that check the arguments of public calls before any of them has an effect.

An invalid argument raises an error for the caller here. The node, the encoder and the event loop only see valid values.
"""

import os
from math import isnan
from pathlib import Path
from reprlib import Repr

from gapless.errors import CallError
from gapless.printable import name_complaint

__all__ = [
    "check_choice",
    "check_count",
    "check_flag",
    "check_kind",
    "check_name",
    "check_named",
    "check_path",
    "check_seconds",
    "check_span",
    "check_text",
    "check_timeout",
    "kind_of",
    "shown",
    "surrogate_in",
]  # fmt: skip

NAME_MAX = 150
"""The maximum length of a client's name in characters. A suffix is added, and a broker accepts 200."""


_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


def shown(value: object) -> str:
    """Return the value as source code, truncated if the text is long."""
    return _short.repr(value)


def surrogate_in(text: str) -> str:
    """Return the first lone surrogate in the text as source code, or an empty string if there is none.

    Python has such strings (`os.fsdecode` creates them from bytes that are not text), but they cannot be encoded.
    """
    if text.isascii():
        return ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return ascii(text[error.start])
    return ""


def check_text(what: str, value: object) -> str:
    """Return the text, or raise an error if it is not a string or cannot be encoded as UTF-8."""
    if not isinstance(value, str):
        raise CallError(f"{what} must be text, but is {kind_of(value)}")
    half = surrogate_in(value)
    if half:
        raise CallError(f"{what} contains {half}, half of a surrogate pair, which cannot be sent; remove it")
    return str(value)


def check_name(value: object) -> str:
    """Return the first part of a client's name, or raise an error if it is invalid."""
    name = check_text("a client's name", value)
    return check_named("a client's name", name, NAME_MAX)


def check_named(what: str, name: str, most: int) -> str:
    """Return the name, or raise an error if it is empty, longer than `most` characters or unprintable."""
    complaint = name_complaint(what, name, most)
    if complaint:
        raise CallError(complaint)
    return name


def check_flag(what: str, value: object) -> bool:
    """Return the value, or raise an error if it is not a bool."""
    if not isinstance(value, bool):
        raise CallError(f"{what} must be True or False, but is {kind_of(value)}")
    return value


def check_kind(what: str, value: object, kind: type, made_by: str) -> None:
    """Raise an error unless the value is of class `kind`; the message names the call that returns such objects."""
    if not isinstance(value, kind):
        raise CallError(f"{what} must be an object that {made_by} returned, but is {kind_of(value)}")


def check_path(what: str, value: object) -> Path:
    """Return the value as a `Path`, or raise an error if it is not a path of the file system."""
    if not isinstance(value, str | os.PathLike):
        raise CallError(f"{what} must be a path, but is {kind_of(value)}")
    path = os.fspath(value)
    if not isinstance(path, str) or "\0" in path or surrogate_in(path):
        raise CallError(f"{what} is {shown(path)}, which is not a path")
    return Path(path)


def check_timeout(value: object) -> float | None:
    """Return the timeout in seconds, or None for no limit; raise an error if it is invalid."""
    return None if value is None else check_seconds(value)


def check_seconds(value: object) -> float:
    """Return a timeout of 0 or more seconds, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallError(f"timeout_s must be a number of seconds, but is {kind_of(value)}")
    if isnan(value) or value < 0:
        raise CallError(f"timeout_s must be 0 or more, but is {value:g}")
    return float(value)


def check_span(what: str, value: object, least: float, most: float) -> float:
    """Return a number of seconds between `least` and `most`, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallError(f"{what} must be a number of seconds, not of type {type(value).__name__}")
    if not least <= value <= most:
        raise CallError(f"{what} must be between {least:g} s and {most:,.0f} s, but is {value:g}")
    return float(value)


def check_count(what: str, value: object) -> int:
    """Return a count of at least 1, or raise an error."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise CallError(f"{what} must be a whole number, but is {kind_of(value)}")
    if value < 1:
        raise CallError(f"{what} must be positive, but is {value}")
    return value


def check_choice(what: str, value: object, choices: tuple[str, ...]) -> None:
    """Return the value if it is one of these words; otherwise raise an error."""
    if value not in choices:
        raise CallError(f"{what} is {' or '.join(map(repr, choices))}, not {shown(value)}")


def kind_of(value: object) -> str:
    """Return a phrase that names the type of the value, for error messages."""
    return "None" if value is None else f"of type {type(value).__name__}"
