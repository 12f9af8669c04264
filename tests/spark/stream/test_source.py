"""Spark reads what clients of a real network published: in batches and as a stream, while brokers die."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from gapless import Event, sync
from gapless.positions import Position
from gapless.runtime.fleet import Fleet
from gapless_spark.stream import register

from .network import PATIENCE_S, history, patiently, rows_between, served, speak, stream_reader

TRADES = 1_200
LIMIT = 500


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Fleet]:
    register(spark)
    with served(tmp_path_factory.mktemp("shop")) as fleet:
        for place, broker in enumerate(("b0", "b2")):
            trades: list[dict[str, Any]] = [
                {"topic": "trade", "n": n, "price": n / 4, "side": "buy" if n % 2 else "sell"}
                for n in range(place, TRADES, 2)
            ]
            speak(fleet, broker, trades, b"\x00\xff")
        odd: list[dict[str, Any]] = [{"topic": "odd", "n": "seven", "price": 7}, {"topic": "odd"}]
        speak(fleet, "b1", odd)
        yield fleet


def reading(spark: SparkSession, fleet: Fleet, **options: str) -> Any:
    given = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), **options}
    return spark.read.format("gapless").options(**given)


def streaming(spark: SparkSession, fleet: Fleet, **options: str) -> DataFrame:
    given = {"url": fleet.config.url, "timeout": str(int(PATIENCE_S)), "startingPosition": "earliest", **options}
    return spark.readStream.format("gapless").options(**given).load()


def run(stream: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None]) -> Any:
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))

    def go() -> Any:
        started = query.trigger(availableNow=True).start()
        started.awaitTermination()
        return started.lastProgress

    return patiently(go)


def row_of(event: Event) -> tuple[Any, ...]:
    return event.id, event.publisher, event.seq, str(event.position), event.payload


def test_a_batch_holds_what_a_client_reads_and_its_order_can_be_restored(spark: SparkSession, fleet: Fleet) -> None:
    frame = reading(spark, fleet, filter="topic = 'trade'", maxEventsPerPartition="1").load()
    found = frame.orderBy("causal_rank").collect()
    events = history(fleet, "topic = 'trade'")
    assert [(row.event_id, row.publisher, row.seq, row.position, bytes(row.payload)) for row in found] == list(
        map(row_of, events)
    )
    assert [row.attributes["n"] for row in found] == [str(event.attributes["n"]) for event in events]
    assert found[0].published_at.replace(tzinfo=UTC) == Position(found[0].position).time


def test_columns_of_a_schema_are_filled_from_attributes_and_conditions_go_to_the_brokers(
    spark: SparkSession, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = reading(spark, fleet).schema("topic STRING, n BIGINT, price DOUBLE, misfits INT").load()
    wanted = frame.where("topic = 'trade' AND price > 299 AND n < 1199")
    assert sorted(row.n for row in wanted.collect()) == [1197, 1198]
    capsys.readouterr()
    wanted.explain("formatted")
    [pushed] = [line for line in capsys.readouterr().out.splitlines() if "PushedFilters" in line]
    assert "EqualTo(topic,trade)" in pushed
    assert "GreaterThan(price,299.0)" in pushed
    odd = sorted(map(tuple, frame.where("topic = 'odd'").collect()), key=str)
    assert odd == [("odd", None, 7.0, 1), ("odd", None, None, 0)]


def test_a_variant_is_queried_by_path(spark: SparkSession, fleet: Fleet) -> None:
    frame = reading(spark, fleet, attributes="variant", filter="topic = 'trade' AND n = 8").load()
    [row] = frame.selectExpr("attributes:price::double AS price", "attributes:side::string AS side").collect()
    assert tuple(row) == (2.0, "sell")


def test_a_restarted_stream_continues_where_it_was_in_the_same_network(
    spark: SparkSession, fleet: Fleet, tmp_path: Path
) -> None:
    batches: list[tuple[int, list[str]]] = []

    def each(frame: DataFrame, number: int) -> None:
        batches.append((number, [row.event_id for row in frame.select("event_id").collect()]))

    topic = f"again-{time.time_ns()}"
    stream = streaming(spark, fleet, filter=f"topic IN ('trade', '{topic}')", maxEventsPerTrigger=str(LIMIT))
    progress = run(stream, tmp_path / "checkpoint", each)
    assert len(batches) == 1 + TRADES // LIMIT
    assert progress.sources[0].endOffset.count("position") == 1, "one position for the whole network"
    before = len(batches)
    fleet.kill("b0")  # it has half of the history; its replica has that, too
    try:
        speak(fleet, "b2", [{"topic": topic, "n": n} for n in range(150)])
        run(stream, tmp_path / "checkpoint", each)
    finally:
        fleet.start("b0")
    assert [number for number, _ in batches] == list(range(len(batches)))
    assert all(len(ids) <= LIMIT for _, ids in batches)
    assert sum(len(ids) for _, ids in batches[before:]) == 150
    seen = Counter(name for _, ids in batches for name in ids)
    assert set(seen.values()) == {1}
    assert set(seen) == {event.id for event in history(fleet, f"topic IN ('trade', '{topic}')")}
    assert _is_in_order(batches)
    with served(tmp_path / "other", 1, name="bank") as other, pytest.raises(StreamingQueryException) as caught:
        run(streaming(spark, other), tmp_path / "checkpoint", each)
    assert "the checkpoint belongs to network 'shop', but these brokers are of network 'bank'" in complaint(caught)


def _is_in_order(batches: list[tuple[int, list[str]]]) -> bool:
    last: dict[str, int] = {}
    for _, ids in batches:
        for publisher, number in sorted((name.rpartition(":")[0], int(name.rpartition(":")[2])) for name in ids):
            if last.get(publisher, 0) >= number:
                return False
            last[publisher] = number
    return True


def test_a_batch_that_is_read_again_is_the_same_row_for_row_while_a_broker_is_down(fleet: Fleet) -> None:
    reader = stream_reader(fleet, startingPosition="earliest", filter="topic = 'trade'", maxEventsPerPartition="100")
    start = reader.initialOffset()
    assert reader.initialOffset() == start
    end = reader.latestOffset(start, ReadAllAvailable())
    first = rows_between(reader, start, end)
    reader.stop()
    fleet.kill("b2")
    try:
        again = stream_reader(fleet, filter="topic = 'trade'")
        assert len(again.partitions(start, end)) > 3
        assert rows_between(again, start, end) == first
        again.stop()
    finally:
        fleet.start("b2")
    assert len(first) == TRADES


def test_without_new_events_there_is_no_batch_but_the_offset_advances(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = stream_reader(fleet, filter="topic = 'nobody says'", startingPosition="latest")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(5)) is start
    monkeypatch.setattr("gapless_spark.stream.source.IDLE_US", 0)
    later = reader.latestOffset(start, ReadMaxRows(5))
    assert Position(later["position"]) > Position(start["position"])
    assert reader.reportLatestOffset() == later
    reader.stop()


# ---- errors --------------------------------------------------------------------------------------------------


def complaint(caught: pytest.ExceptionInfo[PySparkException]) -> str:
    said = str(caught.value)
    assert "Traceback" not in said
    assert "\tat " not in said
    return said


def test_a_query_starts_after_an_event_in_the_middle_of_what_was_published_together(
    spark: SparkSession, fleet: Fleet, tmp_path: Path
) -> None:
    topic = f"together-{time.time_ns()}"
    speak(fleet, "b0", [{"topic": topic, "n": n} for n in range(10)], at_once=10)
    events = history(fleet, f"topic = '{topic}'")
    fifth, last = str(events[4].position), str(events[8].position)
    frame = reading(spark, fleet, filter=f"topic = '{topic}'", startingPosition=fifth, endingPosition=last)
    rows = frame.schema("n BIGINT, position STRING").load().orderBy("n").collect()
    assert [(row.n, row.position) for row in rows] == [(n, str(events[n].position)) for n in (5, 6, 7, 8)]
    got: list[str] = []

    def each(frame: DataFrame, number: int) -> None:
        got.extend(row.event_id for row in frame.orderBy("causal_rank").collect())

    stream = streaming(spark, fleet, filter=f"topic = '{topic}'", startingPosition=fifth, maxEventsPerTrigger="2")
    progress = run(stream, tmp_path / "checkpoint", each)
    assert got == [event.id for event in events[5:]]
    source = progress.sources[0]
    assert Position(json.loads(source.endOffset)["position"]).is_network_wide, "what it plans is a whole cut"
    first = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1])
    assert Position(first["position"]) >= events[4].position


def test_an_invalid_offset_is_reported_in_a_sentence(fleet: Fleet) -> None:
    reader = stream_reader(fleet)
    for wrong in ({"network": "shop", "position": 1793280000000000}, {"network": "shop"}, {"position": "p1"}):
        with pytest.raises(Exception, match=r"which is not an offset of this source .*; use another checkpoint"):
            reader.latestOffset(wrong, ReadAllAvailable())
    reader.stop()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"filter": "a == 1"}, "equality is written with a single ="),
        ({"url": "gapless://127.0.0.1:1", "timeout": "1"}, "no broker could be reached"),
    ],
)
def test_unreadable_input_is_reported_in_one_sentence(
    spark: SparkSession, fleet: Fleet, options: dict[str, str], sentence: str
) -> None:
    with pytest.raises(AnalysisException) as caught:
        reading(spark, fleet, **options).load().count()
    assert sentence in complaint(caught)


def test_a_schema_that_does_not_fit_is_reported_in_a_sentence(spark: SparkSession, fleet: Fleet) -> None:
    with pytest.raises(AnalysisException) as caught:
        reading(spark, fleet).schema("n ARRAY<INT>").load().count()
    assert "the column 'n' is ARRAY<INT>" in complaint(caught)


def test_deleted_history_ends_a_query_or_is_counted(tmp_path: Path) -> None:
    with served(tmp_path, 1, history_bytes=100_000) as small:
        with sync.connect(small.config.url, timeout_s=PATIENCE_S) as client:
            begin = client.position()
            for _ in range(4):
                speak(small, "b0", [{"topic": "gone"}] * 100, b"." * 1_000, at_once=10)
                client.position()
        start = {"network": "shop", "position": str(begin)}
        strict = stream_reader(small)
        with pytest.raises(Exception, match="are lost: no broker holds them any longer; to continue without them set"):
            strict.latestOffset(start, ReadAllAvailable())
        strict.stop()
        lenient = stream_reader(small, failOnDataLoss="false")
        end = lenient.latestOffset(start, ReadAllAvailable())
        assert end["gone"] > 0
        rows = rows_between(lenient, start, end)
        assert 0 < len(rows) < 400
        lenient.stop()
