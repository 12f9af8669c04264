"""Positions: places in the stream of all events of a network, from which any program can continue later.

Brokers give each publication a timestamp that is larger than the timestamps of all its causes. Events are ordered by
timestamp, publisher and number, so effects come after their causes. A position is a place in that order, in one of two
forms:

- *after an event* (`event.position`): everything up to and including this event;
- *network-wide* (`client.position()`): everything with that timestamp, or an earlier one.

As text it is short, needs no quotes in a shell and no escapes in a URL, and is unique: `p1793280000000000` is
network-wide, `p1793280000000000-17-orders-1a2b` is after event 17 of publisher `orders-1a2b`. Characters of a
publisher's name other than letters, digits, `-`, `.` and `_` are written as `~` and two hexadecimal digits for each
byte of UTF-8.
"""

import re
from datetime import UTC, datetime
from functools import total_ordering
from typing import Any, NamedTuple, Self

__all__ = ["NO_EVENTS", "TIMESTAMP_MAX", "Position", "Volume"]

TIMESTAMP_MAX = 1 << 53
"""The largest timestamp, in microseconds since 1970: the year 2255."""
_NUMBER_MAX = 1 << 53
_TEXT = re.compile(r"p(0|[1-9][0-9]{0,15})(?:-([1-9][0-9]{0,15})-([A-Za-z0-9._~-]+))?")
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._")
_SHOWN_MAX = 80


class Volume(NamedTuple):
    """A number of events, and the size of their attributes and payloads in bytes."""

    events: int = 0
    size: int = 0

    def plus(self, events: int, size: int) -> "Volume":
        """Return the volume together with further events of this size."""
        return Volume(self.events + events, self.size + size)

    def exceeds(self, limit: "Volume") -> bool:
        """Return whether the volume exceeds a limit. A 0 in the limit means no limit."""
        return 0 < limit.events < self.events or 0 < limit.size < self.size


NO_EVENTS = Volume()


@total_ordering
class Position:
    """A place in the stream of events, created from its text, `Position("p1793280000000000")`, and printed as that.

    Positions can be compared, hashed and pickled. Invalid text raises a `ValueError`.
    """

    __slots__ = ("_place",)

    _place: tuple[int, bool, str, int]
    """The timestamp, whether the position is network-wide, the publisher and the number: the sort key of positions."""

    def __init__(self, text: str) -> None:
        found = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        publisher = None if found is None or found[3] is None else _unescaped(found[3])
        if found is None or (found[3] is not None and publisher is None):
            raise ValueError(_complaint(text))
        timestamp, number = int(found[1]), int(found[2] or 0)
        if timestamp > TIMESTAMP_MAX or number > _NUMBER_MAX:
            raise ValueError(f"{text.strip()!r} is not a position: its numbers go up to {TIMESTAMP_MAX}")
        self._place = (timestamp, publisher is None, publisher or "", number)

    @classmethod
    def at(cls, timestamp: int) -> Self:
        """Return the network-wide position of a timestamp.

        Parameters:
            timestamp: microseconds since 1970, by the clock of the network.

        Example: `Position.at(1793280000000000)`
        """
        return cls._of((timestamp, True, "", 0))

    @classmethod
    def after(cls, timestamp: int, publisher: str, number: int) -> Self:
        """Return the position after an event; `event.position` is the same.

        Parameters:
            timestamp: of the event.
            publisher: of the event.
            number: of the event.

        Example: `Position.after(event.stamp, event.publisher, event.seq)`
        """
        return cls._of((timestamp, False, publisher, number))

    @classmethod
    def _of(cls, place: tuple[int, bool, str, int]) -> Self:
        made = cls.__new__(cls)
        made._place = place
        return made

    @property
    def timestamp(self) -> int:
        """Microseconds since 1970, by the clock of the network."""
        return self._place[0]

    @property
    def is_network_wide(self) -> bool:
        """Whether the position includes all events with its timestamp. Otherwise it is after one event."""
        return self._place[1]

    @property
    def publisher(self) -> str:
        """The publisher of the event before the position, or an empty string if it is network-wide."""
        return self._place[2]

    @property
    def number(self) -> int:
        """The number of the event before the position, or 0 if it is network-wide."""
        return self._place[3]

    @property
    def time(self) -> datetime:
        """The timestamp as a `datetime` in UTC."""
        return datetime.fromtimestamp(self._place[0] / 1e6, UTC)

    @property
    def floor(self) -> int:
        """The largest timestamp up to which the position includes all events."""
        return self._place[0] if self._place[1] else self._place[0] - 1

    def __str__(self) -> str:
        timestamp, is_network_wide, publisher, number = self._place
        return f"p{timestamp}" if is_network_wide else f"p{timestamp}-{number}-{_escaped(publisher)}"

    def __repr__(self) -> str:
        return f"Position({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self._place == other._place if isinstance(other, Position) else NotImplemented

    def __lt__(self, other: "Position") -> bool:
        return self._place < other._place if isinstance(other, Position) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._place)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._place,)


def _escaped(name: str) -> str:
    if name.isascii() and name.replace("-", "").isalnum():
        return name
    return "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in name.encode())


def _unescaped(text: str) -> str | None:
    """Return the unescaped name, or None if the text is not an escaped name."""
    first, *rest = text.split("~")
    try:
        raw = b"".join([first.encode(), *(bytes.fromhex(part[:2]) + part[2:].encode() for part in rest)])
        name = raw.decode()
    except ValueError:
        return None
    return name if _escaped(name) == text else None


def _complaint(text: object) -> str:
    shown = repr(text)
    shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"
    if isinstance(text, str) and text.strip().isdecimal():
        return f"{shown} is not a position: a position begins with the letter p, such as 'p1793280000000000'"
    return (
        f"{shown} is not a position: copy the whole text of one, such as 'p1793280000000000' or "
        "'p1793280000000000-17-orders-1a2b'"
    )
