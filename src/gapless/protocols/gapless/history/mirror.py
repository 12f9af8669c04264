"""History goes to the disk as it comes: the runs of one step are one *piece* of their journal.

The disk tells pieces of a journal apart by the last stamp that they cover. What was inherited has an old stamp, so a
piece covers as much as is needed to come after the one before it.
"""

from collections import deque

import msgspec

from gapless.disk import HistoryRow
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.history.runs import Run

__all__ = ["Mirror", "read_piece"]

_decode = msgspec.msgpack.Decoder(list[Run]).decode


def read_piece(row: HistoryRow) -> list[Run]:
    """The runs of a piece."""
    return _decode(row.blob)


class Mirror:
    """The history of one broker on its disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._fresh: dict[str, list[Run]] = {}
        """What came in this step, by journal."""
        self._pieces: dict[str, deque[list[int]]] = {}
        """By journal, for each piece: its last stamp, and how many of its runs are still kept."""
        self._last: dict[str, int] = {}
        """By journal: the last stamp of its last piece."""

    def found(self, journal: str, last: int, runs: int) -> None:
        """The disk has a piece already."""
        self._pieces.setdefault(journal, deque()).append([last, runs])
        self._last[journal] = last

    def keep(self, journal: str, run: Run) -> None:
        """Another run is kept."""
        self._fresh.setdefault(journal, []).append(run)

    def drop(self, journal: str) -> None:
        """The oldest run of a journal is kept no more. A piece goes when all its runs have."""
        pieces = self._pieces.get(journal)
        if pieces:
            pieces[0][1] -= 1
            if pieces[0][1] <= 0:
                self._disk.forget_history(journal, pieces.popleft()[0])

    def end_step(self) -> None:
        """Put what came in this step on the disk."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, {}
        for journal, runs in fresh.items():
            stamps = [run.stamp for run in runs]
            last = max(*stamps, self._last.get(journal, -1) + 1)
            self._disk.admit(journal, min(stamps), last, sum(run.last - run.first + 1 for run in runs), runs)
            self.found(journal, last, len(runs))
