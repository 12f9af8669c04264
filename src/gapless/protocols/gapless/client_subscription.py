"""A subscription as its client sees it: which events are due, which ones have arrived, and where it continues at
another broker."""

from collections.abc import Iterator, Sequence
from enum import Enum

from gapless.event_runs import EventRun
from gapless.filters import Filter
from gapless.positions import TIMESTAMP_MAX, Position, Volume
from gapless.protocol import NEWEST
from gapless.protocols.gapless import client_messages as messages
from gapless.protocols.gapless.durable.exclusive import ExclusiveAttachment
from gapless.protocols.gapless.identities import Incarnation, Timed
from gapless.protocols.parts.ranges import Ranges, add_range, add_ranges, without
from gapless.protocols.parts.transitions import Transitions, follow

__all__ = ["HeldState", "HeldSubscription"]


class HeldState(Enum):
    """The state of a subscription at its client. It stays ACTIVE while it is resumed at another broker."""

    REQUESTED = "requested"
    ACTIVE = "active"
    ENDING = "ending"


HELD: Transitions = {
    HeldState.REQUESTED: {HeldState.ACTIVE, HeldState.ENDING},
    HeldState.ACTIVE: {HeldState.ENDING},
    HeldState.ENDING: set(),
}


READ_MAX = 100
"""The maximum number of separately recorded ranges. If there are more, the two oldest are merged, with everything
between them."""


class HeldSubscription:
    def __init__(
        self, name: str, pattern: Filter, since: Position | None, until: Position | None, survey: Volume | None = None
    ) -> None:
        self.name = name
        self.survey = survey
        self.filter = pattern
        self.state = HeldState.REQUESTED
        self.begins = since
        """If the subscription starts in the past: events after this position are due."""
        self.ends = until
        """Events after this position are not due."""
        self.is_replay = since is not None
        """Whether the application knows that the subscription is replaying history."""
        self.attachment: ExclusiveAttachment | None = None
        """For a durable subscription: its acknowledgements."""
        self.cuts: dict[str, int] = {}
        self.got: dict[str, int] = {}
        self._got_at: dict[str, int] = {}
        """The timestamp of each publisher's last number that has arrived."""
        self._read: list[tuple[int, int]] = [] if since is None else [(0, TIMESTAMP_MAX)]
        """The ranges of timestamps that were read from history, or are being read, in order. Between them the
        subscription was live."""
        self._unsure: Ranges = {}
        """Numbers that have not arrived although later ones have, and whose timestamps may be in a range that was read
        from history."""
        self._reported: Ranges = {since.publisher: [(1, since.number)]} if since is not None and since.publisher else {}
        """Numbers that were reported to the application as dropped from history, or that precede the start."""
        self.begin = 0
        self.born: Incarnation | None = None
        """The incarnation whose clock `begin` was taken from."""
        self.position = -1 if since is None else since.floor
        """The position up to which everything has arrived."""
        self.ticket = b""
        """Proves to other brokers that the subscription was active."""

    @property
    def is_reading(self) -> bool:
        """Return whether the subscription reads history, and so has a position of its own."""
        return bool(self._read) and self._read[-1][1] == TIMESTAMP_MAX

    def begin_reading(self) -> None:
        """Switch to reading history after everything that has arrived."""
        if not self.is_reading:
            self._read.append((self.position, TIMESTAMP_MAX))
            if len(self._read) > READ_MAX:
                self._read[:2] = [(self._read[0][0], self._read[1][1])]

    def go_live(self, position: int) -> None:
        """Switch to live events, which have timestamps after this position."""
        if self.is_reading:
            self._read[-1] = self._read[-1][0], position

    def _was_live(self, after: int, until: int) -> bool:
        """Return whether the subscription was live for all events between the two timestamps."""
        return all(end <= after or begin >= until for begin, end in self._read)

    def _arrived_until(self, publisher: str) -> int:
        """Return the timestamp up to which all due events of the publisher have arrived."""
        return max(self._got_at.get(publisher, 0), self._due_after(publisher))

    def record_arrival(self, publisher: str, first: int, last: int, timestamp: int) -> None:
        """Record that these numbers have arrived, and that none of the skipped numbers before them is due."""
        if self._read and not self.is_reading and not self._was_live(self._arrived_until(publisher), timestamp):
            before = max(self.got.get(publisher, 0) + 1, self.cuts.get(publisher, 1))
            if before < first:
                add_range(self._unsure, publisher, before, first - 1)
                if len(known := self._unsure[publisher]) > READ_MAX:
                    known[:2] = [(known[0][0], known[1][1])]
        self.got[publisher], self._got_at[publisher] = last, timestamp

    def lose(
        self,
        publisher: str,
        first: int,
        last: int,
        settled: int,
        times: Sequence[Timed] = (),
        reported_at: int = 0,
    ) -> list[tuple[int, int]]:
        """Return the ranges of a publisher's lost numbers that were due and did not arrive. `reported_at` is the
        timestamp of the report; `times` are the known publication times.

        All brokers had processed the numbers up to `settled`: if they matched, they arrived at a subscription that was
        live for their timestamps. It lacks such a number only if it may have read it from history.
        """
        due_after, arrived = self._due_after(publisher), self._arrived_until(publisher)
        first = max(first, self.cuts.get(publisher, 1))
        unsure, got = self._unsure.pop(publisher, []), self.got.get(publisher, 0)
        lacking: Ranges = {}
        for begin, end, after, until in _stretches(first, last, settled, times):
            if until <= due_after:
                continue
            for least, most, since in (*((*pair, due_after) for pair in unsure), (got + 1, last, arrived)):
                is_seen = end <= settled and self._was_live(max(after, since), until)
                if max(begin, least) <= min(end, most) and not is_seen:
                    add_range(lacking, publisher, max(begin, least), min(end, most))
        for begin, end in unsure:
            if end > last:
                add_range(self._unsure, publisher, max(begin, last + 1), end)
        if last > got:
            self.got[publisher], self._got_at[publisher] = last, reported_at
        found = lacking.get(publisher, [])
        if self.attachment is not None:
            known = self.attachment.progress.earlier(publisher)
            found = [pair for begin, end in found for pair in without(known, begin, end)]
        return found

    def _due_after(self, publisher: str) -> int:
        """Return the timestamp after which events of the publisher are due."""
        if self.begins is not None:
            return self.begins.floor
        return 0 if publisher in self.cuts else self.begin

    def newly_lost(self, lost: Ranges) -> Ranges:
        """Return the dropped numbers that were due, have not arrived, and were not reported at another broker."""
        found: Ranges = {}
        for publisher, ranges in lost.items():
            known = self._reported.get(publisher, [])
            if self.attachment is not None:
                known = sorted([*known, *self.attachment.progress.earlier(publisher)])
            due = max(self.got.get(publisher, 0) + 1, self.cuts.get(publisher, 1))
            for first, last in ranges:
                for pair in without(known, max(first, due), last):
                    add_range(found, publisher, *pair)
        add_ranges(self._reported, found)
        return found

    def due(self, events: EventRun) -> EventRun | None:
        """Return the due events that have not arrived before; None if there are none."""
        if self._is_due(events, events.first) and self._is_due(events, events.last):
            return events
        places = [place for place, seq in enumerate(events.seqs) if self._is_due(events, seq)]
        return events.pick(places) if places else None

    def _is_due(self, events: EventRun, seq: int) -> bool:
        publisher, timestamp = events.publisher, events.stamp
        if seq <= self.got.get(publisher, 0) or self._is_outside(publisher, timestamp, seq):
            return False
        if self.begins is not None:
            return True
        cut = self.cuts.get(publisher)
        return seq >= cut if cut is not None else timestamp > self.begin

    def _is_outside(self, publisher: str, timestamp: int, seq: int) -> bool:
        begins, ends = self.begins, self.ends
        return (
            begins is not None and timestamp <= begins.timestamp and Position.after(timestamp, publisher, seq) <= begins
        ) or (ends is not None and timestamp >= ends.timestamp and Position.after(timestamp, publisher, seq) > ends)

    def call(self, session: int, *, is_new: bool) -> messages.ClientSubscribe:
        """Return the message that sends the subscription to a broker."""
        until = 0 if self.ends is None else self.ends.timestamp
        name, text = self.name, self.filter.text
        if is_new:
            since = -1 if self.begins is None else NEWEST.timestamp if self.begins == NEWEST else self.begins.floor
            return messages.ClientSubscribe(session, name, text, since, until, survey=self.survey)
        is_resumed = self.begins is None or not self.is_reading
        return messages.ClientSubscribe(session, name, text, self.position, until, is_resumed, self.ticket, self.survey)

    def reached(self) -> Position:
        """Return the subscription's position in the form that the application uses."""
        position = Position.at(self.position)
        if self.begins is not None and position < self.begins:
            return self.begins
        return position if self.ends is None or position < self.ends else self.ends

    def last(self) -> dict[str, int]:
        """Return each publisher's last number, as the ending cut if the subscription ended now."""
        return {publisher: cut - 1 for publisher, cut in self.cuts.items()} | self.got


def _stretches(first: int, last: int, settled: int, times: Sequence[Timed]) -> Iterator[tuple[int, int, int, int]]:
    """Split the numbers at `settled` and at their known publication times. Yield for each range its first and last
    number, and two timestamps: its events are after the first one, and not after the second."""
    known, after = 0, 0
    for each in (*times, Timed(last + 1, last + 1, TIMESTAMP_MAX, TIMESTAMP_MAX)):
        for begin, end, since, until in (
            (known + 1, each.first - 1, after, each.begin),
            (each.first, each.last, each.begin - 1, each.end),
        ):
            for low, high in ((begin, min(end, settled)), (max(begin, settled + 1), end)):
                if max(low, first) <= min(high, last):
                    yield max(low, first), min(high, last), since, until
        known, after = each.last, each.end


follow(HeldSubscription, "state", HELD)
