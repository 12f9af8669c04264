"""Describes errors of SQLite and of the operating system, each with advice."""

import sqlite3
from pathlib import Path

from gapless.errors import StorageError

__all__ = ["REFILL", "SQLITE_ERRORS", "cannot_open", "cannot_write"]

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The errors that SQLite raises. `UnicodeDecodeError` occurs when its message quotes bytes of a damaged file."""

REFILL = "move the directory away and start with an empty one; brokers that hold copies refill it"

_REASONS = {
    "SQLITE_FULL": ("the disk is full", "free some space and start the broker again"),
    "SQLITE_IOERR_FSYNC": ("the disk failed to sync the written data", "check the disk, then start the broker again"),
    "SQLITE_IOERR_DIR_FSYNC": ("the disk failed to sync", "check the disk, then start the broker again"),
    "SQLITE_READONLY": ("it is not writable", "give this user write permission"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "give this user permission to read and write it"),
    "SQLITE_CORRUPT": ("it is damaged", REFILL),
    "SQLITE_NOTADB": ("it does not contain a broker's data, or its beginning is damaged", REFILL),
}
"""The description and the advice for each prefix of SQLite's error names. The longest matching prefix is used."""


def _reason(error: BaseException) -> tuple[str, str]:
    if isinstance(error, UnicodeDecodeError):
        return _REASONS["SQLITE_CORRUPT"]
    if isinstance(error, OSError):
        return error.strerror or str(error), "check the disk, then start the broker again"
    name = getattr(error, "sqlite_errorname", None) or ""
    fitting = [known for known in _REASONS if name.startswith(known)]
    if fitting:
        return _REASONS[max(fitting, key=len)]
    if name.startswith("SQLITE_IOERR"):
        kind = name.removeprefix("SQLITE_IOERR").strip("_").lower()
        return f"the disk failed ({kind or error})", "check the disk, then start the broker again"
    if isinstance(error, sqlite3.Error):
        return f"{error}", "check the disk, then start the broker again"
    return f"{type(error).__name__}: {error}", "this is a bug in Gapless; please report it"


def cannot_open(place: Path, error: BaseException) -> StorageError:
    """Return the error for data that cannot be opened."""
    what, way_out = _reason(error)
    return StorageError(f"{place}: {what}; {way_out}")


def cannot_write(place: Path, error: BaseException) -> StorageError:
    """Return the error for a commit or sync that failed. It is not retried."""
    what, way_out = _reason(error)
    return StorageError(f"{place}: {what}; the broker stops writing to it, and confirmed data on it is kept; {way_out}")
