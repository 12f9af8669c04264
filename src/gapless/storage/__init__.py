"""A broker's disk: journals, history and entries in one SQLite file, committed off the event loop.

`open_store` opens a directory, or makes it. Nothing here knows what the blobs mean.
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
