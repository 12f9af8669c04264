"""Each batch is published exactly once, wherever its driver crashes, and whatever unsynced data the disk loses."""

import asyncio
import copy
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from gapless_spark.stream.committing import Batch
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.publishers import Publisher
from gapless_spark.stream.sink import NO_QUERY, StreamWriter, Tasks
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Staging, State

from .crashes import Crashed, CrashingFiles, ModelBrokers, ModelledCommitting, Names, Steps
from .network import PATIENCE_S, history, schema, served

COLUMNS = schema(n="long")
ROWS = 4


class Machine:
    def __init__(
        self, root: Path, names: list[str], brokers: ModelBrokers, publishers: tuple[Publisher, ...] = ()
    ) -> None:
        self._publishers = publishers
        self._root = root
        self._names = names
        self._options = SinkOptions.of({"url": "gapless://model:1", "sink": "bills", "staging": str(root)})
        self.brokers = brokers
        self.files = CrashingFiles(root)
        self.committed = 0

    def run(self, last: int = -1) -> list[str] | None:
        step = self.files.step = Steps(last)
        serial = map("{:032x}".format, count(1_000 * len(self.brokers.history)))
        staging = Staging(str(self._root), disk=self.files)
        try:
            with patch.object(secrets, "token_hex", lambda _: next(serial)):  # the same file names in each test
                while self.committed < len(self._names):
                    asyncio.run(self._commit(staging, step, self.committed))
                    self.committed += 1
        except Crashed:
            self.brokers.crash()
            return None
        return step.taken

    async def _commit(self, staging: Staging, step: Steps, place: int) -> None:
        rows = list(range(place * ROWS, (place + 1) * ROWS))
        if self.brokers.history:
            rows.reverse()  # a repeated task may find its rows in another order
        half = ROWS // 2
        tasks = Tasks(self._options, COLUMNS, "files")
        tasks.staging = staging
        parts = [pa.RecordBatch.from_pydict({"n": some}) for some in (rows[:half], rows[half:])]
        listed = [(written.file, written.rows) for written in (tasks.write(iter([part])) for part in parts)]
        name = self._names[place]
        if name.isdigit():
            batch = Batch("query", "run", int(name), "", name, listed, 100, self._publishers)
        else:
            batch = Batch(NO_QUERY, "run", -1, name, name, listed, 100, self._publishers)
        committing = ModelledCommitting(self._options, staging, Layout(COLUMNS, "payload"))
        committing.brokers, committing.step = self.brokers, step
        await committing.commit(batch)

    def restarted(self, names: Names) -> "Machine":
        again = copy.copy(self)
        again.files = self.files.restore(names)
        again.brokers = copy.deepcopy(self.brokers)
        return again

    def check(self) -> None:
        found = [int(event.attributes["n"]) for event in self.brokers.history]
        batches = [sorted(found[first : first + ROWS]) for first in range(0, len(found), ROWS)]
        assert batches == [list(range(place * ROWS, (place + 1) * ROWS)) for place in range(len(self._names))]
        numbers: dict[str, list[int]] = {}
        for event in self.brokers.history:
            numbers.setdefault(event.publisher, []).append(event.seq)
        assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())
        assert len(numbers) == max(1, len(self._publishers))
        assert not list(self._root.rglob("*.arrow"))


KINDS = {"stream": ["0", "1"], "named batches": ["monday", "tuesday"]}
both_kinds = pytest.mark.parametrize("kind", KINDS)
whether_brokers_forget = pytest.mark.parametrize("forget", [False, True], ids=["brokers know it", "brokers forget it"])


@both_kinds
@whether_brokers_forget
def test_a_crash_at_any_step_with_any_loss_of_what_was_not_synced(tmp_path: Path, kind: str, forget: bool) -> None:
    steps = Machine(tmp_path / "calm", KINDS[kind], ModelBrokers(forget)).run()
    assert steps is not None
    assert {"after sink.json.new is renamed", "before an event is published"} <= set(steps)
    for last in range(len(steps)):
        machine = Machine(tmp_path / str(last), KINDS[kind], ModelBrokers(forget))
        assert machine.run(last) is None
        for names in machine.files.left_after_crash():
            again = machine.restarted(names)
            assert again.run() is not None
            again.check()


def worker(ends_after: int) -> Publisher:
    return Publisher("worker", ends_after, "secret", "writer")


@pytest.mark.parametrize(
    ("ends", "forget"),
    [((-1, -1), False), pytest.param((-1, 1), True, marks=pytest.mark.slow), ((0, 0), False)],
    ids=["no worker ends", "one worker ends, and brokers forget", "both end"],
)
def test_workers_publish_and_the_driver_crashes_at_any_step(
    tmp_path: Path, ends: tuple[int, int], forget: bool
) -> None:
    """A worker that outlives its driver continues until its client is taken over."""
    workers, names = tuple(map(worker, ends)), KINDS["stream"]
    calm = Machine(tmp_path / "calm", names, ModelBrokers(forget), workers)
    steps = calm.run()
    assert steps is not None
    assert "before a worker publishes an event" in steps
    calm.check()
    for last in range(len(steps)):
        machine = Machine(tmp_path / str(last), names, ModelBrokers(forget), workers)
        assert machine.run(last) is None
        left = [*machine.files.left_after_crash()]
        for disk in (left[0], left[-1]):
            again = machine.restarted(disk)
            assert again.run() is not None
            again.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "forget"),
    [
        ("stream", True),
        pytest.param("stream", False, marks=pytest.mark.slow),
        pytest.param("named batches", True, marks=pytest.mark.slow),
        pytest.param("named batches", False, marks=pytest.mark.slow),
    ],
)
def test_a_second_crash_while_the_first_is_repaired(tmp_path: Path, kind: str, forget: bool) -> None:
    """The test crashes at all pairs of steps around the first batch; the disk keeps all changes, or only the synced
    ones.
    """
    machine, first, seen = Machine(tmp_path, KINDS[kind], ModelBrokers(forget)), 0, list[Any]()
    while machine.run(first) is None and not machine.committed:
        left = [*machine.files.left_after_crash()]
        for names in (left[0], left[-1]):
            if (names, machine.brokers) not in seen:  # otherwise an earlier step has left the same state
                seen.append((names, copy.deepcopy(machine.brokers)))
                _crash_again(machine, names)
        machine, first = Machine(tmp_path, KINDS[kind], ModelBrokers(forget)).restarted({}), first + 1
    assert len(seen) > 10


def _crash_again(machine: Machine, names: Names) -> None:
    again, second = machine.restarted(names), 0
    while again.run(second) is None and not again.committed:
        third = again.restarted([*again.files.left_after_crash()][-1])
        assert third.run() is not None
        third.check()
        again, second = machine.restarted(names), second + 1


# ---- killed drivers with real brokers ------------------------------------------------------------------------


DEATHS = ["before the batch is finished", "after the batch is finished"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with served(tmp_path_factory.mktemp("shop"), 1) as fleet:
        yield fleet


@pytest.mark.parametrize("death", DEATHS)
def test_a_driver_killed_around_the_end_of_a_batch_publishes_it_once(url: Any, tmp_path: Path, death: str) -> None:
    sink = death.replace(" ", "-")
    for kind in (death, "not at all"):
        child = subprocess.run([sys.executable, "-m", __name__, url.config.url, str(tmp_path), sink, kind], check=False)
        assert child.returncode == (-signal.SIGKILL if kind == death else 0)
    events = history(url, f"\"sink.id\" = '{sink}'")
    assert [(event.seq, event.attributes["n"]) for event in events] == [(n + 1, n) for n in range(30)]


def main() -> None:
    """Run a driver in a separate process: it publishes two batches, and is killed around the end of the first."""
    url, folder, sink, death = sys.argv[1:]
    keep = Staging.keep

    def killed(self: Staging, state: State) -> None:
        is_end = state.done >= 0 and state.manifest is None
        if is_end and death == DEATHS[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        keep(self, state)
        if is_end and death == DEATHS[1]:
            os.kill(os.getpid(), signal.SIGKILL)

    Staging.keep = killed  # type: ignore[method-assign]
    options = {"url": url, "timeout": str(int(PATIENCE_S)), "sink": sink, "staging": folder}
    for number, rows in enumerate((range(10), range(10, 30))):
        writer = StreamWriter(SinkOptions.of(options), StructType().add("n", "long"))
        message: Any = writer.write(iter([pa.RecordBatch.from_pydict({"n": [*rows]})]))
        message.query = "query-one"
        writer.commit([message], number)


if __name__ == "__main__":
    main()
