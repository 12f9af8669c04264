"""Reads TOML files written by people, with errors that name the place and say what to do.

Keys are checked first, because a misspelt key deserves a better message than "unknown field"; then msgspec checks types
and ranges. Each function raises the given error class, without the name of the file.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

__all__ = ["check_keys", "convert", "hint", "parse_toml", "read_text", "rows_of", "with_place"]

T = TypeVar("T")


def read_text(path: str | Path, error: type[Exception]) -> str:
    """Return the text of the file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as failure:
        raise error(f"cannot be read: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise error("cannot be read: it is not UTF-8 text") from None


def parse_toml(text: str, error: type[Exception]) -> dict[str, Any]:
    """Return the document of the text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as failure:
        raise error(f"this is not TOML: {failure}") from None


def rows_of(document: Mapping[str, Any], key: str, error: type[Exception]) -> list[Mapping[str, Any]]:
    """Return the tables under a key that can occur several times."""
    rows = document.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise error(f"{key}: write each one as a table that starts with [[{key}]]")
    return rows


def check_keys(place: str, table: object, known: Iterable[str], error: type[Exception]) -> None:
    """Raise an error for an unknown key. Values that are not tables are left to msgspec."""
    choices = list(known)
    for key in table if isinstance(table, Mapping) else ():
        if key not in choices:
            where = f"{place}.{key}" if place else key
            raise error(f"{where}: there is no such key; {hint(key, choices)}")


def convert(document: Mapping[str, Any], kind: type[T], error: type[Exception]) -> T:
    """Return the document as a value of this type."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as failure:
        raise error(with_place(str(failure))) from None


def hint(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelt word."""
    choices = list(known)
    close = get_close_matches(word, choices, 1)
    return f"did you mean {close[0]!r}?" if close else f"the choices are: {', '.join(choices)}"


def with_place(message: str) -> str:
    """Return msgspec's message, beginning with the place, in the notation of the project."""
    found = re.fullmatch(r"(.*) - at `(?:key in )?\$\.?(.*)`", message, re.DOTALL)
    sentence, place = found.groups() if found else (message, "")
    sentence = sentence.replace("Object missing required field", "needs a value for").replace("`", "'")
    return f"{place}: {sentence}" if place else sentence
