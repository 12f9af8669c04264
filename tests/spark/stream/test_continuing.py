"""One history from an archive and brokers, although brokers have dropped the archived events."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gapless import sync
from gapless.archive import Archive
from gapless.cli.archive import archive_history
from gapless.errors import GaplessError
from gapless.positions import Position
from gapless.runtime.fleet import Fleet
from gapless_spark.stream import register
from gapless_spark.stream.columns import default_schema
from gapless_spark.stream.lag import lag_of
from gapless_spark.stream.options import Options
from gapless_spark.stream.source import Reader, StreamReader

from .network import PATIENCE_S, history, rows_between, schema, served, speak, stream_reader

EVENTS = 600


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[tuple[Fleet, Path]]:
    register(spark)
    folder = tmp_path_factory.mktemp("shop")
    with served(folder, 1, history_bytes=100_000) as fleet:
        for first in range(0, EVENTS, 100):
            numbers = range(first, first + 100)
            speak(fleet, "b0", [{"topic": "trade", "n": n} for n in numbers], b"." * 300, at_once=10)
            if first < EVENTS - 100:
                keep(fleet, folder / "archive")
        yield fleet, folder / "archive"


def keep(fleet: Fleet, directory: Path) -> None:
    archive_history(
        fleet.config.url, "topic = 'trade'", directory, every_s=1.0, once=True, allow_gaps=False, credentials=None,
        as_json=True,
    )  # fmt: skip


def options(fleet: Fleet, directory: Path, **more: str) -> dict[str, Any]:
    given = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "archive": str(directory)}
    return given | {"filter": "topic = 'trade'"} | more


def test_a_table_over_archive_and_brokers_is_complete_and_reports_the_seam(
    spark: SparkSession, archived: tuple[Fleet, Path]
) -> None:
    fleet, directory = archived
    assert len(history(fleet, "topic = 'trade'")) < EVENTS
    frame = spark.read.format("gapless").options(**options(fleet, directory))
    table = frame.schema("n BIGINT, position STRING, payload BINARY, origin STRING").load()
    rows = table.where("n >= 20").orderBy("n").collect()
    assert [row.n for row in rows] == list(range(20, EVENTS))
    assert {row.origin for row in rows} == {"archive", "brokers"}
    seam = Archive(directory).contents().until
    assert all((row.origin == "archive") == (Position(row.position) <= seam) for row in rows)
    assert bytes(rows[0].payload) == b"." * 300


def refusal(fleet: Fleet, directory: Path, **more: str) -> str:
    with pytest.raises(GaplessError) as caught:
        Reader(Options.of(options(fleet, directory, **more)), default_schema(is_variant=False)).partitions()
    return str(caught.value)


def test_an_archive_that_does_not_fit_is_reported(archived: tuple[Fleet, Path], tmp_path: Path) -> None:
    fleet, directory = archived
    assert "there is no archive at" in refusal(fleet, tmp_path)
    assert "which is less than 'TRUE' matches" in refusal(fleet, directory, filter="TRUE")
    with served(tmp_path / "other", 1, name="bank") as other:
        assert "is an archive of network 'shop', but these brokers are of network 'bank'" in refusal(other, directory)


@pytest.mark.parametrize("limit", [None, 150])
def test_a_stream_begins_in_the_archive_and_continues_at_brokers(
    archived: tuple[Fleet, Path], limit: int | None
) -> None:
    fleet, directory = archived
    more = {} if limit is None else {"maxEventsPerTrigger": str(limit)}
    given = Options.of(options(fleet, directory, startingPosition="earliest", **more))
    reader = StreamReader(given, schema(n="long", origin="string"))
    found: list[list[dict[str, Any]]] = []
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        found.append(rows_between(reader, start, end))
        again = StreamReader(given, schema(n="long", origin="string"))
        assert rows_between(again, start, end) == found[-1], "a batch that is read again is the same"
        again.stop()
        start = end
    reader.stop()
    assert [row["n"] for rows in found for row in rows] == list(range(EVENTS))
    assert {row["origin"] for rows in found for row in rows} == {"archive", "brokers"}
    if limit is not None:
        assert len(found) >= EVENTS // limit
        assert max(map(len, found)) <= limit


def test_a_query_has_a_durable_position_that_its_commits_move(archived: tuple[Fleet, Path]) -> None:
    fleet, _ = archived
    given = {"filter": "topic = 'trade'", "durable": "nightly", "startingPosition": "latest"}
    reader = stream_reader(fleet, schema(n="long"), **given)
    first = reader.initialOffset()
    assert reader.latestOffset(first, reader.getDefaultReadLimit()) == first
    speak(fleet, "b0", [{"topic": "trade", "n": n} for n in range(EVENTS, EVENTS + 10)])
    end = reader.latestOffset(first, reader.getDefaultReadLimit())
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        [before] = client.admin.list()
        reader.commit(end)
        [after] = client.admin.list()
        assert (before.name, before.filter, before.client) == ("nightly", given["filter"], "")
        assert (str(before.position), str(after.position)) == (first["position"], end["position"])
        reader.stop()
        again = stream_reader(fleet, schema(n="long"), **given | {"startingPosition": ""})
        assert again.initialOffset()["position"] == end["position"]
        again.stop()
        other = stream_reader(fleet, schema(n="long"), **given | {"filter": "TRUE"})
        with pytest.raises(GaplessError, match="'nightly' has the filter \"topic = 'trade'\", not 'TRUE'"):
            other.latestOffset(first, other.getDefaultReadLimit())
        other.stop()
    with pytest.raises(GaplessError, match="the option 'durable' is for spark"):
        Reader(Options.of({"url": fleet.config.url, "durable": "nightly"}), schema(n="long"))


def test_the_lag_of_a_query_is_counted_from_its_progress(archived: tuple[Fleet, Path]) -> None:
    fleet, _ = archived
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        position = str(client.position())
    progress = {"sources": [{"endOffset": f'{{"network": "shop", "position": "{position}"}}'}]}
    speak(fleet, "b0", [{"topic": "slow", "n": n} for n in range(30)], b"." * 100)
    lag = lag_of(progress, url=fleet.config.url, filter="topic = 'slow'")
    assert lag is not None
    assert (lag.events, str(lag.position)) == (30, position)
    assert 30 * 100 < lag.bytes <= 30 * (100 + 9 + 9)
    assert lag.ms > 0
    assert lag.newest > lag.position
    assert lag_of({"sources": [{"endOffset": None}]}, url=fleet.config.url) is None
