"""The file: its tables, its version, whose it is, and how it is opened.

One connection writes and folds the log into the file, in one thread; all others read. Besides being simple, this is
needed: in SQLite before 3.51.3, two connections that write and fold at the same instant can damage a file.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from gapless.errors import StorageError
from gapless.storage.checksums import checksum
from gapless.storage.messages import REFILL, SQLITE_ERRORS, cannot_open

__all__ = ["VERSION", "About", "insert_rows", "open_for_reading", "open_for_writing", "read_about", "write_schema"]

VERSION = 1
APPLICATION = int.from_bytes(b"Gpls", "big")

PAGE_BYTES = 8192
"""Measured: small rows and large ones are written and read at least as fast as with 4 or 16 KiB."""
CACHE_KIB = 8192
READERS_WAITED_FOR_S = 1.0
"""By the one who writes, when the log has to begin anew: longer than a call of a reader takes."""
ROWS_AT_ONCE = 32
"""Inserted by one statement. Between two, a thread has to get the interpreter back from the one that serves clients."""

TABLES = """
CREATE TABLE about (network TEXT NOT NULL, broker TEXT NOT NULL, created TEXT NOT NULL, crc INTEGER NOT NULL);

CREATE TABLE journals (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, is_snapshot INTEGER NOT NULL,
  size INTEGER NOT NULL, crc INTEGER NOT NULL, blob BLOB NOT NULL);
CREATE INDEX journal_rows ON journals (name, number, is_snapshot, size);

CREATE TABLE history (
  id INTEGER PRIMARY KEY, origin TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL,
  size INTEGER NOT NULL, previous INTEGER NOT NULL, link INTEGER NOT NULL, crc INTEGER NOT NULL, blob BLOB NOT NULL);
CREATE INDEX history_rows ON history (origin, last, first, count, size);

CREATE TABLE entries (key TEXT PRIMARY KEY, crc INTEGER NOT NULL, blob BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE heads (
  kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (kind, name)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class About:
    """Whose data it is."""

    network: str
    broker: str
    created: str


def open_for_writing(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=READERS_WAITED_FOR_S)
    try:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StorageError(f"{file}: this file system cannot share memory between connections; name a local disk")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # the writer decides when
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA synchronous = FULL")
        return connection
    except BaseException:
        connection.close()
        raise


def open_for_reading(file: Path) -> sqlite3.Connection:
    """Cannot change the file, nor fold the log into it."""
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def write_schema(connection: sqlite3.Connection, network: str, broker: str) -> None:
    """Tables, and whose they are, inside a transaction of the caller's."""
    about = About(network, broker, datetime.now(UTC).isoformat(timespec="seconds"))
    for statement in TABLES.split(";"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO about VALUES (?, ?, ?, ?)",
        (about.network, about.broker, about.created, checksum(b"", about.network, about.broker, about.created)),
    )
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def insert_rows(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """With as few statements as it can be; `statement` ends with the places for one row."""
    values = statement[statement.rindex("(") :]
    for place in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[place : place + ROWS_AT_ONCE]
        connection.execute(f"{statement}{f', {values}' * (len(some) - 1)}", list(chain(*some)))


def read_about(connection: sqlite3.Connection, file: Path) -> About | None:
    """Whose it is; None if it is empty. An error if it is not ours, or of another version."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if not application and not version and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        return None
    if application != APPLICATION:
        raise StorageError(f"{file} is no data of a broker, or its beginning is damaged; {REFILL}")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise StorageError(
            f"{file} was written by {age} Gapless: its format has version {version}, this one uses version {VERSION}; "
            f"run the one that wrote it, or {REFILL}"
        )
    try:
        row = connection.execute("SELECT network, broker, created, crc FROM about").fetchone()
    except SQLITE_ERRORS as error:
        raise cannot_open(file, error) from None
    if row is None or row[3] != checksum(b"", *row[:3]):
        raise StorageError(f"{file} is damaged where it says whose it is; {REFILL}")
    return About(*row[:3])
