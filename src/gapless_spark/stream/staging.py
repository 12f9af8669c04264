"""The directory where a sink keeps what is to be published, until it is.

    lock            held by the process that publishes; the operating system lets it go when that process ends
    sink.json       whose directory it is, as which client the sink publishes, and which batches are done
    batch.json      the batch that is being published: its files, in their order
    files/          what tasks have written
    done/           a file for each named batch that is done

**`batch.json` decides.** Before it is there, nothing of the batch is published, and its files are rubbish. Once it is
there, the batch is what it lists, whatever tasks write if Spark tries the batch again; and it is published to its end
before anything else is. What is written replaces what was there in one step, and is on the disk before it counts.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec

from gapless.client.standing import Standing
from gapless.errors import SparkError

__all__ = ["Manifest", "Staging", "State"]

PAUSE_S = 0.1
LEFTOVER_S = 24 * 3600
"""What a write left behind that ended without a word is removed after so long."""

NAME_MAX = 200
"""Characters of a file's name."""

T = TypeVar("T")


class State(msgspec.Struct, frozen=True):
    """What is known of the sink."""

    sink: str
    network: str
    owner: str
    """The streaming query that writes here; or that batches do."""
    run: str
    """Part of the names of its batches in the network."""
    standing: Standing | None = None
    """As which client it publishes; its number is that of the last event of the last batch that is done."""
    position: int = 0
    """Up to here nobody else used the name of the sink, or the user was told."""
    done: int = -1
    """The last batch of a streaming query that is done."""


class Manifest(msgspec.Struct, frozen=True):
    """A batch that is being published."""

    label: str
    """How it is called in the network."""
    number: int
    """Of a streaming query's batch; -1 of another."""
    name: str
    """Of another; empty if nobody will ask for it again."""
    files: list[tuple[str, int]]
    """In their order, with their events."""
    since: int
    """Nothing of it was published up to this position."""


class Staging:
    """One such directory."""

    def __init__(self, path: str, files: str = "files") -> None:
        self.path = Path(path)
        self.files = self.path / files
        self.done = self.path / "done"

    def prepare(self) -> None:
        """Make it, if it is not there."""
        try:
            for folder in (self.files, self.done):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SparkError(
                f"{self.path} cannot be used for staging: {error.strerror}; name a directory that the driver and all "
                'executors may write with the option "staging"'
            ) from None

    @contextmanager
    def locked(self, patience_s: float) -> Iterator[None]:
        """Alone: no other process publishes from here."""
        with (self.path / "lock").open("ab") as file:
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise SparkError(
                            f"another process publishes from {self.path}, and did not end within {patience_s:g} s: "
                            "two queries, or two drivers, write to the same sink; stop one of them"
                        ) from None
                    time.sleep(PAUSE_S)
            yield

    # ---- what is known ------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """What is known of the sink; None if it is new."""
        return self._read("sink.json", State)

    def keep(self, state: State) -> None:
        """From here on this is known."""
        self._write("sink.json", state)

    def manifest(self) -> Manifest | None:
        """The batch that is being published, if one is."""
        return self._read("batch.json", Manifest)

    def decide(self, manifest: Manifest) -> None:
        """From here on the batch is what is listed."""
        self._write("batch.json", manifest)

    def is_done(self, name: str) -> bool:
        """Whether a batch of this name was published."""
        return (self.done / _file_name(name)).exists()

    def finish(self, manifest: Manifest, state: State) -> None:
        """All of it is published. Its name, if it has one, is remembered for ever."""
        if manifest.name:
            (self.done / _file_name(manifest.name)).touch()
            _sync(self.done)
        self.keep(state)
        (self.path / "batch.json").unlink()
        for file, _ in manifest.files:
            (self.path / file).unlink(missing_ok=True)

    def clear(self, kept: Manifest | None) -> None:
        """Remove what tasks have written, save what is to be published."""
        needed = {file for file, _ in kept.files} if kept is not None else set[str]()
        for file in self.files.iterdir():
            if str(file.relative_to(self.path)) not in needed:
                file.unlink(missing_ok=True)
        for folder in self.path.glob("files-*"):
            self._clear_old(folder, needed)

    def _clear_old(self, folder: Path, needed: set[str]) -> None:
        """The directory of a write that ended without a word, or is under way."""
        old = time.time() - LEFTOVER_S
        files = list(folder.iterdir())
        if folder == self.files or folder.stat().st_mtime > old or any(file.stat().st_mtime > old for file in files):
            return
        if not needed & {str(file.relative_to(self.path)) for file in files}:
            self.remove(folder)

    def remove(self, folder: Path) -> None:
        """With all that is in it."""
        for file in folder.iterdir():
            file.unlink(missing_ok=True)
        folder.rmdir()

    def _read(self, name: str, kind: type[T]) -> T | None:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as error:
            raise SparkError(f"{path} is damaged ({error}); it was not written by this version, or changed") from None

    def _write(self, name: str, value: State | Manifest) -> None:
        beside = self.path / f"{name}.new"
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(value))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path / name)
        _sync(self.path)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _file_name(name: str) -> str:
    """The name, where a file can have it."""
    quoted = quote(name, safe="")
    return quoted if len(quoted) <= NAME_MAX else hashlib.sha256(name.encode()).hexdigest()
