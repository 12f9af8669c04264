"""The changes of a disk, and its contents: the interface between a broker, which performs no I/O, and the runtime that
stores its data.

A disk contains journals (numbered blobs under a name), history (blobs by origin, each with a range of timestamps) and
entries (a blob under a key). `gapless.storage` stores them in a file, the simulator in memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

__all__ = [
    "Admit",
    "Append",
    "Change",
    "Delete",
    "DiskContents",
    "Drop",
    "ForgetHistory",
    "HistoryRow",
    "JournalRow",
    "Put",
    "Snapshot",
    "TruncateHistory",
]

# ---- changes --------------------------------------------------------------------------------------------------


class Append(Struct, frozen=True):
    """Append a blob to a journal. A blob under the same number is replaced."""

    journal: str
    number: int
    blob: bytes


class Snapshot(Struct, frozen=True):
    """Replace everything in a journal up to and including `number`. Later entries stay."""

    journal: str
    number: int
    blob: bytes


class Drop(Struct, frozen=True):
    """Delete a journal and its name."""

    journal: str


class Admit(Struct, frozen=True):
    """Add a piece of history: `count` events of `origin` with timestamps from `first` to `last`, both included.

    It replaces a piece of the same origin with the same `last`, which repairs damaged history. Pieces can arrive in any
    order, and can overlap.
    """

    origin: str
    first: int
    last: int
    count: int
    blob: bytes


class ForgetHistory(Struct, frozen=True):
    """Delete pieces of an origin whose whole range is at or before a timestamp, including those admitted meanwhile.

    They are deleted gradually, the oldest first, so that a large number of them delays nothing else. A stop in between
    leaves the younger ones: repeat the request after a restart.
    """

    origin: str
    upto: int


class TruncateHistory(Struct, frozen=True):
    """Delete at once the pieces of an origin whose first timestamp is after a timestamp."""

    origin: str
    beyond: int


class Put(Struct, frozen=True):
    """Store an entry, replacing an earlier one under the same key."""

    key: str
    blob: bytes


class Delete(Struct, frozen=True):
    """Delete an entry, if it exists."""

    key: str


Change: TypeAlias = Append | Snapshot | Drop | Admit | ForgetHistory | TruncateHistory | Put | Delete


# ---- what is found --------------------------------------------------------------------------------------------


class JournalRow(Struct, frozen=True):
    number: int
    is_snapshot: bool
    blob: bytes


class HistoryRow(Struct, frozen=True):
    first: int
    last: int
    count: int
    blob: bytes


class DiskContents(Struct, frozen=True):
    """The contents of a disk when a broker starts."""

    journals: Mapping[str, Sequence[JournalRow]] = {}
    """By name, the entries from the last snapshot on, ascending."""
    history: Mapping[str, Iterable[HistoryRow]] = {}
    """By origin, ascending by the last timestamp; can be iterated once."""
    entries: Mapping[str, bytes] = {}
    is_new: bool = True
    """Whether no broker has started with this disk before. A used disk can be empty, too: its broker stopped before the
    first batch was synced, so it had confirmed nothing."""
