"""Defines the interface of a broker's store: what it keeps, and how it is written and read.

A store keeps two kinds of data, all of them opaque bytes:

- *History*: blobs by origin, each with the range of timestamps that it covers.
- *Entries*: a blob under a key, for small items.

Changes are written in batches. A batch is applied as a whole or not at all, in the order of the
calls. A background thread commits all waiting batches together and reports it; `Sync` says what a
report guarantees. Reads block, so they belong in threads of the caller. A `Reader` sees everything
that was committed before the call.

When the disk fails, the store reports it once and stops writing. A failed commit or sync is never
retried, because the state of the disk after the first attempt is unknown.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from gapless.disk import Admit, Change, Delete, ForgetHistory, HistoryRow, Put
from gapless.errors import StorageError

__all__ = [
    "SYNCS",
    "Admit",
    "Change",
    "DamagedError",
    "Delete",
    "Failed",
    "ForgetHistory",
    "Found",
    "HistoryRow",
    "HistoryTotals",
    "NoRoomError",
    "Put",
    "Reader",
    "StorageError",
    "StorageSettings",
    "Store",
    "Sync",
    "Synced",
]

Sync: TypeAlias = Literal["always", "interval", "never"]
"""When written data is synced to the disk.

- `always`: before a batch is reported. No reported batch is lost, unless the disk itself is faulty.
- `interval`: every `interval_ms`; a batch is reported when it is written. A crash of the process
  loses nothing. A power cut or a crash of the operating system loses what was reported since the
  last sync.
- `never`: when the log is checkpointed, every few megabytes, and at the end. A crash of the process
  loses nothing; a power cut loses what was reported since then. The remaining data is consistent:
  the state after one of the commits.
"""
SYNCS: tuple[Sync, ...] = ("always", "interval", "never")


# ---- reading ---------------------------------------------------------------------------------------------------


class HistoryTotals(Struct, frozen=True):
    """The totals of an origin's history, with the timestamps of its first and last event."""

    rows: int
    bytes: int
    events: int
    first: int
    last: int


class Found(Struct, frozen=True):
    """The state of the store when it was opened."""

    is_new: bool
    """Whether the directory was empty."""
    missing: int
    """The number of commits that were reported as done but are missing. If it is positive, the disk's state is stale.

    A loss that also destroyed the record of reported commits cannot be detected.
    """
    exposed: tuple[str, ...] = ()
    """Descriptions of files in the directory that other users could access before it was opened."""


class DamagedError(StorageError):
    """Raised when a part of the data is damaged. The rest can be read.

    For history, (`since`, `until`] is the damaged range: continue at `until` and fetch the range
    from another broker. A damaged entry is lost as a whole.
    """

    def __init__(self, message: str, kind: str, name: str, since: int = 0, until: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        """The kind of the damaged data: `history` or `entry`."""
        self.name = name
        """The origin of the history, or the key of the entry."""
        self.since = since
        self.until = until


class NoRoomError(StorageError):
    """Raised when a batch is written while `room()` is 0 or less. The batch was not accepted."""


# ---- the store ------------------------------------------------------------------------------------------------


class StorageSettings(Struct, frozen=True):
    sync: Sync = "always"
    interval_ms: float = 100.0
    """With `interval`, the longest time in milliseconds before written data is synced."""
    queue_bytes_max: int = 64 * 1024 * 1024
    """Maximum number of bytes that wait for a commit: a few seconds on a slow disk."""


class Store(Protocol):
    """The store of one broker. Its own thread calls the functions `synced` and `failed` that were passed to
    `open_store`."""

    @property
    def found(self) -> Found: ...

    @property
    def failure(self) -> StorageError | None:
        """Return the error that stopped the writer, or None."""

    def write(self, batch: int, changes: Sequence[Change]) -> None:
        """Enqueue a batch and return at once. Either `synced(batch)` or `failed(error)` follows,
        never both.

        Batch numbers increase. `synced(n)` reports the last batch of a commit and includes all
        batches before it. A batch of any size is accepted while `room()` is positive, so the queue
        exceeds its bound by at most one batch. Raises `NoRoomError` if there is no room, and the
        failure after a failure.
        """

    def room(self) -> int:
        """Return how many bytes can be written before the queue is full. Each report to `synced` frees space."""

    def history_totals(self) -> Mapping[str, HistoryTotals]:
        """Return the totals of each origin as of the last commit, without reading the disk."""

    def reader(self) -> "Reader":
        """Return a new reader, which the caller closes."""

    def close(self) -> None:
        """Commit and sync all waiting batches, and unlock the directory. This blocks."""


class Reader(Protocol):
    """Reads a store. Calls block; only one thread can use a reader at a time. Each call sees the state after one
    commit."""

    def history(self, origin: str, since: int, until: int, bytes_max: int) -> list[HistoryRow]:
        """Return the rows of history that overlap the range (since, until], ordered by last timestamp. Continue from
        the last one's.

        Returns as many as fit into `bytes_max`, but at least one if there is any. An empty list
        means that there are no more. Pieces before a damaged one are returned first; if the first
        one is damaged, `DamagedError` says up to where.
        """

    def history_totals(self) -> Mapping[str, HistoryTotals]: ...

    def oldest(self, origin: str, bytes_min: int) -> int | None:
        """Return the last timestamp of the oldest rows that take at least `bytes_min` bytes together.

        Forgetting up to there frees as many bytes. Returns None if all pieces together take less.
        """

    def entries(self, prefix: str = "") -> dict[str, bytes]:
        """Return all entries whose key begins with `prefix`."""

    def close(self) -> None: ...


Synced: TypeAlias = Callable[[int], object]
Failed: TypeAlias = Callable[[StorageError], object]
