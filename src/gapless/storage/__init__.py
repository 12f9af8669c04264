"""Stores the data of a broker on disk: history and entries in one SQLite file, committed outside the event loop.

`open_store` opens a directory, or creates it. The store does not interpret the blobs that it keeps.
"""

from gapless.storage.interface import (
    SYNCS,
    Admit,
    Change,
    DamagedError,
    Delete,
    ForgetHistory,
    Found,
    HistoryRow,
    HistoryTotals,
    NoRoomError,
    Put,
    Reader,
    StorageSettings,
    Store,
    Sync,
)
from gapless.storage.store import open_store

__all__ = [
    "SYNCS",
    "Admit",
    "Change",
    "DamagedError",
    "Delete",
    "ForgetHistory",
    "Found",
    "HistoryRow",
    "HistoryTotals",
    "NoRoomError",
    "Put",
    "Reader",
    "StorageSettings",
    "Store",
    "Sync",
    "open_store",
]
