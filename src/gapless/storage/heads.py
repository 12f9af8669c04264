"""Heads: what the store believes it holds of each journal and each origin, in a few small rows.

They are written in the commit of what they speak of. So totals are cheap to ask for, a start need not count, and
whoever reads a journal or a piece of history and finds less than its head says knows that something is missing. Without
them, a single byte of a page that says how many rows it has could take rows away that nobody would miss.
"""

import json
import sqlite3
from typing import NamedTuple, TypeAlias

from gapless.storage.checksums import checksum
from gapless.storage.interface import HistoryTotals, JournalTotals
from gapless.storage.schema import insert_rows

__all__ = ["NONE", "Heads", "HistoryHead", "JournalHead", "read_heads"]

NONE = -(2**63)
"""No number and no stamp: below all of them."""


class JournalHead(NamedTuple):
    rows: int
    bytes: int
    first: int
    last: int
    snapshot: int
    """The number of its snapshot, or NONE. Rows up to it that are still there do not count."""

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
    """No row has a longer range: so those that meet a range are known without looking at all."""
    forgotten: int
    """The last stamp of the youngest row that was forgotten, or NONE."""

    @property
    def totals(self) -> HistoryTotals:
        return HistoryTotals(self.rows, self.bytes, self.events, self.first, self.last)


_Head: TypeAlias = JournalHead | HistoryHead


class Heads:
    """All heads, owned by the thread that writes."""

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
        """An origin of which nothing is left has no head."""
        self._touched["history", origin] = None
        if head is None or not head.rows:
            self.history.pop(origin, None)
        else:
            self.history[origin] = head

    def write(self, connection: sqlite3.Connection) -> list[tuple[str, str]]:
        """Put what was touched, and the number of the commit, into the transaction; what was touched."""
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
    """All heads, and what is wrong with them, if something is. A file with wrong heads is of no use as it is."""
    heads, wrong = Heads(), ""
    expected = None
    for kind, name, body, check in connection.execute("SELECT kind, name, body, crc FROM heads"):
        if checksum(str(body).encode(), kind, name) != check:
            wrong = f"what it says of the {kind} {name!r} has changed"
            continue
        numbers = json.loads(body)
        if kind == "journal":
            heads.journals[name] = JournalHead(*numbers)
        elif kind == "history":
            heads.history[name] = HistoryHead(*numbers)
        else:
            heads.commits, heads.entries, expected = numbers
    if len(heads.journals) + len(heads.history) != expected and not wrong:
        wrong = "it does not say all that it holds"
    return heads, wrong
