"""The changes of a disk, and its contents: the interface between a broker, which keeps no file itself, and the runtime
that keeps one for it.

A disk holds journals (numbered blobs under a name), history (blobs by origin, each with a range of stamps) and entries
(a blob under a key). `gapless.storage` keeps them in a file, the simulator in memory.
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
    """Another blob of a journal. A blob that is there under the same number is replaced."""

    journal: str
    number: int
    blob: bytes


class Snapshot(Struct, frozen=True):
    """Stands for all of a journal up to and with `number`, which is forgotten. Later entries stay."""

    journal: str
    number: int
    blob: bytes


class Drop(Struct, frozen=True):
    """All of a journal is forgotten, and its name."""

    journal: str


class Admit(Struct, frozen=True):
    """A piece of history: `count` events of `origin` with stamps from `first` to `last`, both included.

    A piece of the same origin with the same `last` is replaced: so damaged history is repaired. Pieces may come in any
    order, and may overlap.
    """

    origin: str
    first: int
    last: int
    count: int
    blob: bytes


class ForgetHistory(Struct, frozen=True):
    """Pieces of an origin that lie at or before a stamp with all of their range are not needed any more.

    They go little by little, the oldest first, so that a large number of them holds up nobody; so do such as are
    admitted meanwhile. A stop in between leaves the younger ones: ask again after a start.
    """

    origin: str
    upto: int


class TruncateHistory(Struct, frozen=True):
    """Pieces of an origin whose first stamp is beyond a stamp are forgotten, at once."""

    origin: str
    beyond: int


class Put(Struct, frozen=True):
    """An entry, in the place of an earlier one under the same key."""

    key: str
    blob: bytes


class Delete(Struct, frozen=True):
    """An entry is forgotten, if it is there."""

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
    """All that a disk holds when a broker starts."""

    journals: Mapping[str, Sequence[JournalRow]] = {}
    """From the last snapshot on, ascending."""
    history: Mapping[str, Iterable[HistoryRow]] = {}
    """By origin, ascending by the last stamp; to be gone through once."""
    entries: Mapping[str, bytes] = {}
    is_new: bool = True
    """Whether no broker has started with this disk before. One that has may be empty: its broker stopped before the
    first batch was synced, and nothing was said that depends on it."""
