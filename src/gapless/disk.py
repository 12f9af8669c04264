"""Defines the changes and the contents of a broker's disk: the interface between a broker, which performs no I/O, and
the runtime that stores its data.

A disk contains history (blobs by origin, each with a range of timestamps) and entries (a blob under a key).
`gapless.storage` stores them in a file, the simulator in memory.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

__all__ = [
    "Admit",
    "Change",
    "Delete",
    "DiskContents",
    "ForgetHistory",
    "HistoryRow",
    "Put",
]

# ---- changes --------------------------------------------------------------------------------------------------


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
    """Delete pieces of an origin whose whole range is at or before a timestamp, including those admitted in the
    meantime.

    They are deleted gradually, the oldest first, so that a large number of them delays nothing else. A stop in between
    leaves the younger ones: repeat the request after a restart.
    """

    origin: str
    upto: int


class Put(Struct, frozen=True):
    """Store an entry, replacing an earlier one under the same key."""

    key: str
    blob: bytes


class Delete(Struct, frozen=True):
    """Delete an entry, if it exists."""

    key: str


Change: TypeAlias = Admit | ForgetHistory | Put | Delete


# ---- contents -------------------------------------------------------------------------------------------------


class HistoryRow(Struct, frozen=True):
    first: int
    last: int
    count: int
    blob: bytes


class DiskContents(Struct, frozen=True):
    """The contents of a disk when its broker starts."""

    history: Mapping[str, Iterable[HistoryRow]] = {}
    """The history of each origin, ordered by last timestamp. It can be iterated once."""
    entries: Mapping[str, bytes] = {}
    is_new: bool = True
    """Whether no broker has started with this disk before. A used disk can be empty, too: its broker stopped before the
    first batch was synced, so it had confirmed nothing."""
