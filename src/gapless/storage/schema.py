"""Defines the SQLite file: its tables, its version, its owner, and how it is opened.

One thread owns the only connection that writes and checkpoints; all others read. SQLite before
3.51.3 requires this: two connections that write and checkpoint at the same instant can damage the
file.
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

VERSION = 2
APPLICATION = int.from_bytes(b"Gpls", "big")

PAGE_BYTES = 8192
"""The page size. It was measured to be at least as fast as 4 or 16 KiB, for small rows and large ones."""
CACHE_KIB = 8192
READERS_WAITED_FOR_S = 1.0
"""How long the writer waits for readers before it restarts the log: longer than any call of a reader."""
ROWS_AT_ONCE = 32
"""The number of rows per INSERT statement. Between two statements, the thread has to reacquire the interpreter lock."""

TABLES = """
CREATE TABLE about (network TEXT NOT NULL, broker TEXT NOT NULL, created TEXT NOT NULL, crc INTEGER NOT NULL);

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
    """The network and the broker to which a file belongs."""

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
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # the writer decides when to checkpoint
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA synchronous = FULL")
        return connection
    except BaseException:
        connection.close()
        raise


def open_for_reading(file: Path) -> sqlite3.Connection:
    """Open a connection that can neither change the file nor checkpoint its log."""
    uri = f"file:{quote(str(file.absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def write_schema(connection: sqlite3.Connection, network: str, broker: str) -> None:
    """Create the tables and record the owner, inside the caller's transaction."""
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
    """Insert rows with as few statements as possible; `statement` ends with the placeholders of one row."""
    values = statement[statement.rindex("(") :]
    for place in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[place : place + ROWS_AT_ONCE]
        connection.execute(f"{statement}{f', {values}' * (len(some) - 1)}", list(chain(*some)))


def read_about(connection: sqlite3.Connection, file: Path) -> About | None:
    """Return the owner of a file, or None if it is empty. Raise an error if it is not a broker's file or has another
    version.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if not application and not version and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
        return None
    if application != APPLICATION:
        raise StorageError(f"{file} does not hold a broker's data, or its beginning is damaged; {REFILL}")
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
        raise StorageError(f"{file} is damaged in the row that names its owner; {REFILL}")
    return About(*row[:3])
