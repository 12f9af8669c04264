"""What SQLite and the system say of a disk, in a sentence with a way out."""

import sqlite3
from pathlib import Path

from gapless.errors import StorageError

__all__ = ["REFILL", "SQLITE_ERRORS", "cannot_open", "cannot_write"]

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises. The second, where its sentence quotes a damaged file, and the bytes are no text."""

REFILL = "move the directory away and start with an empty one: it is filled again by the brokers that hold copies"

_REASONS = {
    "SQLITE_FULL": ("the disk is full", "make room on it and start the broker again"),
    "SQLITE_IOERR_FSYNC": ("the disk failed to sync what was written", "look at the disk, then start the broker again"),
    "SQLITE_IOERR_DIR_FSYNC": ("the disk failed to sync", "look at the disk, then start the broker again"),
    "SQLITE_READONLY": ("it cannot be written", "give this user the right to write there"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "give this user the right to read and write there"),
    "SQLITE_CORRUPT": ("it is damaged", REFILL),
    "SQLITE_NOTADB": ("it is no data of a broker, or its beginning is damaged", REFILL),
}
"""By the beginning of the name of SQLite's error, the longest that fits."""


def _reason(error: BaseException) -> tuple[str, str]:
    if isinstance(error, UnicodeDecodeError):
        return _REASONS["SQLITE_CORRUPT"]
    if isinstance(error, OSError):
        return error.strerror or str(error), "look at the disk, then start the broker again"
    name = getattr(error, "sqlite_errorname", None) or ""
    fitting = [known for known in _REASONS if name.startswith(known)]
    if fitting:
        return _REASONS[max(fitting, key=len)]
    if name.startswith("SQLITE_IOERR"):
        kind = name.removeprefix("SQLITE_IOERR").strip("_").lower()
        return f"the disk failed ({kind or error})", "look at the disk, then start the broker again"
    if isinstance(error, sqlite3.Error):
        return f"{error}", "look at the disk, then start the broker again"
    return f"{type(error).__name__}: {error}", "this is a bug of ours; please report it"


def cannot_open(place: Path, error: BaseException) -> StorageError:
    """The data of a broker cannot be used."""
    what, way_out = _reason(error)
    return StorageError(f"{place}: {what}; {way_out}")


def cannot_write(place: Path, error: BaseException) -> StorageError:
    """A commit, a sync or what belongs to it failed. Nothing is tried again."""
    what, way_out = _reason(error)
    return StorageError(f"{place}: {what}; nothing more is kept on it, what was confirmed before stays; {way_out}")
