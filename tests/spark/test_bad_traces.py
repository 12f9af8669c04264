"""A directory that is not a trace, or an impossible trace, is refused with one sentence, in the words of the
checkers."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from gapless.checkers import check
from gapless.checkers.verdict_rows import ROWS_MAX
from gapless.errors import TraceError
from gapless.events import Event
from gapless.trace import CutShortRow, PartRecorder, Recorder, RunRow, Trace, write_trace
from gapless_spark.audit import audit
from gapless_spark.spark_errors import plain_errors
from gapless_spark.tables import read_tables, write_tables
from tests.checkers.test_evidence import DAMAGES as IMPOSSIBLE
from tests.checkers.test_evidence import good
from tests.conftest import Cli
from tests.trace.test_trace_storage import DAMAGES as DAMAGED
from tests.trace.test_trace_storage import a_run, of_version_1


def refused(spark: SparkSession, place: Path, rows_max: int = ROWS_MAX) -> str:
    with pytest.raises(TraceError) as caught, plain_errors():
        audit(spark, read_tables(spark, place), rows_max=rows_max)
    said = str(caught.value)
    assert "\n" not in said
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("whole") / "trace"
    write_trace(a_run(), place)
    return place


@pytest.mark.parametrize(("sentence", "damage"), DAMAGED, ids=[sentence for sentence, _ in DAMAGED])
def test_a_damaged_trace(
    spark: SparkSession,
    cli: Cli,
    whole: Path,
    tmp_path: Path,
    sentence: str,
    damage: Callable[[Path], object],
) -> None:
    shutil.copytree(whole, tmp_path / "trace")
    damage(tmp_path / "trace")
    ran = cli("audit", tmp_path / "trace", "--out", tmp_path / "judged")
    assert (ran.code, ran.out) == (64, "")
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert not re.search(r"java|org\.apache|Exception", ran.err)
    assert [entry.name for entry in tmp_path.iterdir()] == ["trace"], "something half-written was left"


def test_no_trace_at_all(spark: SparkSession, tmp_path: Path) -> None:
    assert refused(spark, tmp_path / "nowhere") == f"there is no trace at {tmp_path}/nowhere"
    (tmp_path / "empty").mkdir()
    assert "has no table 'runs'" in refused(spark, tmp_path / "empty")


def test_a_trace_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    PartRecorder(tmp_path / "trace", RunRow("r", "p", "gcd", "s", 0, 1, 0, False, "{}"), "ann").close()
    assert "gapless trace merge" in refused(spark, tmp_path / "trace")


def test_messages_may_be_missing(spark: SparkSession, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "trace [1], a copy")
    shutil.rmtree(tmp_path / "trace [1], a copy" / "messages")
    tables = read_tables(spark, tmp_path / "trace [1], a copy")
    assert tables.messages.count() == 0
    assert tables.rows["history"] == tables.history.count() == 15


def contradiction() -> Trace:
    recorder = Recorder(run="r", protocol="p", guarantee="gcd", scenario="s", seed=0, brokers=1, f=0)
    for client in ("ann", "bob"):
        recorder.subscribe(client, f"s-{client}", "x = 1", 0)
    ann, bob = Event("ann", 1, {"x": 1}), Event("bob", 1, {"x": 1})
    recorder.deliver("ann", bob, "s-ann", 1)
    recorder.deliver("bob", ann, "s-bob", 1)
    recorder.publish("ann", ann, 2)
    recorder.publish("bob", bob, 2)
    return recorder.finish(quiesced=True)


TRIED = [
    "no single step 1",
    "ann:1 is listed twice",
    "s9, which is not listed",
    "filter 'x =' ",
    "are not a JSON object",
]


@pytest.mark.parametrize("sentence", TRIED)
def test_an_impossible_trace(spark: SparkSession, tmp_path: Path, sentence: str) -> None:
    trace = good()
    dict(reversed(IMPOSSIBLE))[sentence](trace)
    write_trace(trace, tmp_path / "trace")
    assert sentence in refused(spark, tmp_path / "trace", rows_max=0)


OF_A_RUN = [(sentence, damage) for sentence, damage in IMPOSSIBLE if sentence != "0 runs"]


@pytest.mark.parametrize(("sentence", "damage"), OF_A_RUN, ids=[sentence for sentence, _ in OF_A_RUN])
def test_an_impossible_trace_in_a_worker(
    spark: SparkSession, tmp_path: Path, sentence: str, damage: Callable[[Trace], object]
) -> None:
    trace = good()
    damage(trace)
    write_trace(trace, tmp_path / "trace")
    assert sentence in refused(spark, tmp_path / "trace")


@pytest.mark.parametrize("rows_max", [0, ROWS_MAX])
def test_histories_that_contradict_each_other(spark: SparkSession, tmp_path: Path, rows_max: int) -> None:
    write_trace(contradiction(), tmp_path / "trace")
    assert "contradict each other" in refused(spark, tmp_path / "trace", rows_max)


@pytest.mark.parametrize("rows_max", [0, ROWS_MAX])
def test_a_delivery_of_what_was_never_sent(spark: SparkSession, tmp_path: Path, rows_max: int) -> None:
    row = CutShortRow("r1", "ann", 5, 1.0, 2, 0)
    write_trace(msgspec.structs.replace(a_run(), cut_short=[row]), tmp_path / "trace")
    said = refused(spark, tmp_path / "trace", rows_max)
    assert re.search(r"ann:[345] was delivered, though ann, which is cut short, is said to have sent .* up to 2", said)


def test_a_trace_of_version_1(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(a_run(), tmp_path / "trace")
    of_version_1(tmp_path / "trace")
    shutil.rmtree(tmp_path / "trace" / "cut_short")
    tables = read_tables(spark, tmp_path / "trace")
    assert {row["ready"] for row in tables.subscriptions.collect()} == {"first"}
    assert [row["status"] for row in audit(spark, tables).verdicts.collect()] == [check(a_run()).status]


def test_a_trace_without_runs_has_no_verdict(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(Trace([], [], [], [], [], [], []), tmp_path / "trace")
    result = audit(spark, read_tables(spark, tmp_path / "trace"))
    assert (result.verdicts.count(), result.anomalies.count()) == (0, 0)


# ---- results ---------------------------------------------------------------------------------------------------


def test_results_replace_only_results(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "results"
    write_tables({"a": spark.range(3), "b": spark.range(1)}, place)
    write_tables({"a": spark.range(5), "b": spark.range(1)}, place)
    assert spark.read.parquet(str(place / "a")).count() == 5
    assert [entry.name for entry in place.parent.iterdir()] == ["results"]
    (place / "thesis.txt").write_text("precious")
    with pytest.raises(TraceError, match="something other than results"):
        write_tables({"a": spark.range(1)}, place)
    with pytest.raises(TraceError, match="is a file"):
        write_tables({"a": spark.range(1)}, place / "thesis.txt")
    assert (place / "thesis.txt").read_text() == "precious"


def test_a_write_that_fails_leaves_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "results"
    write_tables({"a": spark.range(3)}, place)
    broken = spark.range(3).selectExpr("raise_error('we stumbled') AS id")
    with pytest.raises(Exception, match="we stumbled"):
        write_tables({"a": broken}, place)
    assert spark.read.parquet(str(place / "a")).count() == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["results"]
