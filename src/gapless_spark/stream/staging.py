"""The directory where a sink keeps events until they are published.

    lock            held by the process that publishes; the operating system releases it when that process ends
    sink.json       the sink's owner, its clients, the last finished batch, and the batch that is being published
    files/          the files of tasks
    done/           an empty file for each finished batch with a name

**One file decides.** `sink.json` is replaced atomically, and is on the disk before anything relies on it. So a crash
leaves the state before a change or the state after it, and there are three changes:

1. *Take over.* The attempts of the clients grow, before a process connects as one of them.
2. *Decide.* `sink.json` lists the files of a batch, and which client publishes each. From then on the batch is that
   list, in that order, even if Spark runs the batch again and tasks write other files. It is published in full before
   any other batch. The number of each client is that of its last event of the previous batch, so its events have the
   numbers that follow: the list fixes the number of each event.
3. *Finish.* The numbers of the clients grow by their events of the list, and the list is dropped.

A crash before (2) leaves files that nothing lists; the next commit removes them. A crash between (2) and (3) leaves the
list, and the next process publishes those of its events that brokers do not have (see `committing`). A named batch has
its file in `done` before (3).
"""

import fcntl
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pyarrow as pa

from gapless.client.identity import Identity
from gapless.errors import SparkError
from gapless.positions import Position
from gapless_spark.stream.files import Files
from gapless_spark.stream.share import Share

__all__ = ["LEFTOVER_S", "Manifest", "Staging", "State", "decoded", "file_name"]

PAUSE_S = 0.1
LEFTOVER_S = 24 * 3600
"""Files of a write that ended without a commit or an abort are removed after this time."""

NAME_MAX = 200
"""The maximum length of a file name in characters."""


class Manifest(msgspec.Struct, frozen=True):
    """A batch that is being published."""

    label: str
    """The name of the batch in the network: the attribute `sink.batch` of its events."""
    number: int
    """The number of a streaming query's batch; otherwise -1."""
    name: str
    """The name that the user gave a batch of `df.write`; empty if there is none."""
    files: list[tuple[str, int]]
    """The files in order, with the number of events in each."""
    clients: list[int] = []
    """The client that publishes each file; empty if the first client publishes all."""

    def publishers(self) -> list[int]:
        """Return the clients that publish a part of the batch."""
        return sorted(set(self.clients)) or [0]

    def count(self, client: int) -> int:
        """Return the number of events of the batch that this client publishes."""
        return sum(count for _, count, _ in self.share(client).files)

    def share(self, client: int, skipped: int = 0) -> Share:
        """Return this client's share, without the first `skipped` events."""
        files, place = [], 0
        for (file, count), publisher in zip(self.files, self.clients or [0] * len(self.files), strict=True):
            if publisher == client:
                files.append((file, count, place))
            place += count
        return Share(self.label, files, skipped)


class State(msgspec.Struct, frozen=True):
    """The contents of `sink.json`."""

    sink: str
    network: str
    owner: str
    """The streaming query that writes here, or `NO_QUERY` for `df.write`."""
    run: str
    """The first part of the labels of its batches."""
    clients: list[Identity]
    """The identities that publish; the number of each is that of its last event of the last finished batch."""
    position: Position
    """The position up to which the sink has checked that no other client uses its name."""
    done: int = -1
    """The number of the last finished batch of a streaming query."""
    manifest: Manifest | None = None
    """The batch that is being published."""

    def finished(self, manifest: Manifest) -> "State":
        """Return the state in which that batch is finished."""
        clients = [
            msgspec.structs.replace(each, seq=each.seq + manifest.count(place))
            for place, each in enumerate(self.clients)
        ]
        done = max(self.done, manifest.number)
        return msgspec.structs.replace(self, clients=clients, done=done, manifest=None)

    def later(self) -> "State":
        """Return the state of the next process that connects as the sink's clients."""
        return msgspec.structs.replace(self, clients=[each.later() for each in self.clients])

    def above(self, attempt: int) -> "State":
        """Return the state in which all clients have this attempt."""
        clients = [msgspec.structs.replace(each, attempt=attempt) for each in self.clients]
        return msgspec.structs.replace(self, clients=clients)

    def with_client(self, place: int, identity: Identity) -> "State":
        """Return the state with a client's latest attempt. The number of its last event stays unchanged."""
        clients = list(self.clients)
        clients[place] = msgspec.structs.replace(identity, seq=clients[place].seq)
        return msgspec.structs.replace(self, clients=clients)


class Staging:
    """A staging directory."""

    def __init__(self, path: str, files: str = "files", disk: Files | None = None) -> None:
        self.path = Path(path)
        self.files = self.path / files
        self.done = self.path / "done"
        self.disk = Files() if disk is None else disk

    def prepare(self) -> None:
        """Create the directory, if it does not exist."""
        try:
            for folder in (self.files, self.done):
                self.disk.make_folder(folder)
        except OSError as error:
            raise SparkError(
                f"{self.path} cannot be used for staging: {error.strerror}; set the option "
                '"staging" to a directory that the driver and all executors can write'
            ) from None

    @contextmanager
    def locked(self, patience_s: float) -> Iterator[None]:
        """Hold the lock, so that no other process publishes from this directory."""
        with (self.path / "lock").open("ab") as file:
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise SparkError(
                            f"another process publishes from {self.path}and did not end within {patience_s:g} s: "
                            "two queries, or two drivers, write to the same sink; stop one of them"
                        ) from None
                    time.sleep(PAUSE_S)
            yield

    # ---- the state ----------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """Return the state of the sink; None if it is new."""
        path = self.path / "sink.json"
        try:
            return decoded(path.read_bytes(), path)
        except FileNotFoundError:
            return None

    def later(self, state: State) -> State:
        """Return the state of the next process that connects as the sink's clients."""
        return state.later()

    def conflicting_state(self) -> State | None:
        """Return None: the lock prevents other processes from changing the state."""
        return None

    def keep(self, state: State) -> None:
        """Replace the state. It is on the disk afterwards."""
        beside = self.path / "sink.json.new"
        with self.disk.create(beside) as file:
            file.write(msgspec.json.encode(state, enc_hook=str))
        self.disk.rename(beside, self.path / "sink.json")
        self.disk.sync(self.path)

    def is_done(self, name: str) -> bool:
        """Return whether a batch of this name was published."""
        return (self.done / file_name(name)).exists()

    def finish(self, state: State, manifest: Manifest) -> None:
        """Finish the batch, whose events are all published. Its name, if it has one, is remembered permanently."""
        if manifest.name:
            with self.disk.create(self.done / file_name(manifest.name)):
                pass
            self.disk.sync(self.done)
        self.keep(state.finished(manifest))
        for file, _ in manifest.files:
            self.disk.remove(self.path / file)

    # ---- the files of tasks ---------------------------------------------------------------------------------

    def opened(self, file: str) -> Any:
        """Open a file that a task has written."""
        return pa.memory_map(str(self.path / file))

    def has(self, file: str) -> bool:
        """Return whether this machine sees the file of a task."""
        return (self.path / file).exists()

    def clear_after(self, kept: Manifest | None, *, alone: bool) -> None:
        """Remove the files of tasks, except those to be published; with `alone`, their folder, too."""
        if self.files.exists():
            self.clear(kept)
            if alone and not any(self.files.iterdir()):
                self.files.rmdir()

    def clear(self, kept: Manifest | None) -> None:
        """Remove the files of tasks, except those to be published."""
        needed = {file for file, _ in kept.files} if kept is not None else set[str]()
        for file in self.files.iterdir():
            if str(file.relative_to(self.path)) not in needed:
                self.disk.remove(file)
        for folder in self.path.glob("files-*"):
            self._clear_old(folder, needed)

    def _clear_old(self, folder: Path, needed: set[str]) -> None:
        """Remove the directory of another write, if that ended long ago."""
        old = time.time() - LEFTOVER_S
        files = list(folder.iterdir())
        if folder == self.files or folder.stat().st_mtime > old or any(file.stat().st_mtime > old for file in files):
            return
        if not needed & {str(file.relative_to(self.path)) for file in files}:
            self.remove(folder)

    def remove(self, folder: Path) -> None:
        """Remove a folder of files."""
        for file in folder.iterdir():
            self.disk.remove(file)
        folder.rmdir()


def decoded(content: bytes, path: Path) -> State:
    """Return the state in a file."""
    try:
        return msgspec.json.decode(content, type=State, dec_hook=lambda kind, text: kind(text))
    except msgspec.MsgspecError as error:
        raise SparkError(f"{path} is damaged ({error}); another version wrote it, or it was changed") from None


def file_name(name: str) -> str:
    """Return the name in a form allowed for files."""
    quoted = quote(name, safe="")
    return quoted if len(quoted) <= NAME_MAX else hashlib.sha256(name.encode()).hexdigest()
