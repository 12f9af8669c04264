"""A disk that loses its unsynced writes when the power of its broker fails.

A preloaded library (`unsynced.c`) records the previous content of everything that is written and not synced yet. After
the broker is killed, `lose` undoes these writes: all of them or, if *torn*, all except random sectors of 512 bytes.
"""

import random
import struct
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from gapless.runtime.fleet import Fleet

__all__ = ["PoweredFleet", "lose"]

SECTOR = 512
_NOTE = struct.Struct("<4Q")


class _Note(NamedTuple):
    offset: int
    old: bytes
    length: int
    """The length of the new content."""
    size: int
    """The size of the file before the write."""


def build(folder: Path) -> Path:
    """Compile the library; return its path."""
    library = folder / "unsynced.so"
    source = Path(__file__).with_name("unsynced.c")
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-pthread"],
        check=True,
    )
    return library


def lose(data: Path, notes: Path, dice: random.Random, *, torn: bool) -> int:
    """Undo the unsynced writes to the files of a directory; return the number of writes."""
    undone = 0
    for place in sorted(notes.iterdir()):
        file, found = data / place.name, list(_read(place))
        place.unlink()
        if file.exists() and found:
            undone += len(found)
            _undo(file, found, dice, torn=torn)
    for shared in data.glob("*-shm"):
        shared.unlink()
    return undone


def _read(place: Path) -> Iterator[_Note]:
    text = place.read_bytes()
    at = 0
    while at + _NOTE.size <= len(text):
        offset, old, new, size = _NOTE.unpack_from(text, at)
        at += _NOTE.size + old
        if at > len(text):
            return  # the process was killed while it recorded a write, which then did not happen
        yield _Note(offset, text[at - old : at], new, size)


def _undo(file: Path, notes: list[_Note], dice: random.Random, *, torn: bool) -> None:
    written = file.read_bytes()
    with file.open("r+b") as disk:
        for note in reversed(notes):
            disk.seek(note.offset)
            disk.write(note.old)
            disk.truncate(note.size)
        if not torn:
            return
        sectors = {
            at for note in notes for at in range(note.offset // SECTOR, -(-(note.offset + note.length) // SECTOR))
        }
        for sector in sectors:
            content = written[sector * SECTOR : (sector + 1) * SECTOR]
            if content and dice.random() < 0.5:
                disk.seek(sector * SECTOR)
                disk.write(content)


class PoweredFleet(Fleet):
    """Brokers whose power can fail."""

    library: Path | None = None

    def start(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        """Start or restart the broker with the library."""
        if self.library is None:
            self.library = build(self.directory)
        self.notes(name).mkdir(exist_ok=True)  # older records are kept, because a killed process leaves unsynced writes
        more = dict(environment or {})
        more["LD_PRELOAD"] = " ".join(filter(None, (str(self.library), more.get("LD_PRELOAD", ""))))
        more |= {"UNSYNCED_DATA": str(self.data(name).resolve()), "UNSYNCED_NOTES": str(self.notes(name))}
        super().start(name, more)

    def data(self, name: str) -> Path:
        """Return the data directory of a broker."""
        return Path(self.config.broker(name).data)

    def notes(self, name: str) -> Path:
        """Return the directory with the records of a broker's unsynced writes."""
        return self.directory.resolve() / f"{name}-unsynced"

    def lose_power(self, name: str, dice: random.Random) -> int:
        """Kill a broker, and lose what it had not synced; return the number of lost writes."""
        self.kill(name)
        return lose(self.data(name), self.notes(name), dice, torn=dice.random() < 0.5)
