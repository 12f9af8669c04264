"""One history over an archive and brokers, though brokers have dropped what is in the archive."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gapless.archive import Archive
from gapless.cli.archive import archive_history
from gapless.errors import GaplessError
from gapless.positions import Position
from gapless.runtime.fleet import Fleet
from gapless_spark.stream import register
from gapless_spark.stream.columns import default_schema
from gapless_spark.stream.options import Options
from gapless_spark.stream.source import Reader, StreamReader

from .network import PATIENCE_S, history, schema, served, speak

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


def test_a_table_over_archive_and_brokers_is_whole_and_tells_the_seam(
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


def test_an_archive_that_does_not_fit_is_told(archived: tuple[Fleet, Path], tmp_path: Path) -> None:
    fleet, directory = archived
    assert "there is no archive at" in refusal(fleet, tmp_path)
    assert "which is not all that 'TRUE' matches" in refusal(fleet, directory, filter="TRUE")
    with pytest.raises(GaplessError, match="a stream reads from brokers alone"):
        StreamReader(Options.of(options(fleet, directory)), schema(n="long"))
    with served(tmp_path / "other", 1, name="bank") as other:
        assert "is an archive of network 'shop', but these brokers are of network 'bank'" in refusal(other, directory)
