"""History goes to the disk as it comes: the runs of one step are one *piece* of their journal.

The disk tells pieces of a journal apart by the last stamp that they cover. What was inherited has an old stamp, so a
piece covers as much as is needed to come after the one before it.

The disk holds more than the memory. What it holds is known here by numbers of events, in *chunks* of some pieces each;
when there is too much of it, or it is too old, the oldest chunk goes.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable

import msgspec

from gapless.disk import HistoryRow
from gapless.events import Event
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.history.runs import Run
from gapless.protocols.gapless.messages import NOBODY, Ranges
from gapless.protocols.parts.ranges import add_range, without

__all__ = ["NAMED_FACTOR", "Mirror", "read_piece"]

CHUNK_BYTES = 256 * 1024
NAMED_FACTOR = 4
"""So many times as much is kept, at most, while durable subscriptions have not taken it."""
RUN_BYTES = 100
"""What a run takes on the disk beside its events."""
_decode = msgspec.msgpack.Decoder(list[Run]).decode


def read_piece(row: HistoryRow) -> list[Run]:
    """The runs of a piece."""
    return _decode(row.blob)


class _Chunk:
    """Some pieces of a journal."""

    def __init__(self) -> None:
        self.last = 0
        self.size = 0
        self.numbers: Ranges = {}


class Mirror:
    """The history of one broker on its disk."""

    def __init__(self, disk: Disk, bytes_max: int) -> None:
        self.size = 0
        """In bytes."""
        self._disk = disk
        self._bytes_max = bytes_max
        self._chunk_bytes = min(CHUNK_BYTES, bytes_max // 8)
        self._fresh: dict[str, list[Run]] = {}
        """What came in this step, by journal."""
        self._chunks: dict[str, deque[_Chunk]] = {}
        self._numbers: dict[str, Ranges] = {}
        """By journal: what is there."""
        self._last: dict[str, int] = {}
        """By journal: the last stamp of its last piece."""

    def found(self, journal: str, last: int, runs: Iterable[Run]) -> None:
        """The disk has a piece, or is about to."""
        chunks = self._chunks.setdefault(journal, deque())
        if not chunks or chunks[-1].size >= self._chunk_bytes:
            chunks.append(_Chunk())
        chunk, numbers = chunks[-1], self._numbers.setdefault(journal, {})
        chunk.last = self._last[journal] = last
        for run in runs:
            size = len(run.events) + RUN_BYTES
            chunk.size += size
            self.size += size
            add_range(chunk.numbers, run.publisher, run.first, run.last)
            add_range(numbers, run.publisher, run.first, run.last)

    def has(self, journal: str, event: Event) -> bool:
        """Whether that journal's event is there, or about to be."""
        known = self._numbers.get(journal, {}).get(event.publisher, ())
        place = bisect_right(known, event.seq, key=lambda item: item[0]) - 1
        return place >= 0 and event.seq <= known[place][1]

    def keep(self, journal: str, run: Run) -> None:
        """Another run is kept."""
        self._fresh.setdefault(journal, []).append(run)

    @property
    def has_room(self) -> bool:
        """Whether more of what is old can be kept, so that nothing younger is dropped for it soon."""
        return 10 * self.size < 9 * self._bytes_max

    @property
    def beyond(self) -> int:
        """How many bytes there are beyond the bound."""
        return max(0, self.size - self._bytes_max)

    @property
    def batch(self) -> int:
        """The number of the batch with which the runs of this step go to the disk."""
        return self._disk.next

    def end_step(self) -> None:
        """Put what came in this step on the disk."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, {}
        for journal, runs in fresh.items():
            stamps = [run.stamp for run in runs]
            last = max(*stamps, self._last.get(journal, -1) + 1)
            self._disk.admit(journal, min(stamps), last, sum(run.last - run.first + 1 for run in runs), runs)
            self.found(journal, last, runs)

    def drop(self, before: int, floor: int = NOBODY) -> int:
        """Drop what is too much, and what is no younger than a stamp. What is younger than `floor` goes only if there
        is far too much. Returns the last stamp that was dropped."""
        dropped = 0
        while self._chunks:
            journal = min(self._chunks, key=lambda name: self._chunks[name][0].last)
            chunk = self._chunks[journal][0]
            is_spare = chunk.last <= floor and (self.size > self._bytes_max or chunk.last <= before)
            if not is_spare and self.size <= self._bytes_max * (1 if floor == NOBODY else NAMED_FACTOR):
                break
            dropped = max(dropped, chunk.last)
            self._forget(journal)
        return dropped

    def _forget(self, journal: str) -> None:
        chunk = self._chunks[journal].popleft()
        self.size -= chunk.size
        self._disk.forget_history(journal, chunk.last)
        self._numbers[journal] = without(self._numbers[journal], chunk.numbers)
        if not self._chunks[journal]:
            del self._chunks[journal], self._numbers[journal]
