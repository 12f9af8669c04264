"""The place where a stream of events stopped, as text. It is the id of a server-sent event, for an exact
`Last-Event-ID`.

History arrives in the order of positions, so the position of the last event is enough. Live events arrive in causal
order, which is not that of positions: an event with a smaller position may still follow. So a cursor is a position up
to which everything was sent, and for each publisher the last event that was sent beyond it:
`p1793280000000000!orders-1a2b:17:2040`, with the number of the event and the distance of its timestamp from the
position in microseconds. Each publisher's events arrive in order, so a resumed stream reads history from the position
on and skips the events covered by these numbers: no gap and no duplicate.

A live subscription reports a few times a second the position up to which everything was delivered, so the list stays
short.
"""

from typing import Self
from urllib.parse import quote, unquote

from gapless.errors import CallError
from gapless.events import Event
from gapless.positions import Position

__all__ = ["PUBLISHERS_MAX", "Cursor"]

PUBLISHERS_MAX = 500
"""The maximum number of publishers in a cursor. A stream with more of them ends instead of losing its place."""


class Cursor:
    """The place up to which one stream has sent events."""

    def __init__(self, position: Position, sent: dict[str, tuple[int, int]] | None = None) -> None:
        self.position = position
        """The position up to which all events were sent."""
        self._sent = sent or {}
        """For each publisher, the number and timestamp of the last event sent after the position."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the cursor that the text denotes. The text of a position is valid, too."""
        place, _, rest = text.strip().partition("!")
        try:
            position = Position(place)
            sent = {}
            for part in rest.split(",") if rest else ():
                publisher, number, after = part.rsplit(":", 2)
                sent[unquote(publisher)] = (int(number), position.timestamp + int(after))
        except ValueError as error:
            reason = str(error) if not rest else f"{text[:80]!r} is not the id of an event of this gateway"
            raise CallError(f"{reason}; send the last id unchanged, or leave it out") from None
        return cls(position, sent)

    def __str__(self) -> str:
        if not self._sent:
            return str(self.position)
        begin = self.position.timestamp
        parts = [f"{quote(name, safe='')}:{number}:{stamp - begin}" for name, (number, stamp) in self._sent.items()]
        return f"{self.position}!{','.join(parts)}"

    @property
    def publishers(self) -> int:
        """Return the number of publishers in the cursor."""
        return len(self._sent)

    def covers(self, event: Event) -> bool:
        """Return whether the stream has sent this event."""
        last = self._sent.get(event.publisher)
        return event.position <= self.position or (last is not None and event.seq <= last[0])

    def send(self, event: Event) -> None:
        """Record that the stream has sent this live event."""
        self._sent[event.publisher] = (event.seq, event.stamp)

    def advance(self, position: Position) -> None:
        """Record that the stream has sent all events up to this position."""
        if position <= self.position:
            return
        self.position = position
        floor = position.floor
        self._sent = {
            name: last for name, last in self._sent.items() if last[1] > floor and not _is_at(position, name, last)
        }


def _is_at(position: Position, name: str, last: tuple[int, int]) -> bool:
    """Return whether the position is directly after the given event of a publisher."""
    return not position.is_network_wide and position.publisher == name and last[0] <= position.number
