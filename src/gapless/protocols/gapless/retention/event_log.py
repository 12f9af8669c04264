"""What a broker has processed and nobody has proved delivered everywhere, in the order of processing.

It is what the broker contributes to a hand-over. Waves cut it; what lies before a cut that is done is dropped.
"""

from collections import deque
from collections.abc import Callable

import msgspec

from gapless.events import Event
from gapless.protocols.gapless.messages import Cuts, LogEntry

__all__ = ["EventLog", "Logged"]


class Logged(msgspec.Struct, frozen=True, gc=False):
    """An event, where it came from (`via`: a neighbour in the full tree), and what the log's owner must know of it."""

    event: Event
    via: str
    number: int = 0
    """Its number in the journal of this broker, if it was admitted here."""
    after: Cuts | None = None
    """For what came out of a merged log: see `messages.LogEntry`."""


class EventLog:
    """An ordered log with cuts."""

    def __init__(self) -> None:
        self._entries: deque[Logged] = deque()
        self._dropped = 0
        self._cuts: deque[tuple[int, int]] = deque()
        self._numbers: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> int:
        """The place of the first entry that is kept. Places only grow."""
        return self._dropped

    @property
    def end(self) -> int:
        """The place of the next entry."""
        return self._dropped + len(self._entries)

    def append(self, entry: Logged) -> None:
        """Another event was processed."""
        self._entries.append(entry)
        if entry.number:
            self._numbers.add(entry.number)

    def places(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Where each event stands, by publisher and number, and its number in the journal of this broker, or 0."""
        return {
            (entry.event.publisher, entry.event.seq): (place, entry.number)
            for place, entry in enumerate(self._entries, self._dropped)
        }

    def number(self, place: int, number: int) -> None:
        """The event that stands there is in the journal of this broker now."""
        place -= self._dropped
        self._entries[place] = msgspec.structs.replace(self._entries[place], number=number)
        self._numbers.add(number)

    def has_number(self, number: int) -> bool:
        """Whether an event of that journal number is still kept."""
        return number in self._numbers

    def publishers(self) -> set[str]:
        """Of whom something is kept."""
        return {entry.event.publisher for entry in self._entries}

    def cut(self, wave: int) -> None:
        """The wave came by."""
        self._cuts.append((wave, self.end))

    def forget(self, done: int) -> list[int]:
        """Drop what lay before the wave `done`; return the journal numbers among it."""
        position, numbers = self._dropped, []
        while self._cuts and self._cuts[0][0] <= done:
            position = self._cuts.popleft()[1]
        while self._dropped < position:
            entry = self._entries.popleft()
            self._dropped += 1
            if entry.number:
                numbers.append(entry.number)
        self._numbers.difference_update(numbers)
        return numbers

    def share(self, is_inside: Callable[[str], bool]) -> list[LogEntry]:
        """The log for a hand-over; `is_inside` tells whether what came that way came from inside the region."""
        return [
            LogEntry(item.event, item.after is None and not is_inside(item.via), item.after) for item in self._entries
        ]
