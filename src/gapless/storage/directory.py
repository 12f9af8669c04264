"""Manages a data directory, which one process at a time can use: its files, its lock, and its mark.

- `data.sqlite`, and next to it SQLite's own `-wal` and `-shm` while it is open or was not closed;
- `lock`, locked by the process that uses the directory, and containing its process id;
- `mark`: the number of reported commits. It is written after each report but synced only at the
  end, so it costs almost nothing. It is not part of the data. It reveals that a log was truncated,
  that its end is damaged, or that the file is an older copy: SQLite takes all of these for a
  shorter log. A missing or unreadable mark proves nothing.
"""

import fcntl
import os
import struct
import zlib
from pathlib import Path

from gapless.errors import StorageError
from gapless.private_files import create_private, restrict
from gapless.storage.messages import cannot_open

__all__ = ["DATABASE", "Directory"]

DATABASE = "data.sqlite"
LOCK = "lock"
MARK = "mark"
OWN = {DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal", LOCK, MARK}
FOREIGN_ALLOWED = {"lost+found"}
"""Names that file systems create at the root of a volume."""

_MARK = struct.Struct("<QI")


class Directory:
    """A data directory, locked from its creation to `close`."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self.database = path / DATABASE
        if create:
            _make(path)
        _must_be_ours(path, create=create)
        self._lock = _locked(path)
        self.exposed: tuple[str, ...] = ()
        """Descriptions of files that other users could access, and of the changes to their modes."""
        try:
            if create:
                self.exposed = _make_private(path)
            self._mark = os.open(path / MARK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            os.close(self._lock)
            raise cannot_open(path, error) from None

    def read_mark(self) -> int:
        """Return the number of reported commits, or 0 if it is unknown."""
        written = os.pread(self._mark, _MARK.size, 0)
        if len(written) < _MARK.size:
            return 0
        commits, check = _MARK.unpack(written)
        return int(commits) if check == zlib.crc32(written[:8]) else 0

    def write_mark(self, commits: int) -> None:
        number = commits.to_bytes(8, "little")
        os.pwrite(self._mark, _MARK.pack(commits, zlib.crc32(number)), 0)

    def sync(self) -> None:
        """Sync the names of new files, and the mark, to the disk."""
        os.fsync(self._mark)
        for place in (self.path, self.path.parent):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def close(self) -> None:
        os.close(self._mark)
        os.close(self._lock)


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError:
        raise StorageError(f"{path} is a file; name a directory for the broker's data") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be created: {error.strerror}; name another directory") from None


def _make_private(path: Path) -> tuple[str, ...]:
    """Restrict the directory and its files to the broker's user. SQLite gives new files the mode of
    the database.
    """
    create_private(path / DATABASE)
    warnings = [restrict(path), *(restrict(path / name) for name in sorted(OWN))]
    return tuple(filter(None, warnings))


def _must_be_ours(path: Path, *, create: bool) -> None:
    if not path.is_dir():
        raise StorageError(f"there is no data of a broker at {path}: it is not a directory")
    try:
        names = {entry.name for entry in path.iterdir()} - FOREIGN_ALLOWED
    except OSError as error:
        raise cannot_open(path, error) from None
    if DATABASE not in names and not create:
        raise StorageError(f"there is no data of a broker at {path}: it has no {DATABASE}")
    foreign = sorted(names - OWN)
    if DATABASE not in names and foreign:
        raise StorageError(
            f"{path} contains something other than a broker's data ({foreign[0]}); name an empty directory"
        )


def _locked(path: Path) -> int:
    try:
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(
            f"{path} is not writable: {error.strerror}; give this user write permission, or name another directory"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(handle, 20, 0).decode(errors="replace").strip()
        os.close(handle)
        if not isinstance(error, BlockingIOError):
            raise cannot_open(path, error) from None
        who = f"process {owner}" if owner.isdigit() else "another process"
        raise StorageError(
            f"{path} is in use by {who}; two brokers cannot share it: stop that process, or name another directory"
        ) from None
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return handle
