"""Heads: for each journal and each origin, a small row with the totals that the store expects.

Heads are written in the same commit as the rows that they describe. So totals are cheap, a start
need not count rows, and a reader that finds fewer rows than the head says knows that some are
missing. Without heads, one damaged byte in a page's row count could hide rows without anybody
noticing.
"""

import json
import sqlite3
from typing import NamedTuple, TypeAlias

from gapless.storage.checksums import checksum
from gapless.storage.interface import HistoryTotals, JournalTotals
from gapless.storage.schema import insert_rows

__all__ = ["NONE", "Heads", "HistoryHead", "JournalHead", "read_heads"]

NONE = -(2**63)
"""Lower than all numbers and timestamps."""


class JournalHead(NamedTuple):
    rows: int
    bytes: int
    first: int
    last: int
    snapshot: int
    """The number of its snapshot, or NONE. Remaining rows up to this number are ignored."""

    @property
    def totals(self) -> JournalTotals:
        return JournalTotals(self.rows, self.bytes, self.first, self.last)


class HistoryHead(NamedTuple):
    rows: int
    bytes: int
    events: int
    first: int
    last: int
    widest: int
    """The longest range of any row. It bounds the search for rows that overlap a range."""
    forgotten: int
    """The last timestamp of the youngest forgotten row, or NONE."""

    @property
    def totals(self) -> HistoryTotals:
        return HistoryTotals(self.rows, self.bytes, self.events, self.first, self.last)


_Head: TypeAlias = JournalHead | HistoryHead


class Heads:
    """All heads, owned by the writer thread."""

    def __init__(self) -> None:
        self.commits = 0
        self.entries = 0
        self.journals: dict[str, JournalHead] = {}
        self.history: dict[str, HistoryHead] = {}
        self._touched: dict[tuple[str, str], None] = {}

    def set_journal(self, name: str, head: JournalHead | None) -> None:
        self._touched["journal", name] = None
        if head is None:
            self.journals.pop(name, None)
        else:
            self.journals[name] = head

    def set_history(self, origin: str, head: HistoryHead | None) -> None:
        """Set the head of an origin; None removes it, when no rows are left."""
        self._touched["history", origin] = None
        if head is None or not head.rows:
            self.history.pop(origin, None)
        else:
            self.history[origin] = head

    def write(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        """Write the changed heads and the commit's number; return the kinds and names that changed."""
        touched = list(self._touched)
        self._touched.clear()
        self.commits += 1
        gone = []
        rows: list[tuple[str, str, str, int]] = []
        for kind, name in touched:
            head: _Head | None = self.journals.get(name) if kind == "journal" else self.history.get(name)
            if head is None:
                gone.append((kind, name))
            else:
                rows.append(_row(kind, name, *head))
        if gone:
            connection.executemany("DELETE FROM heads WHERE kind = ? AND name = ?", gone)
        rows.append(_row("commit", "", self.commits, self.entries, len(self.journals) + len(self.history)))
        insert_rows(connection, "INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", rows)
        return touched


def _row(kind: str, name: str, *numbers: int) -> tuple[str, str, str, int]:
    body = json.dumps(numbers)
    return kind, name, body, checksum(body.encode(), kind, name)


def read_heads(connection: sqlite3.Connection) -> tuple[Heads, str]:
    """Return all heads, and a description of the first problem, or an empty string."""
    heads, wrong = Heads(), ""
    expected = None
    for kind, name, body, check in connection.execute("SELECT kind, name, body, crc FROM heads"):
        if checksum(str(body).encode(), kind, name) != check:
            wrong = f"the head of the {kind} {name!r} has changed"
            continue
        numbers = json.loads(body)
        if kind == "journal":
            heads.journals[name] = JournalHead(*numbers)
        elif kind == "history":
            heads.history[name] = HistoryHead(*numbers)
        else:
            heads.commits, heads.entries, expected = numbers
    if len(heads.journals) + len(heads.history) != expected and not wrong:
        wrong = "a head is missing"
    return heads, wrong
