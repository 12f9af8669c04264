"""Staging in an object store, without locks and renames.

    sink-00000000000003000000.json   the state, as one process wrote it: the number is the attempt of the sink's client
    files/, done/                    as in a directory

**The highest attempt decides.** A process that takes over the sink chooses an attempt above all existing ones, and
writes states under its own attempts only. So no process overwrites the state of another, and a late write of a replaced
process is ignored.

**Two processes never publish different batches.** A process reads the newest state, writes its own, connects, and lists
the states again. From the moment it is connected, brokers reject a process with a lower attempt. So such a process
published only batches that it had decided before, and the second listing shows the decision: that state is adopted, and
its batch is finished first. A batch that such a process decides later cannot be published.

A file that no batch lists may belong to a running task. It is removed when it is a day old.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gapless.client.identity import LATER
from gapless.errors import SparkError
from gapless_spark.stream.objects import Objects
from gapless_spark.stream.staging import LEFTOVER_S, Manifest, Staging, State, decoded, file_name

__all__ = ["ObjectStaging"]

_PREFIX = "sink-"


class ObjectStaging(Staging):
    """A staging place in an object store."""

    def __init__(self, objects: Objects, path: Path, files: str = "files") -> None:
        super().__init__(str(path), files, objects)
        self._objects = objects
        self._read: State | None = None
        """The state that this process has read."""
        self._own: dict[str, State] = {}
        """The states that this process has written, by their names."""

    def prepare(self) -> None:
        """Check that the store answers."""
        try:
            self._objects.exists(self.path / "sink")
        except OSError as error:
            raise SparkError(f"{self.path} cannot be used for staging: {error}") from None

    @contextmanager
    def locked(self, patience_s: float) -> Iterator[None]:
        """Do nothing: the module's docstring says why no lock is needed."""
        yield

    # ---- the state ----------------------------------------------------------------------------------------

    def state(self) -> State | None:
        """Return the newest state; None if the sink is new."""
        names = self._names()
        self._read = self._state_at(names[-1]) if names else None
        return self._read

    def keep(self, state: State) -> None:
        """Write the state under the attempt of its client. It is durable afterwards."""
        name = f"{_PREFIX}{state.clients[0].attempt:020d}.json"
        with self.disk.create(self.path / name) as file:
            file.write(msgspec.json.encode(state, enc_hook=str))
        self._own[name] = state

    def later(self, state: State) -> State:
        """Return the state of the next process; no two that begin with the same state choose the same attempt."""
        above = secrets.randbelow(LATER // 2)
        return state.above(max(each.attempt for each in state.clients) + LATER + above)

    def conflicting_state(self) -> State | None:
        """Return the state to continue with if another process changed the state after this process had read it and
        before it connected; otherwise None."""
        others = [name for name in self._names() if name not in self._own]
        found = self._state_at(others[-1]) if others else None
        if found is None or found == self._read:
            return None
        mine = max(self._own, default="")
        if others[-1] > mine:
            raise SparkError(
                f"another driver has taken over sink {found.sink!r}: two queries, or two drivers, write to it; stop one"
            )
        return self.later(found.above(max(found.clients[0].attempt, self._own[mine].clients[0].attempt)))

    def _names(self) -> list[str]:
        """Return the names of all states, the newest last."""
        found = (path.name for path, _ in self._objects.listed(self.path))
        return sorted(name for name in found if name.startswith(_PREFIX) and name.endswith(".json"))

    def _state_at(self, name: str) -> State:
        return decoded(self._objects.read(self.path / name), self.path / name)

    def is_done(self, name: str) -> bool:
        """Return whether a batch of this name was published."""
        return self._objects.exists(self.done / file_name(name))

    # ---- the files of tasks ---------------------------------------------------------------------------------

    def opened(self, file: str) -> Any:
        """Open a file that a task has written."""
        return self._objects.opened(self.path / file)

    def has(self, file: str) -> bool:
        """Return whether a task has written the file."""
        return self._objects.exists(self.path / file)

    def clear(self, kept: Manifest | None) -> None:
        """Remove older states, and old files that are not part of a batch."""
        mine = max(self._own, default="")
        for name in self._names():
            if name < mine:
                self.disk.remove(self.path / name)
        needed = {file for file, _ in kept.files} if kept is not None else set[str]()
        old = time.time() - LEFTOVER_S
        for path, written in self._objects.listed(self.files):
            if written < old and str(path.relative_to(self.path)) not in needed:
                self.disk.remove(path)

    def clear_after(self, kept: Manifest | None, *, alone: bool) -> None:
        """Call `clear`, because there is no folder to remove."""
        self.clear(kept)
