"""What was admitted, kept to be read again: in memory, up to a number of bytes; then the oldest goes.

Where there is a disk, the oldest goes from the memory only. What the memory does not have any more is read from the
disk, which has a bound of its own (`mirror`).

A broker keeps its own journal's admissions and those of the journals that it is a backup of. What one client published
in one message is one **run**: it has one stamp, and is kept as the bytes it has on the wire.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from gapless.disk import HistoryRow
from gapless.events import Attributes, Event, EventRun, Events, size_apart
from gapless.protocols.gapless.history.mirror import NAMED_FACTOR, Mirror, read_piece
from gapless.protocols.gapless.history.runs import Run
from gapless.protocols.gapless.messages import NOBODY, Ranges
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.ranges import add_range

__all__ = ["History", "Page", "Run"]

RUN_BYTES = 200
"""What a run takes beside its events."""
PAGE_BYTES = 256 * 1024
"""A page is full when it has so many bytes of runs that were looked at."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Events).decode


class Page(msgspec.Struct, frozen=True):
    """A part of what was asked for: see `messages.Fetched`."""

    held: Ranges
    passed: Ranges
    upto: int
    events: list[Event]


class _Shelf:
    """The runs of one journal. Those before `start` are dropped.

    A number may come twice, with different stamps: the first was noted by a life that died before anybody else had it,
    and its client has published it again. Only the last counts.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.start = 0
        self._numbers: Ranges = {}
        """What has ever been here."""
        self._void: dict[str, list[tuple[int, int]]] = {}
        """By publisher: numbers and stamps. From such a number on, an event with a smaller stamp does not count."""
        self.cold = 0
        """No larger stamp was dropped from the memory."""

    def put(self, run: Run) -> None:
        known = self._numbers.get(run.publisher)
        if (
            known
            and run.first <= known[-1][1]
            and any(first <= run.last and last >= run.first for first, last in known)
        ):
            self._void.setdefault(run.publisher, []).append((run.first, run.stamp))
        add_range(self._numbers, run.publisher, run.first, run.last)
        if self.start < len(self.runs) and run < self.runs[-1]:
            insort(self.runs, run, lo=self.start)
        else:
            self.runs.append(run)

    def has(self, event: Event) -> bool:
        """Whether the event is in a run here."""
        key = (event.stamp, event.publisher, event.seq)
        place = bisect_right(self.runs, key, lo=self.start, key=lambda run: (run.stamp, run.publisher, run.first)) - 1
        run = self.runs[place] if place >= self.start else None
        return run is not None and (run.stamp, run.publisher) == key[:2] and run.last >= event.seq

    def counts(self, event: Event) -> bool:
        """Whether it is what was published in the end, and not what an earlier life noted and lost."""
        void = self._void.get(event.publisher)
        return void is None or not any(event.seq >= first and event.stamp < stamp for first, stamp in void)

    def trim(self, run: Run) -> Run | None:
        """What counts of the run."""
        if run.publisher not in self._void:
            return run
        events = [event for event in _decode(run.events) if self.counts(event)]
        if not events:
            return None
        return Run(run.stamp, run.publisher, events[0].seq, events[-1].seq, _encode(events))

    def drop(self) -> Run:
        """Drop the oldest run. The list is shortened only now and then."""
        run = self.runs[self.start]
        self.start += 1
        if 2 * self.start > len(self.runs):
            del self.runs[: self.start]
            self.start = 0
        return run

    def after(self, stamp: int) -> Iterator[Run]:
        """The runs with larger stamps."""
        return islice(self.runs, bisect_right(self.runs, stamp, lo=self.start, key=lambda run: run.stamp), None)


class History:
    """The runs of some journals, each in the order of its stamps."""

    def __init__(self, bytes_max: int) -> None:
        self.dropped = 0
        """Nothing with a larger stamp was dropped."""
        self.size = 0
        """In bytes."""
        self.mirror: Mirror | None = None
        """Puts it on the disk, too."""
        self.persisted = 0
        """The last batch that the disk has. What it does not have stays in memory."""
        self.floor = NOBODY
        """What has a larger stamp is kept for durable subscriptions, unless there is far too much of it."""
        self.reads = 0
        """How often the disk was asked, through all lives."""
        self._bytes_max = bytes_max
        self._shelves: dict[str, _Shelf] = {}
        self._order: deque[tuple[str, int]] = deque()
        """The journals of the runs, in the order in which they came, and with which batches they go to the disk."""

    def __len__(self) -> int:
        return len(self._order)

    @property
    def last(self) -> int:
        """The last stamp of all; 0 if there is none."""
        return max((shelf.runs[-1].stamp for shelf in self._shelves.values() if shelf.runs), default=0)

    def keep(self, journal: str, events: Events) -> int:
        """A run was noted in that journal; returns how many bytes its events take, each for itself."""
        encoded = events.encoded if isinstance(events, EventRun) else _encode(events)
        first = events[0]
        run = Run(first.stamp, first.publisher, first.seq, events[-1].seq, encoded)
        if self.mirror is None:
            self.put(journal, run)
        else:
            self.put(journal, run, self.mirror.batch)
            self.mirror.keep(journal, run)
        return size_apart(events, encoded)

    def put(self, journal: str, run: Run, batch: int = 0) -> None:
        """A run of that journal; `batch` if the disk does not have it yet."""
        shelf = self._shelves.get(journal)
        if shelf is None:
            shelf = self._shelves[journal] = _Shelf()
        shelf.put(run)
        self._order.append((journal, batch))
        self.size += len(run.events) + RUN_BYTES
        while self.size > self._bytes_max and self._order[0][1] <= self.persisted and not self._is_held():
            self._drop_oldest()

    def _is_held(self) -> bool:
        """Whether the oldest run is kept for durable subscriptions."""
        if self.mirror is not None or self._oldest().stamp <= self.floor:
            return False
        return self.size <= NAMED_FACTOR * self._bytes_max

    @property
    def beyond(self) -> int:
        """How many bytes are kept beyond the bound, for durable subscriptions."""
        return self.mirror.beyond if self.mirror is not None else max(0, self.size - self._bytes_max)

    def keep_inherited(self, journal: str, events: Events) -> int:
        """What another broker had admitted was noted in that journal; it may be here already, from an earlier life."""
        if self._has(journal, events[0]):
            return size_apart(events, _encode(events))
        return self.keep(journal, events)

    def _has(self, journal: str, event: Event) -> bool:
        shelf = self._shelves.get(journal)
        if shelf is None or self.mirror is None or event.stamp > shelf.cold:
            return shelf is not None and shelf.has(event)
        return shelf.has(event) or self.mirror.has(journal, event)

    @property
    def has_room(self) -> bool:
        """Whether more can be kept of what is old, so that nothing younger is dropped for it soon."""
        return self.mirror.has_room if self.mirror is not None else 10 * self.size < 9 * self._bytes_max

    def keep_again(self, journal: str, events: Iterable[Event]) -> None:
        """That journal is told again: some of it may be here already."""
        run: list[Event] = []
        for event in events:
            if self._has(journal, event):
                continue
            if run and (event.stamp, event.publisher, event.seq) != (run[0].stamp, run[0].publisher, run[-1].seq + 1):
                self.keep(journal, run)
                run = []
            run.append(event)
        if run:
            self.keep(journal, run)

    def forget(self, before: int) -> None:
        """What is no younger than a stamp is not wanted any more; and the disk may have too much."""
        wanted = before if self.mirror is not None else min(before, self.floor)
        while self._order and self._order[0][1] <= self.persisted and self._oldest().stamp <= wanted:
            self._drop_oldest()
        while self.size > self._bytes_max and self._order[0][1] <= self.persisted and not self._is_held():
            self._drop_oldest()
        if self.mirror is not None:
            self.dropped = max(self.dropped, self.mirror.drop(before, self.floor))

    def _oldest(self) -> Run:
        shelf = self._shelves[self._order[0][0]]
        return shelf.runs[shelf.start]

    def _drop_oldest(self) -> None:
        journal, _ = self._order.popleft()
        shelf = self._shelves[journal]
        run = shelf.drop()
        self.size -= len(run.events) + RUN_BYTES
        if self.mirror is None:
            self.dropped = max(self.dropped, run.stamp)
        else:
            shelf.cold = max(shelf.cold, run.stamp)

    def cold(self, journal: str, since: int) -> int:
        """If the disk has to be asked what that journal got after a position: up to which stamp. Otherwise 0."""
        shelf = self._shelves.get(journal)
        return shelf.cold if self.mirror is not None and shelf is not None and since < shelf.cold else 0

    def read(
        self,
        journal: str,
        since: int,
        until: int,
        test: Callable[[Attributes], bool],
        rows: Sequence[HistoryRow] = (),
    ) -> Page:
        """A page of what that journal got between two positions, as far as it is here or in `rows`, and matches."""
        held: Ranges = {}
        passed: Ranges = {}
        events: list[Event] = []
        size, upto = 0, until
        shelf = self._shelves.get(journal) or _Shelf()
        for each in self._runs(journal, since, rows):
            if each.stamp > until:
                break
            run = shelf.trim(each)
            if run is None:
                continue
            add_range(held, run.publisher, run.first, run.last)
            if size >= PAGE_BYTES and run.stamp > upto:
                continue
            add_range(passed, run.publisher, run.first, run.last)
            found = _decode(run.events)
            size += size_apart(found, run.events)
            upto = run.stamp
            events += _matching(found, test)
        return Page(held, passed, until if size < PAGE_BYTES else upto, events)

    def _runs(self, journal: str, since: int, rows: Sequence[HistoryRow]) -> Iterable[Run]:
        """The runs with larger stamps, in order; what is in memory and on the disk comes once."""
        shelf = self._shelves.get(journal)
        runs = () if shelf is None else shelf.after(since)
        if not rows:
            return runs
        pieces = (run for row in rows for run in read_piece(row) if run.stamp > since)
        return sorted({(run.stamp, run.publisher, run.first): run for run in chain(pieces, runs)}.values())


def _matching(events: Events, test: Callable[[Attributes], bool]) -> Iterable[Event]:
    """Those that match, and tombstones."""
    if not isinstance(events, EventRun):
        return [event for event in events if test(event.attributes) or is_lost(event.attributes)]
    alike = events.alike
    places = [place for place, (attributes, _) in enumerate(alike) if test(attributes) or is_lost(attributes)]
    if len(places) == len(alike):
        return events
    return chain.from_iterable(events[alike[place - 1][1] if place else 0 : alike[place][1]] for place in places)
