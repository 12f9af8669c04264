"""What a broker puts on its disk: one batch for a step, and what has to wait until the disk has it.

- *Journals*, its own and those that it holds as a backup, under the name of the life (`b0/0`). Each entry is the
  message that backups are told, so what is found is read as a backup hears it. When many have gathered, the whole
  journal is written anew.
- *History*: the runs of a step, by journal.
- *Entries*: the statuses that it knows (`status`), which lives are over (`over/…`), and intervals (`interval/…`).

A broker's own disk is one more backup of its journal: `held` counts it. And a backup answers when its disk has what it
was told. So whoever relies on what is held relies on f + 1 disks.
"""

from typing import Any

import msgspec

from gapless.disk import Admit, Append, Change, Delete, Drop, ForgetHistory, Put, Snapshot
from gapless.protocol import Keep
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.messages import Backup, BackupAll

__all__ = ["FORMAT", "FORMAT_KEY", "INTERVAL_KEYS", "OLDEST", "OVER_KEYS", "STATUS_KEY", "Disk"]

FORMAT_KEY = "format"
STATUS_KEY = "status"
INTERVAL_KEYS = "interval/"
OVER_KEYS = "over/"
FORMAT = 2
"""Of all blobs. What has a later one cannot be read."""
OLDEST = 1
"""The first that can. (Then a run was an array of events.)"""
_encode = msgspec.msgpack.Encoder().encode


class Disk:
    """What is to be put on the disk of one broker, through all its lives; nothing, if there is none."""

    def __init__(self, is_there: bool, journal_bytes: int) -> None:
        self.is_there = is_there
        self._journal_bytes = journal_bytes
        self._number = 0
        self._changes: list[Change] = []
        self._gathered: dict[str, int] = {}
        """By journal: the bytes that were appended since it was written as a whole."""
        self._wholes: dict[str, int] = {}
        """By journal: the bytes of that."""
        self._due: dict[tuple[str, int], None] = {}
        if is_there:
            self.put(FORMAT_KEY, FORMAT)

    @property
    def next(self) -> int:
        """The number of the next batch: what is put now is there when this is persisted."""
        return self._number + 1

    def take(self) -> Keep | None:
        """The batch of this step, if there is anything to keep."""
        if not self._changes:
            return None
        self._number += 1
        changes, self._changes = self._changes, []
        return Keep(self._number, changes)

    # ---- journals -----------------------------------------------------------------------------------------

    def append(self, broker: str, life: int, message: Backup) -> None:
        """Another entry of the journal of a life."""
        if not self.is_there:
            return
        name = name_life(broker, life)
        blob = _encode(message)
        self._changes.append(Append(name, message.number, blob))
        gathered = self._gathered[name] = self._gathered.get(name, 0) + len(blob)
        if gathered > self._journal_bytes + self._wholes.get(name, 0):
            self._due[broker, life] = None

    def write(self, broker: str, life: int, message: BackupAll, *, afresh: bool = False) -> None:
        """The journal of a life, as a whole; `afresh` if it may be another than the one that is there."""
        if not self.is_there:
            return
        name = name_life(broker, life)
        blob = _encode(message)
        if afresh:
            self._changes.append(Drop(name))
        self._changes.append(Snapshot(name, max(0, message.number), blob))
        self._gathered[name] = 0
        self._wholes[name] = len(blob)

    def drop(self, broker: str, life: int) -> None:
        """Nobody needs the journal of that life any more."""
        if not self.is_there:
            return
        name = name_life(broker, life)
        self._changes.append(Drop(name))
        self._gathered.pop(name, None)
        self._wholes.pop(name, None)
        self._due.pop((broker, life), None)

    def due(self) -> list[tuple[str, int]]:
        """The journals of which so much has gathered that they are to be written anew; asked once."""
        if not self._due:
            return []
        due, self._due = self._due, {}
        return list(due)

    # ---- the rest -----------------------------------------------------------------------------------------

    def admit(self, journal: str, first: int, last: int, count: int, runs: Any) -> None:
        """A piece of the history of a journal."""
        if self.is_there:
            self._changes.append(Admit(journal, first, last, count, _encode(runs)))

    def forget_history(self, journal: str, upto: int) -> None:
        """Pieces up to this one are not needed any more."""
        if self.is_there:
            self._changes.append(ForgetHistory(journal, upto))

    def put(self, key: str, value: Any) -> None:
        """An entry."""
        if self.is_there:
            self._changes.append(Put(key, _encode(value)))

    def delete(self, key: str) -> None:
        """No entry any more."""
        if self.is_there:
            self._changes.append(Delete(key))
