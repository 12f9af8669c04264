"""Inspects the data directory of a stopped broker: shows what it contains and checks that nothing
is damaged.

Nothing is modified: a remaining write-ahead log is read as it is and left in place.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gapless.errors import StorageError
from gapless.storage.directory import Directory
from gapless.storage.heads import NONE, Heads, read_heads
from gapless.storage.interface import DamagedError, HistoryTotals
from gapless.storage.messages import REFILL, SQLITE_ERRORS, cannot_open
from gapless.storage.reader import read_entries, read_history
from gapless.storage.schema import VERSION, About, open_for_reading, read_about

__all__ = ["Checked", "Contents", "check_directory", "show_directory"]

PIECE_BYTES = 8 * 1024 * 1024
PROBLEMS_MAX = 100
"""Maximum number of problems reported of each kind."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a directory, according to its own records."""

    version: int
    about: About
    commits: int
    missing: int
    """The number of commits that were reported but are not in the file."""
    file_bytes: int
    """The size of the database, including the write-ahead log."""
    history: dict[str, HistoryTotals]
    entries: dict[str, int]
    """The size of each entry, by key."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The problems found in a directory, one sentence each, and the amount of data examined."""

    about: About
    rows: int
    bytes: int
    problems: tuple[str, ...]


def show_directory(path: Path) -> Contents:
    """Return the contents of a directory. Raise a `StorageError` if they cannot be read."""
    with _examined(path) as (directory, connection, about, heads):
        entries = read_entries(connection, directory.database, heads)
        return Contents(
            VERSION, about, heads.commits, max(0, directory.read_mark() - heads.commits), _file_bytes(directory),
            {origin: heads.history[origin].totals for origin in sorted(heads.history)},
            {key: len(blob) for key, blob in entries.items()},
        )  # fmt: skip


def check_directory(path: Path, announce: Callable[[str], None] = lambda stage: None) -> Checked:
    """Read and verify all data. Raise a `StorageError` if it cannot be read at all."""
    with _examined(path) as (directory, connection, about, heads):
        problems: list[str] = []
        missing = directory.read_mark() - heads.commits
        if missing > 0:
            problems.append(
                f"{path}: the last {missing:,} commits that were reported as written are missing: the log was "
                "truncated or damaged, or the file is an older copy"
            )
        announce("SQLite's own check")
        problems += _sqlite_problems(connection, directory.database)
        rows = size = 0
        for found in _contents(connection, directory.database, heads, announce):
            if isinstance(found, DamagedError):
                problems.append(str(found))
            else:
                rows += found[0]
                size += found[1]
        problems += _unknown_rows(connection, directory.database, heads)
        return Checked(about, rows, size, tuple(dict.fromkeys(problems)))


@contextmanager
def _examined(path: Path) -> Iterator[tuple[Directory, sqlite3.Connection, About, Heads]]:
    directory = Directory(path, create=False)
    try:
        if directory.database.exists() and not directory.database.stat().st_size:  # SQLite would remove its log
            raise StorageError(_why_empty(directory))
        connection = open_for_reading(directory.database)
        try:
            about = read_about(connection, directory.database)
            if about is None:
                raise StorageError(_why_empty(directory))
            heads, wrong = read_heads(connection)
            if wrong:
                raise StorageError(f"{directory.database} is damaged: {wrong}; {REFILL}")
            yield directory, connection, about, heads
        finally:
            connection.close()
    except SQLITE_ERRORS as error:
        raise cannot_open(directory.database, error) from None
    finally:
        directory.close()


def _why_empty(directory: Directory) -> str:
    """Return why a database is empty: nothing was ever written, or the data was lost."""
    place, commits, log_bytes = directory.path, directory.read_mark(), _log_bytes(directory)
    signs = [f"{commits:,} commits were reported"] if commits else []
    signs += [f"its log holds {log_bytes:,} bytes"] if log_bytes else []
    if not signs:
        return f"there is no data of a broker at {place} yet: {directory.database.name} is empty"
    return f"{directory.database} is damaged: it is empty, although {' and '.join(signs)}; {REFILL}"


def _log_bytes(directory: Directory) -> int:
    log = directory.database.with_name(f"{directory.database.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _file_bytes(directory: Directory) -> int:
    return directory.database.stat().st_size + _log_bytes(directory)


def _sqlite_problems(connection: sqlite3.Connection, file: Path) -> list[str]:
    try:
        lines = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})")]
    except SQLITE_ERRORS as error:
        lines = [str(error)]
    return [f"{file}: SQLite reports: {' '.join(line.split())}" for line in lines if line != "ok"]


def _contents(
    connection: sqlite3.Connection, file: Path, heads: Heads, announce: Callable[[str], None]
) -> Iterator[tuple[int, int] | DamagedError]:
    """Yield, for each part of the data, the number of intact rows and their size in bytes, or the damage found."""
    for origin in sorted(heads.history):
        announce(f"history of {origin}")
        yield from _history(connection, file, heads, origin)
    announce("entries")
    try:
        entries = read_entries(connection, file, heads)
        yield len(entries), sum(map(len, entries.values()))
    except DamagedError as error:
        yield error


def _history(
    connection: sqlite3.Connection, file: Path, heads: Heads, origin: str
) -> Iterator[tuple[int, int] | DamagedError]:
    head = heads.history[origin]
    reached, damages = NONE, 0
    while reached < head.last and damages < PROBLEMS_MAX:
        try:
            rows = read_history(connection, file, head, origin, reached, head.last, PIECE_BYTES)
            reached = rows[-1].last
            yield len(rows), sum(len(row.blob) for row in rows)
        except DamagedError as error:
            reached = error.until
            damages += 1
            yield error


def _unknown_rows(connection: sqlite3.Connection, file: Path, heads: Heads) -> Iterator[str]:
    """Yield a sentence for each origin whose rows have no head."""
    try:
        found = {str(row[0]) for row in connection.execute("SELECT DISTINCT origin FROM history")}
    except SQLITE_ERRORS:
        return  # SQLite's own check has reported this
    for origin in sorted(found - set(heads.history)):
        yield f"{file}: the table of history has rows of {origin!r}, which is not registered"
