"""The directory of an archive: its list of files, and the files.

    archive.json                                  the list
    date=2026-11-16/p1793280000000000.parquet     events up to this position, of this date

**The list is authoritative.** It is replaced atomically, and names the position up to which the
archive is complete. A file that is not listed is left over from a failure, and is removed. Brokers
return the same events between two positions every time, so a process that continues from the last
listed position writes each event once.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gapless.errors import ArchiveError
from gapless.positions import Position

__all__ = ["Archive", "ArchivedFile", "Contents"]

LIST = "archive.json"


class ArchivedFile(msgspec.Struct, frozen=True):
    """One file, with everything in the archive after one position and up to another."""

    path: str
    since: Position
    until: Position
    events: int
    size: int


class Contents(msgspec.Struct, frozen=True):
    """The list of an archive's files: everything that matches a filter, after one position and up to another."""

    network: str
    filter: str
    since: Position
    until: Position
    files: list[ArchivedFile] = []
    """The files, ordered by position."""
    gaps: list[tuple[Position, Position]] = []
    """Pairs of positions between which events are missing, because brokers had lost them before they were archived."""

    def between(self, since: Position, until: Position) -> list[ArchivedFile]:
        """Return the files with events after one position and up to another."""
        return [file for file in self.files if file.until > since and file.since < until]


class Archive:
    """The directory of one archive."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def contents(self) -> Contents:
        """Return the archive's list of files. Raise an `ArchiveError` if the directory is not an archive."""
        found = self.contents_if_any()
        if found is None:
            raise ArchiveError(f"there is no archive at {self.path}: gapless archive writes one")
        return found

    def contents_if_any(self) -> Contents | None:
        """Return the archive's list of files, or None if nothing was archived there."""
        path = self.path / LIST
        try:
            return msgspec.json.decode(path.read_bytes(), type=Contents, dec_hook=lambda kind, text: kind(text))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except msgspec.MsgspecError as error:
            raise ArchiveError(f"{path} is damaged: {error}") from None

    def replace(self, contents: Contents) -> None:
        """Replace the list of files atomically."""
        beside = self.path / f"{LIST}.new"
        with beside.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(contents, enc_hook=str), indent=1))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path / LIST)
        number = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)

    def clear(self, contents: Contents | None) -> None:
        """Remove files that are not in the list."""
        listed = {file.path for file in contents.files} if contents is not None else set[str]()
        for path in self.path.glob("date=*/*.parquet*"):
            if str(path.relative_to(self.path)) not in listed:
                path.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the archive, which excludes other writers."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "lock").open("ab")
        except OSError as error:
            raise ArchiveError(f"{self.path} cannot be written: {error.strerror}") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ArchiveError(f"another process writes to the archive {self.path}; only one process can") from None
            yield
