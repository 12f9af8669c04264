"""Simulates the disks of brokers: written data is durable after a sync, and syncing takes time.

A disk syncs one commit after the other; each contains all batches that have accumulated since the previous one.
When its broker crashes, a random prefix of the unsynced batches survives. A broker restarts with
its disk; with an *old* one, as it was when half of the batches had been synced; after it has *lost*
the content; or with a *damaged* one, on which about half of the history cannot be read. A
paused broker finds that everything was synced during the pause.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from gapless.disk import Admit, Change, Delete, DiskContents, ForgetHistory, HistoryRow, Put
from gapless.protocol import Input, Keep, Persisted
from gapless.simulator.event_queue import EventQueue
from gapless.simulator.nodes import Slot

__all__ = ["DiskState", "Disks", "replay"]

DiskState: TypeAlias = Literal["kept", "old", "lost", "damaged"]

DAMAGED = 0.5
STAMP_MAX = 1 << 62


def replay(batches: Sequence[Sequence[Change]]) -> DiskContents:
    """Return the contents of a disk after these batches were written."""
    history: dict[str, dict[int, HistoryRow]] = {}
    entries: dict[str, bytes] = {}
    for changes in batches:
        for change in changes:
            match change:
                case Admit(origin, first, last, count, blob):
                    history.setdefault(origin, {})[last] = HistoryRow(first, last, count, blob)
                case ForgetHistory(origin, upto):
                    history[origin] = {last: row for last, row in history.get(origin, {}).items() if last > upto}
                case Put(key, blob):
                    entries[key] = blob
                case Delete(key):
                    entries.pop(key, None)
    return DiskContents(
        {origin: [rows[last] for last in sorted(rows)] for origin, rows in history.items() if rows},
        entries,
    )


class _Disk:
    """The disk of one broker."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.synced: list[Sequence[Change]] = []
        self.written: list[Keep] = []
        """The batches that are not synced yet."""
        self.is_new = True
        self.is_busy = False
        self.syncs = 0
        """How many syncs have begun. Reports of earlier syncs are ignored."""


class Disks:
    """The disks of all brokers in a run."""

    def __init__(
        self, sync_us: tuple[int, int], seed: int, event_queue: EventQueue, give: Callable[[Slot, Input], None]
    ) -> None:
        self._sync_us = sync_us
        self._seed = seed
        self._event_queue = event_queue
        self._give = give
        self._disks: dict[str, _Disk] = {}

    def keep(self, slot: Slot, effect: Keep, now: int) -> None:
        """Write a batch of a broker to its disk."""
        disk = self._of(slot)
        disk.written.append(effect)
        if not disk.is_busy:
            self._sync(slot, disk)

    def read(self, slot: Slot, state: DiskState) -> DiskContents:
        """Return the contents of the disk that a starting broker reads."""
        disk = self._of(slot)
        survivors = disk.dice.randint(0, len(disk.written)) if disk.written else 0
        disk.synced += [keep.changes for keep in disk.written[:survivors]]
        disk.written, disk.is_busy = [], False
        if state == "old":
            del disk.synced[len(disk.synced) // 2 :]
        elif state == "lost":
            disk.synced.clear()
            disk.is_new = True
        elif state == "damaged":
            self._damage(disk)
        is_new, disk.is_new = disk.is_new, False
        return msgspec.structs.replace(replay(disk.synced), is_new=is_new)

    def _damage(self, disk: _Disk) -> None:
        """Damage the disk. The broker detects the damage and drops the damaged parts."""
        contents = replay(disk.synced)
        changes: list[Change] = [
            ForgetHistory(name, STAMP_MAX) for name in contents.history if disk.dice.random() < DAMAGED
        ]
        disk.synced.append(changes)

    def go_on(self, slot: Slot) -> None:
        """Report all batches as synced after a pause of the broker."""
        disk = self._of(slot)
        disk.is_busy = False
        if disk.written:
            self._finish(slot, disk, len(disk.written))

    def _of(self, slot: Slot) -> _Disk:
        if slot.name not in self._disks:
            self._disks[slot.name] = _Disk(random.Random(f"{self._seed}/disk/{slot.name}"))
        return self._disks[slot.name]

    def _sync(self, slot: Slot, disk: _Disk) -> None:
        disk.is_busy = True
        disk.syncs += 1
        done = partial(self._synced, slot, slot.life, disk, disk.syncs, len(disk.written))
        self._event_queue.call(self._event_queue.now + disk.dice.randint(*self._sync_us), done)

    def _synced(self, slot: Slot, life: int, disk: _Disk, sync: int, count: int) -> None:
        if slot.life == life and disk.syncs == sync and disk.is_busy:
            disk.is_busy = False
            self._finish(slot, disk, count)

    def _finish(self, slot: Slot, disk: _Disk, count: int) -> None:
        done, disk.written = disk.written[:count], disk.written[count:]
        disk.synced += [keep.changes for keep in done]
        if disk.written:
            self._sync(slot, disk)
        self._give(slot, Persisted(done[-1].number))
