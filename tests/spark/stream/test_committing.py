"""A batch is published exactly once, whichever processes are killed: real brokers, and processes that die in a
batch.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gapless import sync
from gapless.client import Client
from gapless.client.loop_thread import LoopThread
from gapless.errors import GaplessError, SkippedError
from gapless.positions import Position
from gapless.runtime.fleet import Fleet
from gapless_spark.stream.committing import Batch, Committing
from gapless_spark.stream.layout import Layout
from gapless_spark.stream.sink import BatchWriter, Staged, StreamWriter
from gapless_spark.stream.sink_options import SinkOptions
from gapless_spark.stream.staging import Manifest, Staging

from .network import PATIENCE_S, history, schema, served, speak

COLUMNS = schema(topic="string", n="long", price="double", payload="binary")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with served(tmp_path_factory.mktemp("shop"), history_bytes=100_000_000) as fleet:
        yield fleet


def options(fleet: Fleet, folder: Path, sink: str, **more: str) -> SinkOptions:
    settings = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "sink": sink, "staging": str(folder)}
    return SinkOptions.of(settings | more)


def stream(fleet: Fleet, folder: Path, sink: str, **more: str) -> StreamWriter:
    return StreamWriter(options(fleet, folder, sink, **more), COLUMNS)


def rows(first: int, count: int, topic: str = "out") -> Iterator[pa.RecordBatch]:
    names = range(first, first + count)
    columns: dict[str, Any] = {
        "topic": [topic] * count, "n": list(names), "price": [n / 4 if n % 5 else None for n in names],
        "payload": [b"x" * 50] * count,
    }  # fmt: skip
    table = pa.table(columns, schema=pa.schema(
        [("topic", pa.string()), ("n", pa.int64()), ("price", pa.float64()), ("payload", pa.binary())]
    ))  # fmt: skip
    yield from table.to_batches(max_chunksize=1_000)


def staged(writer: Any, *batches: Iterator[pa.RecordBatch], query: str = "query-one") -> list[Any]:
    found = [writer.write(each) for each in batches]
    for message in found:
        assert isinstance(message, Staged)
        message.query = query
    return found


def published(fleet: Fleet, sink: str) -> list[int]:
    events = history(fleet, f"\"sink.id\" = '{sink}'")
    assert len({event.publisher for event in events}) <= 1, "a sink is one client"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [int(event.attributes["n"]) for event in events]


def files(folder: Path) -> list[Path]:
    return list(folder.rglob("*.arrow"))


def test_a_batch_is_published_once_in_the_order_of_its_tasks(fleet: Fleet, tmp_path: Path) -> None:
    writer = stream(fleet, tmp_path, "plain")
    tasks = staged(writer, rows(0, 1_500), rows(1_500, 0), rows(1_500, 700))
    staged(writer, rows(0, 1_500))  # a duplicated task
    writer.commit(tasks, 0)
    assert not files(tmp_path)
    again = staged(stream(fleet, tmp_path, "plain"), rows(0, 2_200))
    stream(fleet, tmp_path, "plain").commit(again, 0)  # the driver crashed before Spark recorded the commit
    assert not files(tmp_path)
    last = stream(fleet, tmp_path, "plain")
    last.commit(staged(last, rows(2_200, 10)), 1)
    assert published(fleet, "plain") == list(range(2_210))
    event = history(fleet, "\"sink.id\" = 'plain' AND n = 1")[0]
    assert event.attributes == {
        "topic": "out", "n": 1, "price": 0.25, "sink.id": "plain", "sink.batch": "query-on/0", "sink.n": 1,
    }  # fmt: skip
    assert event.payload == b"x" * 50
    assert "price" not in history(fleet, "\"sink.id\" = 'plain' AND n = 5")[0].attributes


def test_files_of_a_failed_batch_are_removed(fleet: Fleet, tmp_path: Path) -> None:
    writer = stream(fleet, tmp_path, "failed")
    tasks = staged(writer, rows(0, 100), rows(100, 100))
    assert len(files(tmp_path)) == 2
    writer.abort([tasks[0], None], 0)
    assert not files(tmp_path)
    assert published(fleet, "failed") == []


MANY = 12_000
STANDSTILL = 3_000


def test_a_driver_that_is_killed_while_it_publishes_doubles_and_loses_nothing(fleet: Fleet, tmp_path: Path) -> None:
    for _ in range(2):
        before = len(published(fleet, "killed"))
        child = subprocess.Popen([sys.executable, "-m", __name__, fleet.config.url, str(tmp_path)])
        try:
            with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
                watch = client.subscribe("\"sink.id\" = 'killed'", since="earliest")
                seen = 0
                while seen <= before:
                    seen += len(watch.take(4_096, timeout_s=PATIENCE_S))
        finally:
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        state = Staging(str(tmp_path)).state()
        assert state is not None
        assert state.manifest is not None, "the batch is decided, and not finished"
    writer = stream(fleet, tmp_path, "killed")
    # Spark repeats the batch with its rows in another order; the decided batch is published.
    writer.commit(staged(writer, rows(100, 7), rows(0, 100)), 0)
    assert published(fleet, "killed") == list(range(MANY))
    writer.commit(staged(writer, rows(MANY, 5)), 1)
    assert published(fleet, "killed") == list(range(MANY + 5))


def main() -> None:
    url, folder = sys.argv[1:]
    settings = {"url": url, "timeout": str(int(PATIENCE_S)), "sink": "killed", "staging": folder}
    writer = StreamWriter(SinkOptions.of(settings), COLUMNS)
    events = Committing._events

    def halting(self: Committing, manifest: Manifest, place: int, skipped: int) -> Iterator[Any]:
        for count, event in enumerate(events(self, manifest, place, skipped)):
            if count == STANDSTILL:
                time.sleep(10 * PATIENCE_S)
            yield event

    Committing._events = halting  # type: ignore[method-assign]
    writer.commit(staged(writer, rows(0, MANY // 2), rows(MANY // 2, MANY // 2)), 0)


def test_events_come_after_everything_that_was_published_before(fleet: Fleet, tmp_path: Path) -> None:
    speak(fleet, "b0", [{"topic": "cause", "n": n} for n in range(50)])
    writer = stream(fleet, tmp_path, "later")
    with sync.connect(f"gapless://{fleet.config.addresses['b1']}", timeout_s=PATIENCE_S) as client:
        position = client.position()
    writer.commit(staged(writer, rows(0, 50)), 0)
    effects = history(fleet, "\"sink.id\" = 'later'")
    assert min(event.position for event in effects) > position
    assert [event.attributes["topic"] for event in history(fleet, "topic = 'cause' OR \"sink.id\" = 'later'")] == [
        *["cause"] * 50, *["out"] * 50,
    ]  # fmt: skip


def test_a_named_batch_is_written_once_and_another_one_each_time(fleet: Fleet, tmp_path: Path) -> None:
    def write(first: int, **more: str) -> None:
        writer = BatchWriter(options(fleet, tmp_path, "table", **more), COLUMNS)
        writer.commit(staged(writer, rows(first, 10), rows(0, 0)))

    write(0, batch="monday")
    write(0, batch="monday")
    write(10)
    write(20)
    assert published(fleet, "table") == list(range(30))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("files-")] == []


def refusal(writer: Any, *messages: Any) -> str:
    with pytest.raises(GaplessError) as caught:
        writer.commit(*messages)
    return str(caught.value)


def test_another_query_under_the_same_name_is_refused(fleet: Fleet, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    first, second = stream(fleet, one, "shared"), stream(fleet, two, "shared")
    first.commit(staged(first, rows(0, 10)), 0)
    assert "another query has published as sink 'shared'" in refusal(
        second, staged(second, rows(10, 10), query="query-two"), 0
    )
    assert "belongs to another query" in refusal(first, staged(first, rows(10, 10), query="query-two"), 0)
    other = stream(fleet, one, "else")
    assert "is the staging directory of sink 'shared'" in refusal(other, staged(other, rows(0, 1)), 0)
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        client.advertise("TRUE")
        client.publish({"sink.id": "shared", "sink.batch": "another/0", "sink.n": 0, "n": -1})
    assert "another query publishes as sink 'shared', too" in refusal(first, staged(first, rows(10, 10)), 1)
    first.commit(staged(first, rows(10, 10)), 1)  # the loss was reported once
    assert [event.attributes["n"] for event in history(fleet, "\"sink.id\" = 'shared'")] == [
        *range(10), -1, *range(10, 20),
    ]  # fmt: skip
    lost = stream(fleet, tmp_path / "three", "shared")
    assert "is empty; restore that directory" in refusal(lost, staged(lost, rows(0, 1)), 2)


def test_unpublishable_rows_are_reported_before_any_is_published(fleet: Fleet, tmp_path: Path) -> None:
    writer = stream(fleet, tmp_path, "large")
    big = pa.RecordBatch.from_pydict({"topic": ["x"], "n": [1], "price": [1.0], "payload": [b"." * 70_000]})
    assert "an event of the batch has up to" in refusal(writer, staged(writer, iter([big])), 0)
    writer.abort([None], 0)
    unseen = staged(writer, rows(0, 1))
    files(tmp_path)[0].unlink()
    assert "but the driver cannot read it" in refusal(writer, unseen, 0)
    assert published(fleet, "large") == []


def test_a_directory_in_use_is_waited_for_and_then_reported(tmp_path: Path) -> None:
    staging = Staging(str(tmp_path))
    staging.prepare()
    with (
        staging.locked(1.0),
        pytest.raises(GaplessError, match="another process publishes from"),
        Staging(str(tmp_path)).locked(0.2),
    ):
        pass


def flood(fleet: Fleet) -> None:
    for _ in range(4):
        speak(fleet, "b0", [{"topic": "flood"}] * 100, b"." * 1_000, at_once=10)
        with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
            client.position()


def test_events_dropped_by_brokers_are_counted_by_number(tmp_path: Path) -> None:
    with served(tmp_path / "brokers", 1, history_bytes=100_000) as small:
        folder = tmp_path / "staging"
        writer = stream(small, folder, "short")
        writer.commit(staged(writer, rows(0, 10)), 0)
        _half(small, folder, staged(writer, rows(10, 300)))
        flood(small)
        with sync.connect(small.config.url, timeout_s=PATIENCE_S) as client:
            received = client.subscribe("\"sink.id\" = 'short'")
            writer.commit(staged(writer, rows(0, 1)), 1)
            events = received.take(300, timeout_s=PATIENCE_S)
            while events[-1].attributes["n"] != 309:
                events += received.take(300, timeout_s=PATIENCE_S)
        assert [event.attributes["n"] for event in events] == list(range(310 - len(events), 310))
        assert 10 < len(events) < 300, "some were there, and dropped"
        assert [event.seq for event in events] == [*range(311 - len(events), 311)]


def test_tasks_publish_their_shares_and_the_driver_those_of_lost_tasks(fleet: Fleet, tmp_path: Path) -> None:
    writer = stream(fleet, tmp_path, "shares", publishers="2")
    here = staged(writer, rows(0, 700), rows(700, 0), rows(700, 300), rows(1_000, 500))
    gone = replace(here[0].publisher, port=1)
    here[2].publisher = here[3].publisher = gone
    writer.commit(here, 0)
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        position = client.position()
    again = staged(writer, rows(1_500, 100), rows(1_600, 100))
    again[1].publisher = replace(here[0].publisher, writer="another")  # it rejects the request
    writer.commit(again, 1)
    events = history(fleet, "\"sink.id\" = 'shares'")
    assert sorted(int(event.attributes["n"]) for event in events) == list(range(1_700))
    for publisher in {event.publisher for event in events}:
        mine = [event for event in events if event.publisher == publisher]
        assert [event.seq for event in mine] == list(range(1, len(mine) + 1))
    assert len({event.publisher for event in events}) == 2
    assert {event.attributes["sink.n"] for event in events} == set(range(1_500))
    second = [event for event in events if int(event.attributes["n"]) >= 1_500]
    assert min(event.position for event in second) > position
    assert not files(tmp_path)


class Forgotten:
    position = Position.at(9)

    def __init__(self) -> None:
        self._options = False

    async def take(self, most: int) -> list[Any]:
        if self._options:
            return []
        self._options = True
        raise SkippedError("an unknown number of events are gone", {}, (Position.at(1), Position.at(9)))


def test_with_an_unknown_size_the_user_is_asked(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = stream(fleet, tmp_path, "short")
    writer.commit(staged(writer, rows(0, 10)), 0)
    _half(fleet, tmp_path, staged(writer, rows(10, 300)))

    async def forgotten(*_: Any, **__: Any) -> Forgotten:
        return Forgotten()

    with monkeypatch.context() as patch:
        patch.setattr(Client, "read", forgotten)
        settings = refusal(writer, staged(writer, rows(0, 1)), 1)
    assert "brokers no longer have the history since then" in settings
    assert "'query-on/1'" in settings
    there = published(fleet, "short")
    assert 10 < len(there) < 310
    with monkeypatch.context() as patch:
        patch.setattr(Client, "read", forgotten)
        writer = stream(fleet, tmp_path, "short", published=str(len(there) - 10))
        writer.commit(staged(writer, rows(0, 1)), 1)
    assert published(fleet, "short") == list(range(310))


def test_a_batch_that_is_found_empty_when_it_runs_again_is_finished_as_it_was_decided(
    fleet: Fleet, tmp_path: Path
) -> None:
    writer = stream(fleet, tmp_path, "emptied")
    writer.commit(staged(writer, rows(0, 10)), 0)
    _half(fleet, tmp_path, staged(writer, rows(10, 300)), "emptied")
    writer.commit(staged(writer, rows(0, 0)), 1)
    assert published(fleet, "emptied") == list(range(310))
    assert not files(tmp_path)


def _half(fleet: Fleet, folder: Path, tasks: list[Any], sink: str = "short") -> None:
    class Halfway(Committing):
        def _events(self, manifest: Any, client: int, skipped: int) -> Iterator[Any]:
            for place, event in enumerate(super()._events(manifest, client, skipped)):
                if place == 100:
                    raise RuntimeError("no more")
                yield event

    committing = Halfway(options(fleet, folder, sink), Staging(str(folder)), Layout(COLUMNS, "payload"))
    listed = [(task.file, task.rows) for task in tasks]
    loop = LoopThread()
    with pytest.raises(RuntimeError, match="no more"):
        loop.run(committing.commit(Batch("query-one", "query-on", 1, "", "1", listed, 200)))
    loop.stop()


if __name__ == "__main__":
    main()
