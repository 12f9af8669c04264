"""A broker's disk: journals, history and entries in one SQLite file, committed outside the event
loop.

`open_store` opens a directory, or creates it. The store does not interpret the blobs that it keeps.
"""

from gapless.storage.interface import (
    SYNCS,
    Admit,
    Append,
    Change,
    DamagedError,
    Delete,
    Drop,
    ForgetHistory,
    Found,
    HistoryRow,
    HistoryTotals,
    JournalRow,
    JournalTotals,
    NoRoomError,
    Put,
    Reader,
    Snapshot,
    StorageSettings,
    Store,
    Sync,
    TruncateHistory,
)
from gapless.storage.store import open_store

__all__ = [
    "SYNCS",
    "Admit",
    "Append",
    "Change",
    "DamagedError",
    "Delete",
    "Drop",
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
    "StorageSettings",
    "Store",
    "Sync",
    "TruncateHistory",
    "open_store",
]
