"""Parses the notations of positions: words, times, ages and texts of positions.

A position is a place in the stream of all events (see `gapless.positions`). It includes everything before it, with all
causes. It can be given as

- the word `earliest`: the beginning of history; the word `now`: the newest confirmed event at this time;
- a position: `event.position`, `subscription.position`, `await client.position()`, or its text, "p1793280000000000";
- a time: a `datetime`, or as text, "2026-11-16 10:32"; without a zone it is local time;
- an age: a `timedelta`, or as text: "90s", "10m", "2h", "7d".

The result does not depend on the clock of the local machine: ages are subtracted from the newest position, which a
broker knows, and a time after that is in the future. Programs and commands share this parser.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from gapless.client.arguments import kind_of, shown
from gapless.errors import CallError
from gapless.positions import Position

__all__ = ["EARLIEST", "Moment", "Since", "moment_of"]

Since: TypeAlias = str | Position | datetime | timedelta
"""A position, a time, an age, "earliest" or "now", as above."""

EARLIEST = Position.at(0)
"""The position of the word "earliest", which precedes all events."""

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?([smhd])")
_AHEAD_US = 60_000_000
"""How far a time can exceed the newest position, because clocks differ."""


@dataclass(frozen=True)
class Moment:
    """A parsed argument: a position, a time or an age. Exactly one of the three is set."""

    what: str
    """The name of the parameter and its value, for error messages."""
    written: object
    exactly: Position | None = None
    at_us: int | None = None
    """A time, in microseconds since 1970."""
    age_us: int | None = None
    """An age in microseconds, which is subtracted from the newest position."""

    @property
    def is_now(self) -> bool:
        """Return whether the argument denotes the newest position."""
        return self.age_us == 0

    @property
    def needs_clock(self) -> bool:
        """Return whether the newest position must be known to compute this one."""
        return self.exactly is None

    def position(self, newest: int) -> Position:
        """Return the denoted position, given the timestamp of the newest one."""
        if self.exactly is not None:
            return self.exactly
        if self.age_us is not None:
            timestamp = newest - self.age_us
        else:
            assert self.at_us is not None
            timestamp = self.at_us
        if timestamp < 0:
            raise _before_all(self.what, self.written)
        if timestamp > newest + _AHEAD_US:
            now = datetime.fromtimestamp(newest / 1e6, UTC).isoformat(timespec="seconds")
            raise CallError(
                f"{self.what} is {shown(self.written)}, which is in the future: the network's clock says {now}"
            )
        return Position.at(timestamp)


def moment_of(what: str, value: Since) -> Moment:
    """Parse the argument. `what` names it in error messages."""
    value = value.strip() if isinstance(value, str) else value
    if value == "earliest":
        return Moment(what, value, exactly=EARLIEST)
    if value == "now":
        return Moment(what, value, age_us=0)
    if not isinstance(value, str | Position | datetime | timedelta):
        raise CallError(f"{what} must be a position, a time, an age, 'earliest' or 'now', but is {kind_of(value)}")
    if isinstance(value, Position):
        return Moment(what, value, exactly=value)
    if isinstance(value, timedelta):
        return Moment(what, value, age_us=_age_us(what, value))
    if isinstance(value, datetime):
        return Moment(what, value, at_us=_time_us(value))
    if re.match(r"p\d", value):
        return Moment(what, value, exactly=_position_of(what, value))
    age = _AGE.fullmatch(value)
    if age is not None:
        return Moment(what, value, age_us=int(float(age[1]) * _UNITS[age[2]] * 1e6))
    try:
        return Moment(what, value, at_us=_time_us(datetime.fromisoformat(value)))
    except ValueError:
        raise CallError(
            f"{what} is {shown(value)}, which is not a position; write 'earliest', 'now', an age such as '10m', a time "
            "such as '2026-11-16 10:32', or the text of a position, such as 'p1793280000000000'"
        ) from None


def _position_of(what: str, text: str) -> Position:
    try:
        return Position(text)
    except ValueError as error:
        raise CallError(f"{what}: {error}") from None


def _before_all(what: str, value: object) -> CallError:
    return CallError(
        f"{what} is {shown(value)}, which precedes all positions; write 'earliest' for all existing events"
    )


def _age_us(what: str, value: timedelta) -> int:
    if value < timedelta():
        raise CallError(
            f"{what} is an age of {value.total_seconds():g} s; an age must be positive, such as timedelta(hours=1)"
        )
    return value // timedelta(microseconds=1)


def _time_us(value: datetime) -> int:
    try:
        return int(value.timestamp() * 1e6)
    except (ValueError, OverflowError, OSError):  # time zones overflow at the ends of the calendar
        return -1 if value.year < 1970 else 1 << 62
