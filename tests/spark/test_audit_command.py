"""`gapless audit`: its output, JSON, exit codes and files, without any output of Java."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from gapless.checkers import check_all
from gapless.cli import audit as audit_command
from gapless.cli import audit_here
from gapless.trace import read_trace, write_trace
from tests.checkers.model import Model, record
from tests.conftest import Cli

from .traces import planted_runs


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("command") / "trace"
    gaps = [trace for name, trace in planted_runs(3) if name == "dropped in the middle"]
    write_trace([record(Model(4).run(), "good"), *gaps], place)
    return place


WAYS = pytest.mark.parametrize("way", [(), ("--master", "local[2]")], ids=["here", "on Spark"])


@WAYS
def test_an_invalid_trace(spark: SparkSession, cli: Cli, mixed: Path, tmp_path: Path, way: tuple[str, ...]) -> None:
    ran = cli("audit", mixed, "--out", tmp_path / "judged", *way)
    assert ran.code == 1
    assert "INVALID" in ran.out
    assert "witness:" in ran.out
    assert ran.err == ""
    assert max(map(len, ran.out.splitlines())) <= 80
    verdicts = {row["run"]: row for row in pq.read_table(tmp_path / "judged" / "verdicts").to_pylist()}
    expected = {verdict.run: verdict for verdict in check_all(read_trace(mixed))}
    assert {run: row["status"] for run, row in verdicts.items()} == {run: v.status for run, v in expected.items()}
    anomalies = pq.read_table(tmp_path / "judged" / "anomalies").to_pylist()
    assert len(anomalies) == sum(len(verdict.anomalies) for verdict in expected.values())


def test_both_ways_print_and_write_the_same(spark: SparkSession, cli: Cli, mixed: Path, tmp_path: Path) -> None:
    for more in ((), ("--json",)):
        here = cli("audit", mixed, "--out", tmp_path / "judged", *more)
        written = results(tmp_path / "judged")
        there = cli("audit", mixed, "--master", "local[2]", "--out", tmp_path / "judged", *more)
        assert here == there
        assert written == results(tmp_path / "judged")


def results(place: Path) -> list[tuple[dict[str, str], list[str]]]:
    tables = [pq.read_table(place / name) for name in ("verdicts", "anomalies")]
    kinds = [{field.name: str(field.type) for field in table.schema} for table in tables]
    return [(kind, sorted(map(repr, table.to_pylist()))) for kind, table in zip(kinds, tables, strict=True)]


def test_a_small_trace_needs_no_spark(mixed: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None\nfrom gapless.cli.main import run\nrun(sys.argv[1:])"
    ran = subprocess.run([sys.executable, "-c", program, "audit", str(mixed)], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "INVALID" in ran.stdout


def test_a_trace_too_large_for_one_process_goes_to_spark(
    spark: SparkSession, cli: Cli, mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = cli("audit", mixed, "--json")
    monkeypatch.setattr(audit_here, "ROWS_MAX", 10)
    monkeypatch.setattr(audit_command, "judge_here", None)
    assert cli("audit", mixed, "--json") == small


def test_a_valid_trace_as_json(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    write_trace(record(Model(4).run(), "good"), tmp_path / "trace")
    ran = cli("audit", f"file://{tmp_path}/trace", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert document["status"] == "valid"
    assert [run["run"] for run in document["runs"]] == ["good"]
    assert document["runs"][0]["anomalies"] == []


def test_bad_input(spark: SparkSession, cli: Cli, tmp_path: Path) -> None:
    ran = cli("audit", tmp_path / "nowhere")
    assert (ran.code, ran.out) == (64, "")
    assert ran.err == f"gapless: there is no trace at {tmp_path}/nowhere: it is not a directory\n"


def test_results_that_would_replace_something_else(cli: Cli, mixed: Path) -> None:
    ran = cli("audit", mixed, "--out", mixed)
    assert (ran.code, ran.out) == (64, "")
    assert "contains something other than results" in ran.err
    assert read_trace(mixed).runs
