"""A subscription as its client keeps it: which events are due, which have arrived, and where it can continue."""

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
    """The state of a subscription; one that is resumed at another broker is ACTIVE all the time."""

    REQUESTED = "requested"
    ACTIVE = "active"
    ENDING = "ending"


HELD: Transitions = {
    HeldState.REQUESTED: {HeldState.ACTIVE, HeldState.ENDING},
    HeldState.ACTIVE: {HeldState.ENDING},
    HeldState.ENDING: set(),
}


READ_MAX = 100
"""The maximum number of stretches that are kept apart; beyond it, the oldest two and all between them become one."""


class HeldSubscription:
    """A subscription as its client keeps it."""

    def __init__(
        self, name: str, pattern: Filter, since: Position | None, until: Position | None, survey: Volume | None = None
    ) -> None:
        self.name = name
        self.survey = survey
        self.filter = pattern
        self.state = HeldState.REQUESTED
        self.begins = since
        """If it begins in the past: everything after this position is due, and nothing up to it."""
        self.ends = until
        """Nothing after this position is due."""
        self.is_replay = since is not None
        """Whether the application knows that history is read for it."""
        self.attachment: ExclusiveAttachment | None = None
        """For a durable subscription: what is acknowledged of it."""
        self.cuts: dict[str, int] = {}
        self.got: dict[str, int] = {}
        self._got_at: dict[str, int] = {}
        """The timestamps of the last numbers that arrived."""
        self._read: list[tuple[int, int]] = [] if since is None else [(0, TIMESTAMP_MAX)]
        """The stretches of timestamps that it has read, or reads, from history, in order. Between them it was live."""
        self._unsure: Ranges = {}
        """Numbers that did not arrive, between two that did, with a part of a read stretch between them."""
        self._reported: Ranges = {since.publisher: [(1, since.number)]} if since is not None and since.publisher else {}
        """Numbers dropped from history that were reported to the application, or precede the beginning."""
        self.begin = 0
        self.born: Incarnation | None = None
        """The incarnation whose clock `begin` is."""
        self.position = -1 if since is None else since.floor
        """The position up to which everything has arrived."""
        self.ticket = b""
        """The proof for other brokers that it was active."""

    @property
    def is_reading(self) -> bool:
        """Return whether it reads history, so that it has its own position."""
        return bool(self._read) and self._read[-1][1] == TIMESTAMP_MAX

    def begin_reading(self) -> None:
        """Switch to history, after everything that has arrived."""
        if not self.is_reading:
            self._read.append((self.position, TIMESTAMP_MAX))
            if len(self._read) > READ_MAX:
                self._read[:2] = [(self._read[0][0], self._read[1][1])]

    def go_live(self, position: int) -> None:
        """Switch to live events, which have larger timestamps than this position."""
        if self.is_reading:
            self._read[-1] = self._read[-1][0], position

    def _was_live(self, after: int, until: int) -> bool:
        """Return whether it was live for all events between two timestamps."""
        return all(end <= after or begin >= until for begin, end in self._read)

    def _arrived_until(self, publisher: str) -> int:
        """Return the timestamp of the last number of the publisher that arrived, or before which none was due."""
        return max(self._got_at.get(publisher, 0), self._due_after(publisher))

    def came(self, publisher: str, first: int, last: int, timestamp: int) -> None:
        """Record that these numbers have arrived, and that no number between them is due."""
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
        """Return those of a publisher's lost numbers that were due and did not arrive. `reported_at` is the timestamp
        of the report; `times` tell when the lost events were published, as far as that is known.

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
                known = sorted([*known, *self.attachment.progress.earlier(publisher)])
            due = max(self.got.get(publisher, 0) + 1, self.cuts.get(publisher, 1))
            for first, last in ranges:
                for pair in without(known, max(first, due), last):
                    add_range(found, publisher, *pair)
        add_ranges(self._reported, found)
        return found

    def due(self, events: EventRun) -> EventRun | None:
        """Return the events that are due and have not come; None if there are none."""
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
        """Return the message that sends it to a broker."""
        until = 0 if self.ends is None else self.ends.timestamp
        name, text = self.name, self.filter.text
        if is_new:
            since = -1 if self.begins is None else NEWEST.timestamp if self.begins == NEWEST else self.begins.floor
            return messages.ClientSubscribe(session, name, text, since, until, survey=self.survey)
        is_resumed = self.begins is None or not self.is_reading
        return messages.ClientSubscribe(session, name, text, self.position, until, is_resumed, self.ticket, self.survey)

    def reached(self) -> Position:
        """Return its position, as the application knows it."""
        position = Position.at(self.position)
        if self.begins is not None and position < self.begins:
            return self.begins
        return position if self.ends is None or position < self.ends else self.ends

    def last(self) -> dict[str, int]:
        """Return the ending cut, if it ended now."""
        return {publisher: cut - 1 for publisher, cut in self.cuts.items()} | self.got


def _stretches(first: int, last: int, settled: int, times: Sequence[Timed]) -> Iterator[tuple[int, int, int, int]]:
    """Divide the numbers into those up to `settled` and the others, and by their timestamps. Yield for each stretch its
    first and last number, and two timestamps: those of its numbers are after the one, and not after the other."""
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
