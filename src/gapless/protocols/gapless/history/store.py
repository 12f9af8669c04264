"""What was admitted, kept to be read again: in memory, up to a number of bytes; then the oldest goes.

A broker keeps its own journal's admissions and those of the journals that it is a backup of. What one client published
in one message is one **run**: it has one stamp, and is kept as the bytes it has on the wire.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from gapless.events import Attributes, Event
from gapless.protocols.gapless.history.mirror import Mirror
from gapless.protocols.gapless.history.runs import Run
from gapless.protocols.gapless.messages import Ranges
from gapless.protocols.gapless.ranges import add_range

__all__ = ["History", "Page", "Run"]

RUN_BYTES = 200
"""What a run takes beside its events."""
PAGE_BYTES = 256 * 1024
"""A page is full when it has so many bytes of runs that were looked at."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Event]).decode


class Page(msgspec.Struct, frozen=True):
    """A part of what was asked for: see `messages.Fetched`."""

    held: Ranges
    passed: Ranges
    upto: int
    events: list[Event]


class _Shelf:
    """The runs of one journal. Those before `start` are dropped."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.start = 0

    def put(self, run: Run) -> None:
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

    def drop(self) -> Run:
        """Drop the oldest; make room for a long list only now and then."""
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
        self._bytes_max = bytes_max
        self._shelves: dict[str, _Shelf] = {}
        self._order: deque[str] = deque()
        """The journals of the runs, in the order in which they came."""

    def __len__(self) -> int:
        return len(self._order)

    @property
    def last(self) -> int:
        """The last stamp of all; 0 if there is none."""
        return max((shelf.runs[-1].stamp for shelf in self._shelves.values() if shelf.runs), default=0)

    def keep(self, journal: str, events: list[Event]) -> int:
        """A run was noted in that journal; returns how many bytes its events take."""
        run = Run(events[0].stamp, events[0].publisher, events[0].seq, events[-1].seq, _encode(events))
        self.put(journal, run)
        if self.mirror is not None:
            self.mirror.keep(journal, run)
        return len(run.events)

    def put(self, journal: str, run: Run) -> None:
        """A run of that journal: now, or found on the disk."""
        shelf = self._shelves.get(journal)
        if shelf is None:
            shelf = self._shelves[journal] = _Shelf()
        shelf.put(run)
        self._order.append(journal)
        self.size += len(run.events) + RUN_BYTES
        while self.size > self._bytes_max:
            self._drop_oldest()

    def keep_inherited(self, journal: str, events: list[Event]) -> int:
        """What another broker had admitted was noted in that journal; it may be here already, from an earlier life."""
        shelf = self._shelves.get(journal)
        if shelf is not None and shelf.has(events[0]):
            return len(_encode(events))
        return self.keep(journal, events)

    @property
    def has_room(self) -> bool:
        """Whether more can be kept of what is old, so that nothing younger is dropped for it soon."""
        return 10 * self.size < 9 * self._bytes_max

    def keep_again(self, journal: str, events: Iterable[Event]) -> None:
        """That journal is told again: some of it may be here already."""
        shelf = self._shelves.get(journal)
        run: list[Event] = []
        for event in events:
            if shelf is not None and shelf.has(event):
                continue
            if run and (event.stamp, event.publisher, event.seq) != (run[0].stamp, run[0].publisher, run[-1].seq + 1):
                self.keep(journal, run)
                run = []
            run.append(event)
        if run:
            self.keep(journal, run)

    def _drop_oldest(self) -> None:
        journal = self._order.popleft()
        run = self._shelves[journal].drop()
        if self.mirror is not None:
            self.mirror.drop(journal)
        self.size -= len(run.events) + RUN_BYTES
        self.dropped = max(self.dropped, run.stamp)

    def read(self, journal: str, since: int, until: int, test: Callable[[Attributes], bool]) -> Page:
        """A page of what that journal got between two positions, as far as it is here, and matches."""
        shelf = self._shelves.get(journal)
        held: Ranges = {}
        passed: Ranges = {}
        events: list[Event] = []
        size, upto = 0, until
        for run in () if shelf is None else shelf.after(since):
            if run.stamp > until:
                break
            add_range(held, run.publisher, run.first, run.last)
            if size >= PAGE_BYTES and run.stamp > upto:
                continue
            add_range(passed, run.publisher, run.first, run.last)
            size += len(run.events)
            upto = run.stamp
            events += [event for event in _decode(run.events) if test(event.attributes)]
        return Page(held, passed, until if size < PAGE_BYTES else upto, events)
