"""What a broker has processed and nobody has proved delivered everywhere, in the order of processing.

It is what the broker contributes to a hand-over. Waves cut it; what lies before a cut that is done is dropped.

What came together is one entry, a run; its events are told apart only where a hand-over asks for each of them.
"""

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from gapless.events import Events
from gapless.protocols.gapless.messages import Cuts, LogEntry
from gapless.protocols.gapless.retention.spans import Span, Spans
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["EventLog", "Logged"]

DONE_MAX = 10_000
"""Of so many publishers it is remembered what has reached everyone."""


class Logged(msgspec.Struct, frozen=True, gc=False):
    """A run, where it came from (`via`: a neighbour in the full tree), and what the log's owner must know of it."""

    events: Events
    """Of one publisher, in order."""
    via: str
    number: int = 0
    """That of its first event in the journal of this broker, if it was admitted here; those of the others follow."""
    after: Cuts | None = None
    """For what came out of a merged log: see `messages.LogEntry`."""
    is_void: bool = False
    """Whether others went on without it, so that it does not count any more."""


class EventLog:
    """An ordered log with cuts."""

    def __init__(self) -> None:
        self._entries: deque[Logged] = deque()
        self._length = 0
        self._dropped = 0
        self._cuts: deque[tuple[int, int]] = deque()
        self._numbers = Spans()
        self.done: Cuts = {}
        """By publisher: the last event that was dropped. It has reached everyone, and so have all before it."""

    def __len__(self) -> int:
        return self._length

    @property
    def first(self) -> int:
        """The place of the first event that is kept. Places only grow."""
        return self._dropped

    @property
    def end(self) -> int:
        """The place of the next event."""
        return self._dropped + self._length

    def append(self, entry: Logged) -> None:
        """Another run was processed."""
        self._entries.append(entry)
        self._length += len(entry.events)
        if entry.number:
            self._numbers.add(entry.number, entry.number + len(entry.events) - 1)

    def places(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Where each event stands, by publisher and number, and its number in the journal of this broker, or 0.

        Each of them is an entry of its own from then on.
        """
        self._entries = deque(
            Logged([event], entry.via, entry.number and entry.number + place, entry.after, entry.is_void)
            for entry in self._entries
            for place, event in enumerate(entry.events)
        )
        return {
            (entry.events[0].publisher, entry.events[0].seq): (place, entry.number)
            for place, entry in enumerate(self._entries, self._dropped)
            if not entry.is_void
        }

    def keep_pasts(self, pasts: Mapping[tuple[str, int], Cuts], is_inside: Callable[[str], bool]) -> None:
        """What came from inside a region keeps the past that it has in the merged log.

        Its smallest story: p1:9 enters here, and p3:5, its effect, comes from b2. b2 dies: its backups know what p3:5
        comes after. b2 returns, and nobody but this broker brings p3:5; if all it knew were where that came from, p3:5
        could stand anywhere, also before p1:9.
        """
        entries: deque[Logged] = deque()
        for entry in self._entries:
            if entry.after is not None or entry.is_void or not is_inside(entry.via):
                entries.append(entry)
                continue
            for place, event in enumerate(entry.events):
                number = entry.number and entry.number + place
                entries.append(Logged([event], entry.via, number, pasts.get((event.publisher, event.seq))))
        self._entries = entries

    def void(self, published: Cuts) -> None:
        """Of these publishers, nothing after that number counts."""
        entries: deque[Logged] = deque()
        for entry in self._entries:
            last = published.get(entry.events[0].publisher)
            if last is None or entry.events[-1].seq <= last:
                entries.append(entry)
                continue
            for place, event in enumerate(entry.events):
                number = entry.number and entry.number + place
                entries.append(Logged([event], entry.via, number, entry.after, event.seq > last))
        self._entries = entries

    def number(self, place: int, number: int) -> None:
        """The event that stands there, as `places` told, is in the journal of this broker now."""
        place -= self._dropped
        self._entries[place] = msgspec.structs.replace(self._entries[place], number=number)
        self._numbers.add(number, number)

    def has_number(self, number: int) -> bool:
        """Whether an event of that journal number is still kept."""
        return number in self._numbers

    def publishers(self) -> set[str]:
        """Of whom something is kept."""
        return {entry.events[0].publisher for entry in self._entries}

    def cut(self, wave: int) -> None:
        """The wave came by."""
        self._cuts.append((wave, self.end))

    def forget(self, done: int) -> list[Span]:
        """Drop what lay before the wave `done`; return the journal numbers among it."""
        position = self._dropped
        spans: list[Span] = []
        while self._cuts and self._cuts[0][0] <= done:
            position = self._cuts.popleft()[1]
        before, entries, finished = self._dropped, self._entries, self.done
        while self._dropped < position:
            entry = entries.popleft()
            count = len(entry.events)
            self._dropped += count
            last = entry.events[-1]
            if last.seq > finished.get(last.publisher, 0) and not entry.is_void:
                finished[last.publisher] = last.seq
            number = entry.number
            if number:
                if spans and spans[-1][1] == number - 1:
                    spans[-1] = (spans[-1][0], number + count - 1)
                else:
                    spans.append((number, number + count - 1))
        self._length -= self._dropped - before
        for span in spans:
            self._numbers.remove(*span)
        forget_oldest(finished, DONE_MAX)
        return spans

    def share(self, is_inside: Callable[[str], bool]) -> list[LogEntry]:
        """The log for a hand-over; `is_inside` tells whether what came that way came from inside the region."""
        return [
            LogEntry(event, entry.after is None and not is_inside(entry.via), entry.after, entry.number > 0)
            for entry in self._entries
            if not entry.is_void
            for event in entry.events
        ]
