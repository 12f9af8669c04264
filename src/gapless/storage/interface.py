"""What a broker can put on its disk, and ask it for.

A store holds three kinds of things, all of them bytes that it does not look into:

- *Journals*: numbered blobs under a name. A snapshot stands for everything up to its number.
- *History*: blobs by origin, each with the range of stamps that it covers.
- *Entries*: a blob under a key, for small things.

Changes are handed over in batches. A batch is taken as a whole or not at all, in the order in which they were handed
over. A background thread commits as many at a time as there are, and reports it; what a report means is the matter of
`Sync`. Reading is blocking, for threads of the caller: a `Reader` sees what was committed before it asks.

Whatever goes wrong with the disk, the store says so once and does nothing more: a commit or sync that failed is never
tried again, because nobody knows what the disk has done with the first attempt.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from gapless.disk import (
    Admit,
    Append,
    Change,
    Delete,
    Drop,
    ForgetHistory,
    HistoryRow,
    JournalRow,
    Put,
    Snapshot,
    TruncateHistory,
)
from gapless.errors import StorageError

__all__ = [
    "SYNCS",
    "Admit",
    "Append",
    "Change",
    "DamagedError",
    "Delete",
    "Drop",
    "Failed",
    "ForgetHistory",
    "Found",
    "HistoryRow",
    "HistoryTotals",
    "JournalRow",
    "JournalTotals",
    "NoRoomError",
    "Put",
    "Reader",
    "Snapshot",
    "StorageError",
    "StorageSettings",
    "Store",
    "Sync",
    "Synced",
    "TruncateHistory",
]

Sync: TypeAlias = Literal["always", "interval", "never"]
"""When the disk is made to keep what was written.

- `always`: before a batch is reported. Nothing reported is lost, unless the disk lies or breaks.
- `interval`: every so many milliseconds; a batch is reported when it was written. The end of a process loses nothing; a
  power cut, or the end of the operating system, loses what was reported in the last interval.
- `never`: when the log is folded into the file, every few megabytes, and at the end. The end of a process loses
  nothing; a power cut loses what was reported since. What is left is whole: the state after one of the commits.
"""
SYNCS: tuple[Sync, ...] = ("always", "interval", "never")


# ---- what is read ---------------------------------------------------------------------------------------------


class JournalTotals(Struct, frozen=True):
    """What is kept of a journal, its snapshot included. `last` is the highest number."""

    rows: int
    bytes: int
    first: int
    last: int


class HistoryTotals(Struct, frozen=True):
    """What is kept of an origin; stamps of the first and the last event."""

    rows: int
    bytes: int
    events: int
    first: int
    last: int


class Found(Struct, frozen=True):
    """What the store was when it was opened."""

    is_new: bool
    """The directory was empty: there is nothing in it yet."""
    missing: int
    """So many commits had been reported and are not there: the disk has lost its latest state, and is an old one.
    0 if none is known to be missing: what the disk lost along with the memory of it cannot be known."""
    exposed: tuple[str, ...] = ()
    """Sentences about files of the directory that others could use before it was opened."""


class DamagedError(StorageError):
    """Something that was written cannot be read as it was. All else can.

    Of history, `since` and `until` say what is missing: whatever lies in (since, until]. Whoever reads goes on from
    `until`, and gets from elsewhere what is between. Of a journal, or of an entry, all of it is lost.
    """

    def __init__(self, message: str, kind: str, name: str, since: int = 0, until: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        """`journal`, `history` or `entry`."""
        self.name = name
        """Of the journal, of the origin, or the key."""
        self.since = since
        self.until = until


class NoRoomError(StorageError):
    """A batch was handed over while `room()` was 0 or less. It was not taken."""


# ---- the store ------------------------------------------------------------------------------------------------


class StorageSettings(Struct, frozen=True):
    sync: Sync = "always"
    interval_ms: float = 100.0
    """With `interval`: how long something written may wait to be synced."""
    queue_bytes_max: int = 64 * 1024 * 1024
    """How much may wait to be committed: some seconds of a slow disk."""


class Store(Protocol):
    """One broker's disk. `synced` and `failed`, given at the opening, are called in the store's thread."""

    @property
    def found(self) -> Found: ...

    @property
    def failure(self) -> StorageError | None:
        """Why nothing is written any more, or None."""

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Hand over a batch; returns at once. `synced(batch)` follows, or `failed(error)`, never both.

        Numbers of batches grow; `synced(n)` is said of the last batch of a commit, and is true of all before it.
        A batch is taken as long as `room()` is positive, however large it is: so the queue exceeds its bound by one
        batch at most. Without room, a `NoRoomError`; after a failure, the failure.
        """

    def room(self) -> int:
        """How many bytes may be written before the queue is full. It grows with each report of `synced`."""

    def journals(self) -> Mapping[str, JournalTotals]:
        """As of the last commit; cheap."""

    def history_totals(self) -> Mapping[str, HistoryTotals]:
        """As of the last commit, by origin; cheap."""

    def reader(self) -> "Reader":
        """A new one, which its caller closes."""

    def close(self) -> None:
        """Commit and sync what was handed over, and give the directory free. Blocking."""


class Reader(Protocol):
    """Blocking, for one thread at a time. Each call sees one state, that after some batch."""

    def journals(self) -> Mapping[str, JournalTotals]: ...

    def read_journal(self, name: str) -> list[JournalRow]:
        """From the last snapshot on, ascending; nothing if there is no such journal."""

    def history(self, origin: str, since: int, until: int, bytes_max: int) -> list[HistoryRow]:
        """Pieces whose range meets (since, until], ascending by their last stamp; go on from the last one's.

        At least one if there is one, and then as many as fit into `bytes_max`; none: there are no more. If the first
        that is due is damaged, a `DamagedError` says how far; what is readable before a damage is returned first.
        """

    def history_totals(self) -> Mapping[str, HistoryTotals]: ...

    def oldest(self, origin: str, bytes_min: int) -> int | None:
        """How far the oldest pieces reach that take at least so many bytes: what to forget to get room for as many.

        None if all of them together take less.
        """

    def entries(self, prefix: str = "") -> dict[str, bytes]:
        """All whose key begins so, by key."""

    def close(self) -> None: ...


Synced: TypeAlias = Callable[[int], object]
Failed: TypeAlias = Callable[[StorageError], object]
