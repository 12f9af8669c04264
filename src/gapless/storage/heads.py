"""Heads: a small row for each origin with the totals of its history, by which missing rows are detected.

Heads are written in the same commit as the rows that they describe. So totals are cheap, a start
need not count rows, and a reader that finds fewer rows than the head says knows that some are
missing. Without heads, one damaged byte in a page's row count could hide rows without anybody
noticing.
"""

import json
import sqlite3
from typing import NamedTuple

from gapless.storage.checksums import checksum
from gapless.storage.interface import HistoryTotals
from gapless.storage.schema import insert_rows

__all__ = ["NONE", "Heads", "HistoryHead", "read_heads"]

NONE = -(2**63)
"""A value lower than all numbers and timestamps."""


class HistoryHead(NamedTuple):
    rows: int
    bytes: int
    events: int
    first: int
    last: int
    widest: int
    """The longest range of any row, which bounds the search for rows that overlap a range."""
    forgotten: int
    """The last timestamp of the youngest forgotten row, or NONE."""

    @property
    def totals(self) -> HistoryTotals:
        return HistoryTotals(self.rows, self.bytes, self.events, self.first, self.last)


class Heads:
    """The heads of all origins. The writer thread owns them."""

    def __init__(self) -> None:
        self.commits = 0
        self.entries = 0
        self.history: dict[str, HistoryHead] = {}
        self._touched: dict[str, None] = {}

    def set_history(self, origin: str, head: HistoryHead | None) -> None:
        """Set the head of an origin. None removes it, when no rows are left."""
        self._touched[origin] = None
        if head is None or not head.rows:
            self.history.pop(origin, None)
        else:
            self.history[origin] = head

    def write(self, connection: sqlite3.Connection) -> list[str]:
        """Write the changed heads and the number of the commit. Return the origins that have changed."""
        touched = list(self._touched)
        self._touched.clear()
        self.commits += 1
        gone = [("history", origin) for origin in touched if origin not in self.history]
        if gone:
            connection.executemany("DELETE FROM heads WHERE kind = ? AND name = ?", gone)
        rows = [_row("history", origin, *self.history[origin]) for origin in touched if origin in self.history]
        rows.append(_row("commit", "", self.commits, self.entries, len(self.history)))
        insert_rows(connection, "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", rows)
        return touched


def _row(kind: str, name: str, *numbers: int) -> tuple[str, str, str, int]:
    body = json.dumps(numbers)
    return kind, name, body, checksum(body.encode(), kind, name)


def read_heads(connection: sqlite3.Connection) -> tuple[Heads, str]:
    """Return all heads, and a description of the first problem or an empty string."""
    heads, wrong = Heads(), ""
    expected = None
    for kind, name, body, check in connection.execute("SELECT kind, name, body, crc FROM heads"):
        if checksum(str(body).encode(), kind, name) != check:
            wrong = f"the head of the {kind} {name!r} has changed"
            continue
        numbers = json.loads(body)
        if kind == "history":
            heads.history[name] = HistoryHead(*numbers)
        else:
            heads.commits, heads.entries, expected = numbers
    if len(heads.history) != expected and not wrong:
        wrong = "a head is missing"
    return heads, wrong
