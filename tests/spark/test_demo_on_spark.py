"""The demo with the audit on Spark, for programs."""

import json

from pyspark.sql import SparkSession

from gapless.cli.demo_network import HOP_MS
from tests.conftest import Cli


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
