"""The demo with the audit on Spark: its judge, and the whole demo for programs."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gapless.checkers import check
from gapless.cli.demo_network import HOP_MS
from gapless.cli.live_verdict import ON_SPARK, judge_live
from gapless.trace import write_trace
from tests.checkers.model import Model, record
from tests.conftest import Cli

from .traces import planted_runs


@pytest.mark.parametrize("planted", ["nothing", "dropped in the middle"])
def test_a_run_is_judged_on_spark_as_in_this_process(spark: SparkSession, tmp_path: Path, planted: str) -> None:
    trace = next((run for name, run in planted_runs(3) if name == planted), record(Model(4).run(), "good"))
    write_trace([trace], tmp_path / "trace")
    judges: list[str] = []
    found = judge_live(tmp_path / "trace", is_small=True, announce=judges.append)
    expected = check(trace)
    assert (judges, found.judge, found.without_spark) == ([ON_SPARK], ON_SPARK, "")
    assert found.status == expected.status == ("valid" if planted == "nothing" else "invalid")
    assert (found.reason, found.counts) == (expected.reason, expected.counts)
    assert sorted(found.examples) == sorted(anomaly.message for anomaly in expected.anomalies)
    assert (found.events, found.deliveries) == (expected.events, expected.deliveries)
    assert found.subscriptions == expected.subscriptions


@pytest.mark.slow
def test_the_demo_as_json(spark: SparkSession, cli: Cli) -> None:
    ran = cli("demo", "--json")
    assert ran.code == 0, ran.out + ran.err
    document = json.loads(ran.out)
    assert document["status"] == document["verdict"]["status"] == "valid"
    assert document["verdict"]["judge"] == "the audit on Spark"
    assert document["verdict"]["deliveries"] > 1_000
    assert document["with_a_repair_switched_off"]["status"] == "invalid"
    assert document["live"]["moved_to"] != document["killed"]
    assert document["live"]["brokers"]["kiosk"] == document["killed"], "it returned"
    waited = document["subscription_ms"]
    assert waited["uncovered"] >= 4 * HOP_MS
    assert waited["covered_at_the_same_broker"] < waited["uncovered"] / 2
