"""What a broker finds on its disk when it starts, and what of that still counts.

It finds the journals that it held: its own, of its earlier lives, and those of others. It brings them into the
hand-over that takes it in, like the backups of the dead do. After a **blackout** everybody returns so, and what was
held by f + 1 disks is with somebody, if no more than f of a neighbourhood are missing, or have lost their disks.

But much may have happened since. What was found does not count

- if somebody knows the heir of that life (`Sync.heirs`). Then what the life held is secured elsewhere, or the members
  of that hand-over still hold it themselves;
- if somebody brings a later copy of the same journal. Each copy contains what matters of those before it, and one that
  a hand-over has put together is later than all others.
"""

from collections.abc import Mapping
from heapq import merge
from itertools import repeat

import msgspec

from gapless.disk import DiskContents
from gapless.errors import StorageError
from gapless.protocols.gapless.disk import FORMAT, FORMAT_KEY, INTERVAL_KEYS, OLDEST, OVER_KEYS, STATUS_KEY, Disk
from gapless.protocols.gapless.history.index import Index
from gapless.protocols.gapless.history.mirror import Mirror, read_piece
from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.lives import Home, name_life, parse_life
from gapless.protocols.gapless.members.status import Statuses, life_of
from gapless.protocols.gapless.messages import PUT_TOGETHER, Backup, BackupAll, Estate, Interval, Sync
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.retention.journal import JournalCopy

__all__ = ["Found", "has_found_journal", "read_disk", "without_outdated"]

Life = tuple[str, int]
_decode_entry = msgspec.msgpack.Decoder(Backup | BackupAll).decode
_decode_status = msgspec.msgpack.Decoder(Statuses).decode
_decode_interval = msgspec.msgpack.Decoder(Interval).decode
_decode_home = msgspec.msgpack.Decoder(Home).decode


class Found(msgspec.Struct, frozen=True):
    """What an earlier start, or an earlier life, left."""

    status: Statuses
    copies: dict[Life, JournalCopy]
    over: dict[Home, Home]
    """Lives that are over, with their heirs."""
    history: History
    index: Index
    is_used: bool = True
    """Whether anything was ever put on the disk."""

    def last_life(self, name: str) -> int:
        """The last life of that broker, whose disk this is; -1 if it has not lived yet."""
        lives = [life for broker, life in self.copies if broker == name]
        if self.is_used:
            lives.append(0)
        if name in self.status:
            lives.append(life_of(self.status[name]))
        return max(lives, default=-1)


def read_disk(contents: DiskContents, disk: Disk, options: GaplessOptions) -> Found:
    """What is there. A `StorageError` says why it cannot be read."""
    try:
        return _read(contents, disk, options)
    except msgspec.DecodeError as error:
        raise StorageError(
            f"what the disk holds was written by another version of gapless, and cannot be read: {error}; "
            "take the version that wrote it, or an empty directory: what f others hold is not lost"
        ) from None


def _read(contents: DiskContents, disk: Disk, options: GaplessOptions) -> Found:
    entries = contents.entries
    known = msgspec.msgpack.decode(entries[FORMAT_KEY], type=int) if FORMAT_KEY in entries else FORMAT
    if not OLDEST <= known <= FORMAT:
        raise StorageError(
            f"what the disk holds has format {known}, this version of gapless reads {OLDEST} to {FORMAT}; take the "
            "version that wrote it, or an empty directory: what f others hold is not lost"
        )
    copies = {}
    for name, rows in contents.journals.items():
        copy = copies[parse_life(Home(name))] = JournalCopy()
        for row in rows:
            message = _decode_entry(row.blob)
            if isinstance(message, BackupAll):
                copy.restore(message)
            else:
                copy.note(message)
    index = Index()
    index.learn(_decode_interval(blob) for key, blob in entries.items() if key.startswith(INTERVAL_KEYS))
    return Found(
        status=_decode_status(entries[STATUS_KEY]) if STATUS_KEY in entries else {},
        copies=copies,
        over={
            Home(key.removeprefix(OVER_KEYS)): _decode_home(blob)
            for key, blob in entries.items()
            if key.startswith(OVER_KEYS)
        },
        history=_read_history(contents, disk, options),
        index=index,
        is_used=FORMAT_KEY in entries,
    )


def _read_history(contents: DiskContents, disk: Disk, options: GaplessOptions) -> History:
    """The pieces of all journals, as far as known in the order in which they came. The memory keeps the last ones."""
    history = History(options.history_bytes)
    history.mirror = mirror = Mirror(disk, options.history_disk_bytes)
    pieces = [zip(repeat(journal), rows, strict=False) for journal, rows in contents.history.items()]
    for journal, row in merge(*pieces, key=lambda piece: (piece[1].last, piece[0])):
        runs = read_piece(row)
        mirror.found(journal, row.last, runs)
        for run in runs:
            history.put(journal, run)
    return history


def has_found_journal(contributions: Mapping[str, Sync]) -> bool:
    """Whether a journal was found on a disk. It may be older than it was, and lack what was in it last."""
    return any(estate.is_found for sync in contributions.values() for estate in sync.estates)


def without_outdated(contributions: Mapping[str, Sync]) -> dict[str, Sync]:
    """The contributions without what was found on disks and does not count any more."""
    if not has_found_journal(contributions):
        return dict(contributions)
    over = {life for sync in contributions.values() for life in sync.heirs}
    latest: dict[Life, int] = {}
    for sync in contributions.values():
        for estate in sync.estates:
            life = (estate.broker, estate.life)
            latest[life] = max(latest.get(life, -1), _rank(estate))
    return {
        member: msgspec.structs.replace(
            sync,
            estates=[
                estate
                for estate in sync.estates
                if not estate.is_found
                or (
                    name_life(estate.broker, estate.life) not in over
                    and _rank(estate) == latest[estate.broker, estate.life]
                )
            ],
        )
        for member, sync in contributions.items()
    }


def _rank(estate: Estate) -> int:
    return estate.number if estate.number != PUT_TOGETHER else 1 << 62
