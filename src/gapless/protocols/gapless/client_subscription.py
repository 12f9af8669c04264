"""A subscription as its client keeps it: which events are due, which have arrived, and where it can continue."""

from enum import Enum

from gapless.event_runs import EventRun
from gapless.filters import Filter
from gapless.positions import Position
from gapless.protocol import NEWEST
from gapless.protocols.gapless import client_messages as messages
from gapless.protocols.gapless.durable.attachment import Attachment
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.parts.ranges import Ranges, add_range, add_ranges, without
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["HeldState", "HeldSubscription"]


class HeldState(Enum):
    """The state of a subscription; one that is resumed at another broker is ACTIVE all the time."""

    REQUESTED = "requested"
    ACTIVE = "active"
    ENDING = "ending"


HELD: Transitions = {
    HeldState.REQUESTED: {HeldState.ACTIVE, HeldState.ENDING},
    HeldState.ACTIVE: {HeldState.ENDING},
    HeldState.ENDING: set(),
}


class HeldSubscription:
    """A subscription as its client keeps it."""

    def __init__(self, name: str, pattern: Filter, since: Position | None, until: Position | None) -> None:
        self.name = name
        self.filter = pattern
        self.state = HeldState.REQUESTED
        self.begins = since
        """If it begins in the past: everything after this position is due, and nothing up to it."""
        self.ends = until
        """Nothing after this position is due."""
        self.is_replay = since is not None
        """Whether the application knows that history is read for it."""
        self.attachment: Attachment | None = None
        """For a durable subscription: what is acknowledged of it."""
        self.cuts: dict[str, int] = {}
        self.got: dict[str, int] = {}
        self.has_read = False
        self.was_live_until = 0
        """The position at which it began to read history, if it was live before."""
        self._read: dict[str, int] = {}
        """The last numbers when it switched from history to live events."""
        self._first: dict[str, int] = {}
        """The first live number of each publisher. Lost numbers may be between the two."""
        self._reported: Ranges = {since.publisher: [(1, since.number)]} if since is not None and since.publisher else {}
        """Numbers dropped from history that were reported to the application, or precede the beginning."""
        self.begin = 0
        self.born: Incarnation | None = None
        """The incarnation whose clock `begin` is."""
        self.position = -1 if since is None else since.floor
        """The position up to which everything has arrived."""
        self.ticket = b""
        """The proof for other brokers that it was active."""
        self.is_reading = since is not None
        """Whether it reads history, so that it has its own position."""

    def go_live(self) -> None:
        """Switch to live events."""
        self.has_read, self._read, self._first = True, dict(self.got), {}

    def came(self, publisher: str, first: int, last: int) -> None:
        """Record that these numbers have arrived, and that no number between them is due."""
        self.got[publisher] = last
        if self.has_read and publisher not in self._first:
            self._first[publisher] = first

    def lose(
        self, publisher: str, first: int, last: int, settled: int, settled_by: int = 0, lost_by: int = 0
    ) -> list[tuple[int, int]]:
        """Return those of a publisher's lost numbers that were due and did not arrive.

        Numbers that all brokers had processed did arrive, if they matched, at a subscription that was live then. Their
        timestamps are not larger than `settled_by`, those of all lost events not larger than `lost_by`; 0: unknown.
        """
        first = max(first, self.cuts.get(publisher, 1))
        if 0 < settled_by <= self.was_live_until:
            first = max(first, settled + 1)
        if 0 < lost_by <= self._due_after(publisher):
            first = last + 1
        begin = self._first.get(publisher, 0)
        ranges = [(max(first, self._read.get(publisher, 0) + 1), min(last, begin - 1))]
        was_live = publisher in self._first if self.has_read else not self.is_reading
        live = max(first, settled + 1) if was_live else first
        ranges.append((max(live, self.got.get(publisher, 0) + 1), last))
        if self.attachment is not None:
            known = self.attachment.left_out(publisher)
            ranges = [pair for first, last in ranges for pair in without(known, first, last)]
        self.got[publisher] = max(last, self.got.get(publisher, 0))
        self._first[publisher] = 0
        return [pair for pair in ranges if pair[0] <= pair[1]]

    def _due_after(self, publisher: str) -> int:
        """Return a timestamp: no event up to it is due."""
        if self.begins is not None:
            return self.begins.floor
        return 0 if publisher in self.cuts else self.begin

    def newly_lost(self, lost: Ranges) -> Ranges:
        """Return the numbers dropped from history that were due, did not arrive, and were not reported before at
        another broker."""
        found: Ranges = {}
        for publisher, ranges in lost.items():
            known = self._reported.get(publisher, [])
            if self.attachment is not None:
                known = sorted([*known, *self.attachment.left_out(publisher)])
            due = max(self.got.get(publisher, 0) + 1, self.cuts.get(publisher, 1))
            for first, last in ranges:
                for pair in without(known, max(first, due), last):
                    add_range(found, publisher, *pair)
        add_ranges(self._reported, found)
        return found

    def due(self, events: EventRun) -> EventRun | None:
        """Return the events that are due and have not come; None if there are none."""
        if self.attachment is None and self._is_due(events, events.first) and self._is_due(events, events.last):
            return events
        places = [place for place, seq in enumerate(events.seqs) if self._is_due(events, seq)]
        return events.pick(places) if places else None

    def _is_due(self, events: EventRun, seq: int) -> bool:
        publisher, timestamp = events.publisher, events.stamp
        if seq <= self.got.get(publisher, 0) or self._is_outside(publisher, timestamp, seq):
            return False
        if self.begins is not None:
            return self.attachment is None or not self.attachment.leaves_out(publisher, seq, timestamp)
        cut = self.cuts.get(publisher)
        return seq >= cut if cut is not None else timestamp > self.begin

    def _is_outside(self, publisher: str, timestamp: int, seq: int) -> bool:
        begins, ends = self.begins, self.ends
        return (
            begins is not None and timestamp <= begins.timestamp and Position.after(timestamp, publisher, seq) <= begins
        ) or (ends is not None and timestamp >= ends.timestamp and Position.after(timestamp, publisher, seq) > ends)

    def call(self, session: int, *, is_new: bool) -> messages.ClientSubscribe:
        """Return the message that sends it to a broker."""
        until = 0 if self.ends is None else self.ends.timestamp
        name, text = self.name, self.filter.text
        if is_new:
            since = -1 if self.begins is None else NEWEST.timestamp if self.begins == NEWEST else self.begins.floor
            return messages.ClientSubscribe(session, name, text, since, until)
        is_resumed = self.begins is None or not self.is_reading
        return messages.ClientSubscribe(session, name, text, self.position, until, is_resumed, self.ticket)

    def reached(self) -> Position:
        """Return its position, as the application knows it."""
        position = Position.at(self.position)
        if self.begins is not None and position < self.begins:
            return self.begins
        return position if self.ends is None or position < self.ends else self.ends

    def last(self) -> dict[str, int]:
        """Return the ending cut, if it ended now."""
        return {publisher: cut - 1 for publisher, cut in self.cuts.items()} | self.got


follow(HeldSubscription, "state", HELD)
