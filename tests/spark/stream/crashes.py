"""A machine on which a sink's process crashes at a chosen step, and a model of brokers as a sink's client sees them.

Each file operation has two steps, before and after it, and so has each operation of the client in the network. The
process can crash at any step. After a crash, synced data remains, and any part of the other data.
"""

import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from pyarrow.fs import LocalFileSystem

from gapless.client.identity import Identity
from gapless.errors import SparkError
from gapless.events import Attributes, Event
from gapless.filters import parse
from gapless.positions import Position
from gapless_spark.stream.committing import Committing
from gapless_spark.stream.files import Files
from gapless_spark.stream.objects import Objects
from gapless_spark.stream.publishers import Publisher
from gapless_spark.stream.share import Share

__all__ = ["Crashed", "CrashingFiles", "CrashingObjects", "ModelBrokers", "ModelledCommitting", "Steps"]

IN_FLIGHT = 2
"""The number of events of a crashing process that are accepted but not confirmed. The next history read misses them."""


class Crashed(BaseException):
    """The process has crashed. No code in it may catch this exception."""


class Steps:
    """Counts the steps, and crashes at one of them."""

    def __init__(self, last: int = -1) -> None:
        self.taken: list[str] = []
        self._last = last

    def __call__(self, name: str) -> None:
        if len(self.taken) == self._last:
            raise Crashed(name)
        self.taken.append(name)


Names = dict[Path, bytes]
Change = Callable[[Names], object]


class CrashingFiles(Files):
    """The files of one machine: those that the process sees are real; the durable ones are kept separately."""

    def __init__(self, root: Path, durable: Names | None = None) -> None:
        self.step = Steps()
        self._root = root
        self._durable = {} if durable is None else durable
        self._pending: list[tuple[Path, Change]] = []
        """Unsynced changes of names: the folder, and the change."""

    @contextmanager
    def create(self, path: Path) -> Iterator[BinaryIO]:
        self.step(f"before {path.name} is created")
        with path.open("wb") as file:
            self._change(path.parent, lambda names: names.update({path: b""}))
            self.step(f"while {path.name} is written")
            yield file
        content = path.read_bytes()
        self._change(path.parent, lambda names: names.update({path: content}))
        self.step(f"after {path.name} is written")

    def rename(self, path: Path, target: Path) -> None:
        self.step(f"before {path.name} is renamed")
        super().rename(path, target)
        content = target.read_bytes()

        def change(names: Names) -> None:
            names.pop(path, None)
            names[target] = content

        self._change(path.parent, change)
        self.step(f"after {path.name} is renamed")

    def remove(self, path: Path) -> None:
        self.step(f"before {path.name} is removed")
        super().remove(path)
        self._change(path.parent, lambda names: names.pop(path, None))
        self.step(f"after {path.name} is removed")

    def sync(self, folder: Path) -> None:
        self.step(f"before {folder.name} is synced")
        for where, change in self._pending:
            if where == folder:
                change(self._durable)
        self._pending = [(where, change) for where, change in self._pending if where != folder]
        self.step(f"after {folder.name} is synced")

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def _change(self, folder: Path, change: Change) -> None:
        self._pending.append((folder, change))

    def left_after_crash(self) -> Iterator[Names]:
        """Yield every possible content of the disk: the durable changes, with each subset of the others, in their
        order."""
        found: list[Names] = []
        for count in range(len(self._pending) + 1):
            for chosen in combinations(self._pending, count):
                names = dict(self._durable)
                for _, change in chosen:
                    change(names)
                if names not in found:
                    found.append(names)
        yield from found

    def restore(self, names: Names) -> "CrashingFiles":
        for path in [path for path in self._root.rglob("*") if path.is_file()]:
            path.unlink()
        for path, content in names.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return CrashingFiles(self._root, dict(names))


class CrashingObjects(Objects):
    """The objects of a store that survives the process: each exists completely or not at all."""

    def __init__(self, root: Path) -> None:
        super().__init__(LocalFileSystem())
        self.step = Steps()
        root.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def create(self, path: Path) -> Iterator[BinaryIO]:
        content = io.BytesIO()
        yield content
        self.step(f"before {kind_of(path)} is written")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.getvalue())
        self.step(f"after {kind_of(path)} is written")

    def remove(self, path: Path) -> None:
        self.step(f"before {kind_of(path)} is removed")
        super().remove(path)
        self.step(f"after {kind_of(path)} is removed")


def kind_of(path: Path) -> str:
    """Return the kind of a path, without the numbers and random names that distinguish files."""
    return "a state" if path.name.startswith("sink-") else f"a file in {path.parent.name}"


@dataclass
class _Session:
    attempt: int
    taken: int


@dataclass
class ModelBrokers:
    """Brokers that accept only the latest attempt of a client, and each of its numbers once, in order.

    Brokers that forget know nothing of a disconnected client. Otherwise a crash leaves events in flight, which the
    first history read after it does not see yet.
    """

    forget: bool
    history: list[Event] = field(default_factory=list)
    sessions: dict[str, _Session] = field(default_factory=dict)
    hidden: int = 0
    refuses: bool = False
    """Whether processes whose client was taken over are rejected when they attach."""
    workers: dict[str, list[tuple[int, Event]]] = field(default_factory=dict)
    """The events that each client's worker, which outlives its driver, still publishes, with its attempt."""

    def crash(self) -> None:
        """Crash the driver; its workers continue."""
        if self.forget:
            self.sessions = {name: each for name, each in self.sessions.items() if name in self.workers}
        else:
            self.hidden = IN_FLIGHT

    def attach(self, standing: Identity) -> None:
        rest = self.workers.pop(standing.name, [])
        for attempt, event in rest[:1]:
            self.accept(attempt, event)  # just in time
        session = self.sessions.get(standing.name)
        if session is not None and standing.attempt <= session.attempt:
            assert self.refuses, "brokers would never listen to this process"
            raise SparkError("no broker listens to this process")
        taken = standing.seq if session is None else max(standing.seq, session.taken)
        self.sessions[standing.name] = _Session(standing.attempt, taken)
        for attempt, event in rest[1:]:
            self.accept(attempt, event)  # too late

    def accept(self, attempt: int, event: Event) -> None:
        """Accept an event that a client publishes, perhaps repeatedly."""
        session = self.sessions[event.publisher]
        if attempt == session.attempt and event.seq > session.taken:
            assert event.seq == session.taken + 1, f"{event.id} follows number {session.taken}"
            session.taken = event.seq
            self.history.append(msgspec.structs.replace(event, stamp=len(self.history) + 1))

    def visible(self) -> list[Event]:
        """Return the events that a history read sees if it begins now."""
        hidden, self.hidden = self.hidden, 0
        return self.history[: len(self.history) - hidden]


class _Reading:
    def __init__(self, events: list[Event], position: Position) -> None:
        self.position = position
        self._events = events

    async def take(self, most: int) -> list[Event]:
        events, self._events = self._events[:most], self._events[most:]
        return events


class _Client:
    network, event_max, blocked = "model", 65_536, ""

    def __init__(self, brokers: ModelBrokers, step: Steps, standing: Identity) -> None:
        self.name = standing.name
        self.confirmed = 0
        self._brokers = brokers
        self._step = step
        self.identity = standing

    async def advertise(self, text: str) -> None:
        self._step("before the sink advertises")
        parse(text)

    async def read(self, text: str, since: Position) -> _Reading:
        self._step("before history is read")
        test = parse(text).test
        visible = self._brokers.visible()
        found = [event for event in visible if event.position > since and test(event.attributes)]
        return _Reading(found, Position.at(len(visible)))

    async def publish_many(self, events: Iterable[tuple[Attributes, bytes]]) -> int:
        for attributes, payload in events:
            self._step("before an event is published")
            seq = self.identity.seq + 1
            self.identity = Identity(self.name, "", self.identity.attempt, seq)
            self._brokers.accept(self.identity.attempt, Event(self.name, seq, attributes, payload))
            self.confirmed = seq
        self._step("after all events are confirmed")
        return 0


class ModelledCommitting(Committing):
    """The real class, with a client of the model's brokers."""

    brokers: ModelBrokers
    step: Steps

    @asynccontextmanager
    async def _client(self, standing: Identity | None) -> AsyncIterator[Any]:  # type: ignore[override]
        self.step("before the client attaches")
        mine = standing or Identity(f"sink-{len(self.brokers.sessions)}", "", 1, 0)
        self.brokers.attach(mine)
        self.step("after the client attached")
        yield _Client(self.brokers, self.step, mine)

    async def _ask(self, publisher: Publisher, share: Share, identity: Identity, position: Position) -> Identity:
        """Let a worker publish the share, one event at a time. The worker can end early, or outlive the driver."""
        self.step("before a worker attaches")
        self.brokers.attach(identity)
        made = enumerate(share.events(self._staging.opened, self._layout, self._options.sink), identity.seq + 1)
        events = [Event(identity.name, seq, attributes, payload) for seq, (attributes, payload) in made]
        for place, event in enumerate(events):
            self.brokers.workers[identity.name] = [(identity.attempt, each) for each in events[place:]]
            self.step("before a worker publishes an event")
            if publisher.port == place:
                raise SparkError("a worker ended")
            self.brokers.accept(identity.attempt, event)
        self.brokers.workers.pop(identity.name, None)
        self.step("after a worker has published its share")
        return msgspec.structs.replace(identity, seq=identity.seq + len(events))
