"""Spark writes events to a real network: as a stream that stops and restarts, and as a table."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from gapless.positions import Position
from gapless.runtime.fleet import Fleet
from gapless_spark.stream import register

from .network import PATIENCE_S, history, patiently, served, speak

TRADES = 900
LIMIT = 400


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Fleet]:
    register(spark)
    with served(tmp_path_factory.mktemp("shop"), 2) as fleet:
        yield fleet


def written(frame: DataFrame, fleet: Fleet, checkpoint: Path, **options: str) -> None:
    given = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "checkpointLocation": str(checkpoint)}

    def go() -> None:
        query = frame.writeStream.format("gapless").options(**(given | options)).trigger(availableNow=True).start()
        query.awaitTermination()

    patiently(go)


def test_a_stream_is_enriched_and_published_back_once_after_its_causes(
    spark: SparkSession, fleet: Fleet, tmp_path: Path
) -> None:
    source = spark.readStream.format("gapless").options(
        url=fleet.config.url, timeout=str(int(PATIENCE_S)), filter="topic = 'trade'",
        startingPosition="earliest", maxEventsPerTrigger=str(LIMIT),
    )  # fmt: skip
    trades = source.schema("n BIGINT, price DOUBLE, position STRING, payload BINARY").load()
    enriched = trades.selectExpr("'enriched' AS topic", "n", "price * 2 AS doubled", "position AS cause", "payload")
    speak(fleet, "b0", [{"topic": "trade", "n": n, "price": n / 4} for n in range(TRADES)], b"note", at_once=50)
    written(enriched, fleet, tmp_path / "checkpoint", sink="enriched")
    speak(fleet, "b1", [{"topic": "trade", "n": n, "price": n / 4} for n in range(TRADES, TRADES + 50)], b"note")
    written(enriched, fleet, tmp_path / "checkpoint", sink="enriched")
    events = history(fleet, "topic = 'enriched'")
    assert [event.attributes["n"] for event in events] == list(range(TRADES + 50))
    assert all(event.attributes["doubled"] == int(event.attributes["n"]) / 2 for event in events)
    assert {event.payload for event in events} == {b"note"}
    assert len({event.publisher for event in events}) == 1
    batches = {str(event.attributes["sink.batch"]) for event in events}
    assert len(batches) == 4
    assert all(re.fullmatch(r"[0-9a-f]{8}/[0-9]+", batch) for batch in batches)
    for batch in batches:
        mine = [event for event in events if event.attributes["sink.batch"] == batch]
        assert [event.attributes["sink.n"] for event in mine] == list(range(len(mine)))
        assert min(event.position for event in mine) > max(Position(str(event.attributes["cause"])) for event in mine)


def test_a_table_is_published_and_a_named_batch_once(spark: SparkSession, fleet: Fleet, tmp_path: Path) -> None:
    rows = spark.range(0, 500, 1, 2).selectExpr(
        "'table' AS topic",
        "id",
        "id % 2 = 0 AS even",
        "map('colour', 'red') AS attributes",
        "array(id) AS note",
        "timestamp'2026-11-16 10:32:00 UTC' AS at",
    )
    topic = f"table-{time.time_ns()}"
    options: dict[str, Any] = {
        "url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "sink": topic, "staging": str(tmp_path),
        "payload": "note", "batch": "once", "publishers": 2,
    }  # fmt: skip
    for _ in range(2):
        rows.write.format("gapless").options(**options).mode("append").save()
    events = history(fleet, "topic = 'table'")
    assert {event.publisher.count("-") for event in events} <= {1, 2}, "the driver's client, and another worker's"
    events.sort(key=lambda event: event.attributes["sink.n"])
    assert [event.attributes["id"] for event in events] == list(range(500))
    assert events[1].attributes["even"] is False
    assert events[1].attributes["colour"] == "red"
    assert events[1].attributes["at"] == "2026-11-16T10:32:00.000000Z"
    assert events[1].payload == b"[1]"


@pytest.mark.parametrize(
    ("column", "options", "mode", "sentence"),
    [
        ("array(1) AS t", {}, "append", "the column 't' is ARRAY<INT>, but an attribute is STRING"),
        ("1 AS n", {"url": "gapless://127.0.0.1:1", "timeout": "1"}, "append", "no broker could be reached"),
        ("1 AS n", {}, "overwrite", "published events cannot be withdrawn"),
    ],
)
def test_failed_writes_are_reported_in_one_sentence(
    spark: SparkSession, fleet: Fleet, tmp_path: Path, column: str, options: dict[str, str], mode: str, sentence: str
) -> None:
    given = {"url": fleet.config.url, "sink": "refused", "staging": str(tmp_path)} | options
    with pytest.raises(PySparkException) as caught:
        spark.range(1).selectExpr(column).write.format("gapless").options(**given).mode(mode).save()
    assert sentence in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_stream_whose_sink_is_of_another_network_ends_with_an_error(
    spark: SparkSession, fleet: Fleet, tmp_path: Path
) -> None:
    events = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load().selectExpr("value AS n")
    written(events, fleet, tmp_path / "checkpoint", sink="moved")
    with served(tmp_path / "other", 1, name="bank") as other, pytest.raises(StreamingQueryException) as caught:
        written(events, other, tmp_path / "checkpoint", sink="moved")
    assert "sink 'moved' publishes to network 'shop', but these brokers are of network 'bank'" in str(caught.value)
    assert "Traceback" not in str(caught.value)
