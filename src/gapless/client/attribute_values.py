"""Converts attribute values of types such as `datetime` and `Decimal` to strings, integers, floats and booleans.

Attributes are strings, integers, floats and booleans, and filters compare only these. Some other values correspond to
one of them in exactly one obvious way, and are converted when they are published:

| value | attribute |
| --- | --- |
| an enumeration's member | its value, converted |
| `datetime` with a zone | text in UTC, always with microseconds: `2026-11-16T10:32:00.000000Z` |
| `datetime` without a zone | the same text without the `Z`; no zone is assumed |
| `date`, `time`, `timedelta`, `UUID` | text: `2026-11-16`, `10:32:00`, `PT5S`, `12345678-1234-…` |
| `Decimal` | the float with the same digits; refused if there is none |
| numpy's integers, floats, booleans and strings | the same type of Python |
| a subclass of `str`, `int` or `float` | the plain `str`, `int` or `float` |

Times of one kind have texts of one width, so sorting them as text sorts them by time. Nothing is rounded or guessed:
every other value is refused with an error. Fields of these types in `type=` convert the attribute back.

numpy is never imported: a numpy value can only come from a program that has imported it.
"""

import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from gapless.errors import EventError
from gapless.events import Attributes, AttributeValue

__all__ = ["is_convertible", "plain_attributes"]

_PLAIN = (str, int, float, bool)


def plain_attributes(attributes: Mapping[Any, Any]) -> Attributes:
    """Return the attributes with all values converted. Raise an `EventError` that names the first one that
    cannot be.
    """
    return {name: value if type(value) in _PLAIN else _plain(name, value) for name, value in attributes.items()}


def is_convertible(value: object) -> bool:
    """Return whether the value is of an attribute type or can be converted to one."""
    numpy = sys.modules.get("numpy")
    is_number = numpy is not None and isinstance(value, numpy.generic)
    return value is None or is_number or isinstance(value, _PLAIN) or any(isinstance(value, k) for k, _ in _CONVERSIONS)


def _plain(name: object, value: Any) -> AttributeValue:
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(name, value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        found = value.item()
        if type(found) in _PLAIN:
            return found  # type: ignore[no-any-return]
    raise EventError(
        f"attribute {name!r} is of type {type(value).__name__}; attributes are strings, integers, floats and booleans, "
        "or values that convert to them, such as datetime, Decimal, UUID and enumerations (put anything else into the "
        "payload)"
    )


def _enumeration(name: object, value: Enum) -> AttributeValue:
    inner = value.value
    return inner if type(inner) in _PLAIN else _plain(name, inner)


def _moment(name: object, value: datetime) -> str:
    if value != value:  # pandas' NaT, for example
        raise EventError(f"attribute {name!r} is {value}, which is not a time; leave it out")
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _decimal(name: object, value: Decimal) -> float:
    if not value.is_nan():
        found = float(value)
        if Decimal(repr(found)) == value:
            return found
    raise EventError(
        f"attribute {name!r} is Decimal('{value}'), which no float represents exactly; round it, or publish "
        "str(value), "
        "which filters compare as text"
    )


def _in_words(name: object, value: Any) -> str:
    return str(msgspec.to_builtins(value))


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[object, Any], AttributeValue]], ...] = (
    (Enum, _enumeration),
    (datetime, _moment),
    ((date, time, timedelta, UUID), _in_words),
    (Decimal, _decimal),
    (str, lambda _, value: str.__str__(value)),
    (int, lambda _, value: int.__index__(value)),
    (float, lambda _, value: float.__float__(value)),
)
"""The conversion for each type; the first matching entry is used."""
