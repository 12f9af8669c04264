"""Reads a store. Each call sees one state, checks every row, and reports each damaged range."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gapless.errors import StorageError
from gapless.storage.checksums import checksum, link, piece, span
from gapless.storage.heads import Heads, HistoryHead, read_heads
from gapless.storage.interface import DamagedError, HistoryRow, HistoryTotals
from gapless.storage.messages import REFILL, SQLITE_ERRORS, cannot_open
from gapless.storage.schema import open_for_reading

__all__ = ["FileReader", "read_entries", "read_history"]

_HISTORY = (
    "SELECT last, first, count, size, previous, link, crc, CASE WHEN first <= :until THEN blob END, id"
    " FROM history WHERE origin = :origin AND last > :since ORDER BY last"
)
STAMP_MAX = 2**63 - 1
SEARCHED_MAX = 10_000
"""The maximum number of rows searched for the end of a damaged range. If it is not found, the rest of the range counts
as damaged."""


class FileReader:
    """A `Reader` with a connection of its own."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._connection = open_for_reading(file)
        except SQLITE_ERRORS as error:
            raise cannot_open(file, error) from None

    def close(self) -> None:
        self._connection.close()

    def history_totals(self) -> Mapping[str, HistoryTotals]:
        with self._state() as heads:
            return {origin: head.totals for origin, head in heads.history.items()}

    def history(self, origin: str, since: int, until: int, bytes_max: int) -> list[HistoryRow]:
        until = min(until, STAMP_MAX)
        with self._state() as heads:
            head = heads.history.get(origin)
            if head is None or since >= min(until, head.last):
                return []
            return read_history(self._connection, self._file, head, origin, since, until, bytes_max)

    def oldest(self, origin: str, bytes_min: int) -> int | None:
        with self._state():
            size = 0
            for last, each in self._connection.execute(
                "SELECT last, size FROM history WHERE origin = ? ORDER BY last", (origin,)
            ):
                size += each
                if size >= bytes_min:
                    return int(last)
            return None

    def entries(self, prefix: str = "") -> dict[str, bytes]:
        with self._state() as heads:
            found = read_entries(self._connection, self._file, heads)
            return {key: blob for key, blob in found.items() if key.startswith(prefix)}

    @contextmanager
    def _state(self) -> Iterator[Heads]:
        """Hold a read transaction, so that all reads inside the block see the same state."""
        try:
            self._connection.execute("BEGIN")
            try:
                heads, wrong = read_heads(self._connection)
                if wrong:
                    raise StorageError(f"{self._file} is damaged: {wrong}; {REFILL}")
                yield heads
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except SQLITE_ERRORS as error:
            raise cannot_open(self._file, error) from None


def read_entries(connection: sqlite3.Connection, file: Path, heads: Heads) -> dict[str, bytes]:
    """Read all entries in one query, so that a missing one is detected."""
    found: dict[str, bytes] = {}
    try:
        for key, check, blob in connection.execute("SELECT key, crc, blob FROM entries ORDER BY key"):
            if checksum(blob, key) != check:
                raise DamagedError(f"{file}: the entry {key!r} is damaged", "entry", key)
            found[key] = blob
    except (*SQLITE_ERRORS, TypeError) as error:  # TypeError: a damaged column has another type
        raise DamagedError(f"{file}: the entries cannot be read: {error}", "entry", "") from None
    if len(found) != heads.entries:
        raise DamagedError(f"{file}: there are {len(found)} entries where {heads.entries} were written", "entry", "")
    return found


def read_history(
    connection: sqlite3.Connection,
    file: Path,
    head: HistoryHead,
    origin: str,
    since: int,
    until: int,
    bytes_max: int,
) -> list[HistoryRow]:
    """Return rows of history as `Reader.history` does, checking each row and that it follows the one before."""
    rows: list[HistoryRow] = []
    reached, size = since, 0
    may_begin_after = max(since, head.forgotten)
    ends_at = min(until + head.widest, head.last)
    what = ""
    try:
        for row in connection.execute(_HISTORY, {"origin": origin, "since": since, "until": until}):
            last, first, count = row[:3]
            follows = row[4] == reached if reached > since else row[4] <= may_begin_after
            if not follows or not _is_whole(origin, row, until):
                what = "is damaged"
                break
            reached = last
            if first <= until:
                rows.append(HistoryRow(first, last, count, row[7]))
                size += row[3]
            if size >= bytes_max or last >= ends_at:
                return rows
    except (*SQLITE_ERRORS, TypeError) as error:  # columns of a damaged row have other types
        what = f"cannot be read ({error})"
    if rows:
        return rows
    end = _end_of_damage(connection, origin, since, until)
    raise DamagedError(
        f"{file}: the history of {origin} from {since} to {end} {what or 'is incomplete'}",
        "history", origin, since, end,
    )  # fmt: skip


def _is_whole(origin: str, row: tuple[Any, ...], until: int) -> bool:
    """Return whether the range, the link and, if it was read, the blob of a row are intact."""
    last, first, count, _, previous, linked, check, blob, *_ = row
    ranged = span(origin, first, last)
    return link(ranged, previous) == linked and bool(first > until or piece(ranged, count, blob) == check)


def _end_of_damage(connection: sqlite3.Connection, origin: str, since: int, until: int) -> int:
    """Return the timestamp before the next intact row that follows another one. Everything before it may be missing."""
    try:
        keys = connection.execute(
            "SELECT id, first FROM history WHERE origin = ? AND last > ? AND first > ? ORDER BY last LIMIT ?",
            (origin, since, since + 1, SEARCHED_MAX),
        ).fetchall()
    except SQLITE_ERRORS:
        return until
    for number, first in keys:
        if first > until:
            break
        try:
            row = connection.execute(
                "SELECT last, first, count, size, previous, link, crc, blob, id FROM history WHERE id = ?", (number,)
            ).fetchone()
            if row is not None and row[1] == first and _is_whole(origin, row, until):
                return int(first) - 1
        except (*SQLITE_ERRORS, TypeError):
            continue
    return until
