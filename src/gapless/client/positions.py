"""From which position on, and up to which: what people write, as positions.

A position is a number, the same for the whole network: microseconds since 1970, as brokers count them. It stands for
everything that was admitted up to it, with all its causes. People write it as

- the word `earliest`: everything that there is; the word `now`: what is published, and confirmed, up to this moment;
- a position: `event.position`, `subscription.position`, `await client.position()`, or the same in digits;
- a time: a `datetime`, or as text, "2026-11-16 10:32"; without a zone it is local time;
- an age: a `timedelta`, or as text: "90s", "10m", "2h", "7d".

Programs and commands write it alike: this is the one place that reads it.
"""

import re
import time
from datetime import datetime, timedelta
from typing import TypeAlias

from gapless.client.arguments import kind_of, shown
from gapless.errors import CallError

__all__ = ["NOW", "Since", "position_of"]

Since: TypeAlias = str | int | datetime | timedelta
"""A position, a time, an age, "earliest" or "now", as above."""

NOW = -1
"""For "now": brokers know which position that is."""

_WORDS = {"earliest": 0, "now": NOW}
_DIGITS = re.compile("[0-9]{1,30}")
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([smhd])")
_AHEAD_S = 3_600
"""How far ahead of this clock a position may lie: the clocks of brokers may differ from it."""


def position_of(what: str, value: Since) -> int:
    """The position that is meant, or `NOW`; `what` names it in a complaint."""
    if isinstance(value, bool) or not isinstance(value, str | int | datetime | timedelta):
        raise CallError(f"{what} is a position, a time, an age, 'earliest' or 'now', but this is {kind_of(value)}")
    if isinstance(value, str):
        value = value.strip()
        if value in _WORDS:
            return _WORDS[value]
        if _DIGITS.fullmatch(value):
            value = int(value)
    position = value if isinstance(value, int) else int(_seconds(what, value) * 1e6)
    if position < 0:
        raise CallError(f"{what} is {shown(value)}, which lies before all positions; 'earliest' is everything there is")
    if position > (time.time() + _AHEAD_S) * 1e6:
        raise CallError(f"{what} is {shown(value)}, which lies in the future: nothing is there yet")
    return position


def _seconds(what: str, value: str | datetime | timedelta) -> float:
    if isinstance(value, timedelta):
        if value < timedelta():
            raise CallError(f"{what} is {shown(value)}, a negative age, which lies in the future: nothing is there yet")
        return time.time() - value.total_seconds()
    if isinstance(value, datetime):
        return _timestamp(value)
    age = _AGE.fullmatch(value)
    if age is not None:
        return time.time() - float(age[1]) * _UNITS[age[2]]
    try:
        return _timestamp(datetime.fromisoformat(value))
    except ValueError:
        raise CallError(
            f"{what} is {shown(value)}, which is no position; write 'earliest', 'now', an age such as '10m', or a time "
            "such as '2026-11-16 10:32'"
        ) from None


def _timestamp(value: datetime) -> float:
    try:
        return value.timestamp()
    except (ValueError, OverflowError, OSError):  # at the ends of the calendar, where zones have no room
        return -1.0 if value.year < 1970 else float("inf")
