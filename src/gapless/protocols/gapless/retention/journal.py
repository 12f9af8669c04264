"""What must outlive a broker: its clients' sessions and the publications it admitted, copied to f backups.

A broker lets a publication out only when all its backups hold it, so that f + 1 brokers do. Hence clients only
ever see events that survive, and an excluded broker can admit nothing more, for its backups no longer answer.
With each publication goes what the broker had processed before it, by publisher: its causes are among that.

The backups are the f nearest live brokers. Any set of at most f failures that takes the broker leaves one of
them on the boundary of the failed part, where the hand-over needs it.
"""

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from gapless.events import Event, EventRun, Events, size_apart
from gapless.protocols.gapless.messages import (
    Admission,
    Backup,
    BackupAll,
    BackupEnd,
    Body,
    Cuts,
    Estate,
    Ranges,
    SessionRecord,
)
from gapless.protocols.gapless.retention.spans import Span, Spans
from gapless.protocols.parts.alike import stretches
from gapless.protocols.parts.clock import Clock
from gapless.protocols.parts.ranges import add_range

__all__ = ["Journal", "JournalCopy"]

PAST_MAX = 100
"""If the past of a journal's entries names more publishers, those of which nothing is kept are left out."""
WEIGHED = 1024
"""So many bytes of admitted events weigh as much as one more event."""
_encode = msgspec.msgpack.Encoder().encode


class _Run(msgspec.Struct, frozen=True, gc=False):
    """What was admitted together: the admissions of these events, with one number after the other."""

    first: int
    events: Events
    after: Cuts
    """What the broker had processed before the first of them, and not yet before the admission before it."""
    is_inherited: bool = False
    whole: Cuts | None = None

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def without(self, count: int) -> "_Run":
        """The rest, if so many of them are forgotten."""
        return _Run(self.first + count, self.events[count:], {}, self.is_inherited, self.whole)

    def admissions(self) -> Iterator[Admission]:
        """Them, one by one."""
        after = self.after
        for number, event in enumerate(self.events, self.first):
            yield Admission(number, event, after, self.is_inherited, self.whole)
            after = {}


class JournalCopy:
    """A journal as it is held: sessions, and admissions that may not have reached everyone."""

    def __init__(self) -> None:
        self.records: dict[str, SessionRecord] = {}
        self.number = 0
        """Of the last entry that it knows; or `PUT_TOGETHER`."""
        self.is_found = False
        """Whether it was found on a disk, and nobody has said since that it counts."""
        self._base: Cuts = {}
        self._entries: deque[_Run] = deque()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def restore(self, message: BackupAll) -> None:
        """Start from a whole journal."""
        self.number = message.number
        self.records = {record.client: record for record in message.records}
        self._base = dict(message.before)
        self._entries = deque(
            _Run(item.number, [item.event], item.after, item.is_inherited, item.whole) for item in message.admissions
        )
        self._length = len(self._entries)

    def note(self, message: Backup) -> None:
        """Another entry."""
        self.number = message.number
        self.forget(message.forget)
        self.note_records(message.records)
        self.records.pop(message.gone, None)
        if message.events:
            self.admit(message.number, message.after, message.events, message.original)

    def note_records(self, records: Iterable[SessionRecord]) -> None:
        """Sessions began or changed."""
        for record in records:
            known = self.records.get(record.client)
            admitted = record.admitted if known is None else max(record.admitted, known.admitted)
            self.records[record.client] = msgspec.structs.replace(record, admitted=admitted)

    def admit(self, number: int, after: Cuts, events: Events, original: Cuts | None = None) -> None:
        """A client's publications, the last with this number, are to be admitted.

        Or they were by another broker: then `original` is what came before them there.
        """
        self._append(_Run(number - len(events) + 1, events, after, original is not None, original))
        self._count(events[-1])

    def _count(self, event: Event) -> None:
        """Its client's session knows that it was admitted."""
        record = self.records.get(event.publisher)
        if record is not None and record.admitted < event.seq:
            self.records[event.publisher] = msgspec.structs.replace(record, admitted=event.seq)

    def _append(self, run: _Run) -> None:
        self._entries.append(run)
        self._length += len(run.events)

    def forget(self, number: int) -> None:
        """Admissions up to this number have reached everyone."""
        self._drop(number)

    def forget_done(self, done: Spans, last: int) -> int:
        """Forget up to the first that is not done, and remove what is forgotten from `done`. Return the last number."""
        while self._entries:
            first = self._entries[0].first
            end = done.end_of(first)
            if not end:
                break
            last = self._drop(end)
            done.remove(first, last)
        return last

    def _drop(self, number: int) -> int:
        """Forget what is up to this number; return the last number of that.

        From now on only the record tells that it was admitted. It may be younger than the admission, and not know. The
        smallest story: b3 and all others lose their power. b3 inherits p:6 from its last life and notes it; then p is
        back, and its session is noted, with 5 admitted, for 6 is not safe yet. When 6 has reached everyone, it is
        forgotten. They lose their power again, and p, which was told that 6 is safe, would be told that it is lost.
        """
        entries, base, dropped = self._entries, self._base, 0
        latest: dict[str, Event] = {}
        last = 0
        while entries and entries[0].first <= number:
            run = entries.popleft()
            if run.after:
                base.update(run.after)
            count = min(len(run.events), number - run.first + 1)
            dropped += count
            last = run.first + count - 1
            event = run.events[count - 1]
            if event.publisher not in latest or latest[event.publisher].seq < event.seq:
                latest[event.publisher] = event
            if count < len(run.events):
                entries.appendleft(run.without(count))
        self._length -= dropped
        for event in latest.values():
            self._count(event)
        return last

    def prune(self, kept: Container[str]) -> bool:
        """Forget the publishers of which nothing is kept, in the past of all entries. Tell whether that was much."""
        size = len(self._base)
        self._base = {publisher: seq for publisher, seq in self._base.items() if publisher in kept}
        return 2 * len(self._base) <= size

    @property
    def past_size(self) -> int:
        """How many publishers the past of all entries names."""
        return len(self._base)

    def keep(self, item: Admission) -> None:
        """Take over an admission, expanded, as another copy holds it."""
        self._append(_Run(item.number, [item.event], {}, item.is_inherited, item.after))

    def _admissions(self) -> list[Admission]:
        return [item for run in self._entries for item in run.admissions()]

    def estate(self, broker: str, life: int) -> Estate:
        """The copy as a member of a region contributes it."""
        return Estate(
            broker, life, dict(self.records), dict(self._base), self._admissions(), self.number, self.is_found
        )

    def whole(self, number: int) -> BackupAll:
        """The copy for one who becomes a backup when the journal has reached that number."""
        return BackupAll(number, list(self.records.values()), self._admissions(), dict(self._base))


class Journal:
    """A broker's own journal and its backups."""

    def __init__(self, send: Callable[[str, Body], None], clock: Clock) -> None:
        self.copy = JournalCopy()
        self.keep: Callable[[Events], int] = lambda events: size_apart(events, _encode(events))
        """Puts what is noted into the history; returns how many bytes that takes."""
        self.keep_inherited: Callable[[Events], int] | None = None
        """The same, of what another broker had admitted, if that is to be told apart."""
        self.is_on_disk = False
        self.note: Callable[[Backup], None] = lambda message: None
        """Puts an entry on the disk."""
        self.persisted: int | None = None
        """The disk has everything up to this number; None if there is no disk to wait for."""
        self._send = send
        self.clock = clock
        self._number = 0
        self._forgotten = 0
        self._done = Spans()
        self._backups: dict[str, tuple[int, int]] = {}
        self._fresh: Cuts = {}
        self.weight = 0
        """Of the admissions that are kept: how many, and their bytes (see `WEIGHED`)."""
        self._weights: deque[tuple[int, int]] = deque()
        self._mean = 1.0
        self._runs: list[tuple[int, str, int, int]] = []
        """What was admitted after the last final position: stamp, publisher, first and last number."""

    @property
    def held(self) -> int:
        """All backups hold everything up to this number, and so does the disk of this broker, if there is one."""
        held = self._number if self.persisted is None else self.persisted
        for _, answered in self._backups.values():
            if answered < held:
                held = answered
        return held

    @property
    def number(self) -> int:
        """The number of the last entry."""
        return self._number

    def processed(self, publisher: str, seq: int) -> None:
        """The broker processed what a publisher said up to a number: what it notes from now on comes after that."""
        self._fresh[publisher] = seq

    def write(self, records: list[SessionRecord], gone: str = "") -> int:
        """Note sessions that changed or are over, and tell the backups; return the number of the entry."""
        self._number += 1
        self.copy.note_records(records)
        self.copy.records.pop(gone, None)
        self._tell(Backup(self._number, self._forgotten, {}, records, [], None, gone))
        return self._number

    def stamp(self, events: Events) -> Events:
        """The publications as they are admitted: all with one stamp, since one client published them in order."""
        stamp, first = self.clock.next(), events[0]
        if len(events) == 1:
            return [Event(first.publisher, first.seq, first.attributes, first.payload, stamp)]
        payloads = events.payloads if isinstance(events, EventRun) else [event.payload for event in events]
        return EventRun(first.publisher, first.seq, payloads, stretches(events), stamp)

    def admit(self, events: Events, original: Cuts | None = None) -> int:
        """Note a client's publications, stamped, before they are admitted; return the number of the last."""
        self._number += len(events)
        after, self._fresh = self._fresh, {}
        self.copy.admit(self._number, after, events, original)
        first = events[0]
        self._runs.append((first.stamp, first.publisher, first.seq, events[-1].seq))
        keep = self.keep if original is None or self.keep_inherited is None else self.keep_inherited
        weight = len(events) + keep(events) // WEIGHED
        self._weights.append((self._number, weight))
        self.weight += weight
        self._mean = weight / len(events)
        self._tell(Backup(self._number, self._forgotten, after, [], events, original))
        return self._number

    def admitted(self, since: int, until: int) -> Ranges:
        """What was admitted after the final position `since`, up to another. It forgets what came before."""
        self._runs = [run for run in self._runs if run[0] > since]
        found: Ranges = {}
        for stamp, publisher, first, last in self._runs:
            if stamp <= until:
                add_range(found, publisher, first, last)
        return found

    def void(self, published: Cuts) -> None:
        """Of these publishers, nothing after that number counts: it is in no interval that is not final yet."""
        self._runs = [
            (stamp, publisher, first, min(last, published.get(publisher, last)))
            for stamp, publisher, first, last in self._runs
            if first <= published.get(publisher, first)
        ]

    def room(self, window: int) -> int:
        """How many more admissions the window has room for, if they weigh as much as the last ones."""
        free = window - self.weight
        return max(1, int(free / self._mean)) if free > 0 else 0

    def _tell(self, message: Backup) -> None:
        self.copy.number = self._number
        self.note(message)
        for name in self._backups:
            self._send(name, message)

    def forget(self, spans: Iterable[Span]) -> None:
        """These admissions have reached everyone. Forget up to the first that has not: the rest may be out of order."""
        before = self._forgotten
        for first, last in spans:
            if last > before:
                self._done.add(max(first, before + 1), last)
        self._forgotten = self.copy.forget_done(self._done, before)
        while self._weights and self._weights[0][0] <= self._forgotten:
            self.weight -= self._weights.popleft()[1]
        if self._forgotten > before:
            self.write([])

    def prune(self, kept: Callable[[], Container[str]]) -> None:
        """Leave out of the past of entries what has reached everyone: no order is needed towards it any more.

        That is what was processed and is not kept any more; `kept` tells the publishers of what is kept. Without this,
        each admission would carry the name of everyone who ever published. Backups do not know what is kept, so they
        start over with the pruned journal.
        """
        if len(self._fresh) > PAST_MAX:
            names = kept()
            self._fresh = {publisher: seq for publisher, seq in self._fresh.items() if publisher in names}
        if self.copy.past_size > PAST_MAX and self.copy.prune(kept()):
            for name in self._backups:
                self._send(name, self.whole())

    def whole(self) -> BackupAll:
        """All of it."""
        return self.copy.whole(self._number)

    def answered(self, name: str, life: int, number: int) -> None:
        """A backup holds everything up to a number."""
        if name in self._backups and self._backups[name][0] == life:
            self._backups[name] = (life, max(number, self._backups[name][1]))

    def choose_backups(self, lives: dict[str, int]) -> None:
        """Keep the journal at these brokers, in these lives of theirs."""
        chosen = {}
        for name, life in lives.items():
            known = self._backups.get(name)
            chosen[name] = known if known is not None and known[0] == life else (life, 0)
            if chosen[name] is not known:
                self._send(name, self.whole())
        for name in self._backups:
            if name not in chosen:
                self._send(name, BackupEnd())
        self._backups = chosen
