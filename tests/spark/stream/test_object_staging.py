"""A sink that stages in a store of objects, without locks and renames: each batch is published exactly once."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.fs import FileSystem

from gapless.errors import SparkError
from gapless.runtime.fleet import free_ports
from gapless_spark.stream.committing import Batch
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.object_staging import ObjectStaging
from gapless_spark.stream.sink import StreamWriter, Tasks
from gapless_spark.stream.sink_options import SinkOptions

from .crashes import Crashed, CrashingObjects, ModelBrokers, ModelledCommitting, Steps
from .network import PATIENCE_S, history, schema, served

COLUMNS = schema(n="long")
ROWS = 3
OPTIONS = SinkOptions.of({"url": "gapless://model:1", "sink": "bills", "staging": "s3://model/bills"})


class Driver:
    """Successive or simultaneous driver processes with the same store and the same brokers."""

    def __init__(self, root: Path, brokers: ModelBrokers, on_step: Callable[[str], None] = lambda _: None) -> None:
        self.root, self.brokers, self._on_step = root, brokers, on_step
        self.objects = CrashingObjects(root)

    def publish(self, number: int, last: int = -1) -> list[str] | None:
        steps = Steps(last)

        def step(name: str) -> None:
            steps(name)
            self._on_step(name)

        staging = ObjectStaging(self.objects, self.root)
        self.objects.step = step  # type: ignore[assignment]
        try:
            tasks = Tasks(OPTIONS, COLUMNS, "files")
            tasks.staging = staging
            rows = pa.RecordBatch.from_pydict({"n": list(range(number * ROWS, (number + 1) * ROWS))})
            written = tasks.write(iter([rows]))
            batch = Batch("query", "run", number, "", str(number), [(written.file, written.rows)], 100)
            committing = ModelledCommitting(OPTIONS, staging, Layout(COLUMNS, "payload"))
            committing.brokers, committing.step = self.brokers, step  # type: ignore[assignment]
            asyncio.run(committing.commit(batch))
        except Crashed:
            self.brokers.crash()
            return None
        return steps.taken

    def check(self, batches: int) -> None:
        events = self.brokers.history
        assert [event.attributes["n"] for event in events] == list(range(batches * ROWS))
        assert [event.seq for event in events] == list(range(1, batches * ROWS + 1))
        assert len({event.publisher for event in events}) == 1


@pytest.mark.parametrize("forget", [False, True], ids=["brokers know it", "brokers forget it"])
def test_a_crash_at_any_step(tmp_path: Path, forget: bool) -> None:
    calm = Driver(tmp_path / "calm", ModelBrokers(forget))
    assert calm.publish(0) is not None
    steps = calm.publish(1)
    assert steps is not None
    for last in range(len(steps)):
        driver = Driver(tmp_path / str(last), ModelBrokers(forget))
        driver.publish(0)
        assert driver.publish(1, last) is None
        assert driver.publish(1) is not None
        assert driver.publish(2) is not None
        driver.check(3)


def test_a_driver_paused_at_any_step_while_another_publishes(tmp_path: Path) -> None:
    """The second driver takes over whenever the first is paused; the first then continues, and changes nothing."""
    calm = Driver(tmp_path / "calm", ModelBrokers(forget=False))
    calm.publish(0)
    steps = calm.publish(1)
    assert steps is not None
    for still in range(len(steps)):
        place = [0]
        brokers = ModelBrokers(forget=False, refuses=True)
        second = Driver(tmp_path / str(still), brokers)

        def stand_still(_: str, place: list[int] = place, second: Driver = second, still: int = still) -> None:
            place[0] += 1
            if place[0] == still + 1:
                in_thread(second.publish, 1)

        Driver(tmp_path / str(still), brokers).publish(0)
        first = Driver(tmp_path / str(still), brokers, stand_still)
        with suppress(SparkError, FileNotFoundError):  # it may notice that its client was taken over
            first.publish(1)
        assert second.publish(2) is not None
        second.check(3)


def in_thread(work: Callable[..., Any], *arguments: Any) -> None:
    from threading import Thread

    thread = Thread(target=work, args=arguments)
    thread.start()
    thread.join(PATIENCE_S)


def test_a_stream_stages_beside_its_checkpoint_in_a_store() -> None:
    given = {"url": "host", "sink": "s", "checkpointLocation": "s3a://bucket/query?region=eu-west-1"}
    assert SinkOptions.of(given).staging == "s3a://bucket/query/gapless-sink?region=eu-west-1"


# ---- a server that speaks S3 -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    pytest.importorskip("moto", reason="moto is the S3-compatible server of this test")
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        where = f"?scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1&allow_bucket_creation=true"
        FileSystem.from_uri(f"s3://name:secret@bucket/{where}")[0].create_dir("bucket")
        yield f"s3://name:secret@bucket/query{where}"
    finally:
        server.kill()
        server.wait()


def test_batches_are_published_once_from_a_store(store: str, tmp_path: Path) -> None:
    with served(tmp_path, 1) as fleet:
        options = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "sink": "cloud", "staging": store}

        def commit(number: int, rows: range) -> None:
            writer = StreamWriter(SinkOptions.of(options), COLUMNS)
            message: Any = writer.write(iter([pa.RecordBatch.from_pydict({"n": [*rows]})]))
            message.query = "query-one"
            writer.commit([message], number)

        commit(0, range(10))
        commit(0, range(10))
        commit(1, range(10, 2_000))
        events = history(fleet, "\"sink.id\" = 'cloud'")
        assert [(event.seq, event.attributes["n"]) for event in events] == [(n + 1, n) for n in range(2_000)]
