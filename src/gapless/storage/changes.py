"""Applies a batch of changes to the rows and heads of the database, inside a transaction.

Rows of history are chained: each row stores the last timestamp of the row before it. A reader of a
range can tell from the rows alone that none is missing inside it or at its ends.

Many rows are never deleted at once. Rows that are to be forgotten are deleted a few megabytes at a
time, together with later commits. This pending work is called *chores*.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gapless.storage.checksums import checksum, link, piece, span
from gapless.storage.heads import NONE, Heads, HistoryHead
from gapless.storage.interface import Admit, Change, Delete, ForgetHistory, Put
from gapless.storage.schema import insert_rows

__all__ = ["Changes"]

CHORE_ROWS = 10_000
"""Maximum number of rows that one commit deletes: about 20 ms for small rows."""

_ADD_HISTORY_ROW = (
    "INSERT INTO history (origin, first, last, count, size, previous, link, crc, blob)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

_Row: TypeAlias = tuple[int, int, int, int]
"""The id, the timestamp, the size and the count of a row."""


class Changes:
    """Applies changes on a connection, inside a transaction that the caller begins and ends."""

    def __init__(self, connection: sqlite3.Connection, heads: Heads) -> None:
        self._connection = connection
        self._heads = heads
        self._history_rows: list[tuple[object, ...]] = []
        self._chores: dict[str, int] = {}
        """The pending deletions: for each origin, the timestamp up to which rows are deleted."""

    @property
    def has_chores(self) -> bool:
        return bool(self._chores)

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            match change:
                case Admit():
                    self._admit(change)
                case Put():
                    self._put(change)
                case Delete():
                    self._delete(change)
                case ForgetHistory():
                    self._chores[change.origin] = max(self._chores.get(change.origin, NONE), change.upto)

    def finish(self) -> list[str]:
        """Write the gathered rows and the heads. Return the origins that have changed."""
        self._flush()
        return self._heads.write(self._connection)

    def _flush(self) -> None:
        insert_rows(self._connection, _ADD_HISTORY_ROW, self._history_rows)
        self._history_rows.clear()

    # ---- history --------------------------------------------------------------------------------------------

    def _admit(self, change: Admit) -> None:
        assert change.first <= change.last, (
            f"a range of timestamps ends before it begins: {change.first}, {change.last}"
        )
        origin, first, last, size = change.origin, change.first, change.last, len(change.blob)
        head = self._heads.history.get(origin)
        if head is None:
            head = HistoryHead(0, 0, 0, first, NONE, 0, NONE)
        previous = head.last
        if last <= head.last:
            head, previous = self._insert_between(origin, last, head)
        ranged = span(origin, first, last)
        self._history_rows.append((
            origin, first, last, change.count, size, previous, link(ranged, previous),
            piece(ranged, change.count, change.blob), change.blob,
        ))  # fmt: skip
        self._heads.set_history(
            origin,
            HistoryHead(
                head.rows + 1,
                head.bytes + size,
                head.events + change.count,
                min(head.first, first),
                max(head.last, last),
                max(head.widest, last - first),
                head.forgotten,
            ),
        )

    def _insert_between(self, origin: str, last: int, head: HistoryHead) -> tuple[HistoryHead, int]:
        """Make room for a row that is not the last: delete the row there, and chain the following one to it."""
        self._flush()
        same = self._connection.execute(
            "SELECT id, last, size, count FROM history WHERE origin = ? AND last = ?", (origin, last)
        ).fetchall()
        head = self._remove(head, same)
        (previous,) = self._connection.execute(
            "SELECT max(last) FROM history WHERE origin = ? AND last < ?", (origin, last)
        ).fetchone()
        after = self._connection.execute(
            "SELECT id, first, last FROM history WHERE origin = ? AND last > ? ORDER BY last LIMIT 1", (origin, last)
        ).fetchone()
        if after is not None:
            row, first, stamp = after
            self._chain(origin, row, first, stamp, last)
        return head, NONE if previous is None else previous

    def _chain(self, origin: str, row: int, first: int, last: int, previous: int) -> None:
        self._connection.execute(
            "UPDATE history SET previous = ?, link = ? WHERE id = ?",
            (previous, link(span(origin, first, last), previous), row),
        )

    def _remove(self, head: HistoryHead, rows: Sequence[_Row]) -> HistoryHead:
        """Delete these rows, and return the head without them."""
        self._connection.executemany("DELETE FROM history WHERE id = ?", [(row[0],) for row in rows])
        return head._replace(
            rows=head.rows - len(rows),
            bytes=head.bytes - sum(row[2] for row in rows),
            events=head.events - sum(row[3] for row in rows),
        )

    # ---- entries --------------------------------------------------------------------------------------------

    def _put(self, change: Put) -> None:
        known = self._connection.execute("SELECT 1 FROM entries WHERE key = ?", (change.key,)).fetchone()
        self._heads.entries += known is None
        self._connection.execute(
            "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)",
            (change.key, checksum(change.blob, change.key), change.blob),
        )

    def _delete(self, change: Delete) -> None:
        gone = self._connection.execute("DELETE FROM entries WHERE key = ?", (change.key,)).rowcount
        self._heads.entries -= gone

    # ---- chores ---------------------------------------------------------------------------------------------

    def do_chores(self, bytes_max: int) -> None:
        """Perform pending deletions of up to `bytes_max` bytes, oldest request first."""
        self._flush()
        while self._chores and bytes_max > 0:
            origin, upto = next(iter(self._chores.items()))
            spent, is_done = self._forget(origin, upto, bytes_max)
            bytes_max -= spent
            if not is_done:
                return
            del self._chores[origin]

    def _forget(self, origin: str, upto: int, bytes_max: int) -> tuple[int, bool]:
        head = self._heads.history.get(origin)
        if head is None:
            return 0, True
        rows = self._connection.execute(
            "SELECT id, last, size, count FROM history WHERE origin = ? AND last <= ? ORDER BY last LIMIT ?",
            (origin, upto, CHORE_ROWS),
        ).fetchall()
        some, spent = _some(rows, bytes_max)
        if some:
            head = self._remove(head, some)
            oldest = self._connection.execute(
                "SELECT first FROM history WHERE origin = ? ORDER BY last LIMIT 1", (origin,)
            ).fetchone()
            first = head.last if oldest is None else oldest[0]
            self._heads.set_history(origin, head._replace(first=first, forgotten=max(head.forgotten, some[-1][1])))
        return spent, len(some) == len(rows) < CHORE_ROWS


def _some(rows: Sequence[_Row], bytes_max: int) -> tuple[Sequence[_Row], int]:
    """Return the first rows up to the one that exceeds the size, and the sum of their sizes."""
    spent = 0
    for place, row in enumerate(rows):
        if spent >= bytes_max:
            return rows[:place], spent
        spent += row[2]
    return rows, spent
