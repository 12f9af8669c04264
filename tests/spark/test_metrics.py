"""Metrics of a trace, compared with the same figures computed in plain Python."""

from collections import Counter
from statistics import mean, median

import pytest
from pyspark.sql import SparkSession

from gapless.filters import parse
from gapless.simulator import generate, run_scenario
from gapless.trace import Trace, attributes_from_text, write_trace
from gapless_spark import metrics
from gapless_spark.tables import TraceTables, read_tables


@pytest.fixture(scope="module")
def trace() -> Trace:
    result = run_scenario(generate(3, "gapless"), with_messages=True)
    assert result.trace is not None
    return result.trace


@pytest.fixture(scope="module")
def tables(spark: SparkSession, trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> TraceTables:
    place = tmp_path_factory.mktemp("metrics") / "trace"
    write_trace(trace, place)
    return read_tables(spark, place)


def test_subscription_latency(trace: Trace, tables: TraceTables) -> None:
    rows = metrics.subscription_latency(tables.subscriptions).collect()
    expected = {
        row.subscription_id: None if row.active_ms is None else row.active_ms - row.requested_ms
        for row in trace.subscriptions
    }
    assert {row["subscription_id"]: row["latency_ms"] for row in rows} == expected
    known = [value for value in expected.values() if value is not None]
    summary = metrics.summarised(metrics.subscription_latency(tables.subscriptions), "latency_ms", "run").collect()
    assert [(row["count"], row["median"], row["greatest"]) for row in summary] == [
        (len(known), pytest.approx(median(known)), max(known))
    ]


def test_delivery_latency(trace: Trace, tables: TraceTables) -> None:
    published = {row.event_id: row.published_ms for row in trace.events}
    expected = [row.time_ms - published[row.event_id] for row in trace.history if row.kind == "deliver"]
    found = [row["latency_ms"] for row in metrics.delivery_latency(tables.history, tables.events).collect()]
    assert sorted(found) == pytest.approx(sorted(expected))
    assert mean(found) > 0


def test_messages_by_kind_and_node(trace: Trace, tables: TraceTables) -> None:
    assert trace.messages
    kinds = {
        row["kind"]: (row["sent"], row["lost"], row["bytes"])
        for row in metrics.message_counts(tables.messages).collect()
    }
    for kind, count in Counter(row.kind for row in trace.messages).items():
        of_kind = [row for row in trace.messages if row.kind == kind]
        lost = sum(row.received_ms is None for row in of_kind)
        assert kinds[kind] == (count, lost, sum(row.bytes for row in of_kind))
    received = {row["node"]: row["received"] for row in metrics.node_load(tables.messages).collect()}
    expected = Counter(row.receiver for row in trace.messages if row.received_ms is not None)
    assert {node: count for node, count in received.items() if count} == expected


def test_false_positives(trace: Trace, tables: TraceTables) -> None:
    kind = trace.messages[0].kind
    arrived = sum(row.kind == kind and row.received_ms is not None for row in trace.messages)
    used = {
        (row.client, row.event_id)
        for row in trace.history
        if row.kind == "deliver" and row.client != row.event_id.rpartition(":")[0]
    }
    row = metrics.false_positives(tables.messages, tables.history, [kind]).collect()[0]
    assert (row["arrived"], row["used"], row["false_positives"]) == (arrived, len(used), max(0, arrived - len(used)))


def test_delivery_ratio(trace: Trace, tables: TraceTables) -> None:
    came = {(row.subscription_id, row.event_id) for row in trace.history if row.kind == "deliver"}
    expected = {}
    for row in trace.subscriptions:
        ended = float("inf") if row.ended_ms is None else row.ended_ms
        due = [
            event.event_id
            for event in trace.events
            if row.active_ms is not None
            and row.active_ms <= event.published_ms <= ended
            and parse(row.filter).matches(attributes_from_text(event.attributes))
        ]
        expected[row.subscription_id] = (len(due), sum((row.subscription_id, event) in came for event in due))
    found = {row["subscription_id"]: (row["due"], row["delivered"]) for row in metrics.delivery_ratio(tables).collect()}
    assert found == expected
    assert any(due for due, _ in found.values())


def test_queue_lengths(spark: SparkSession) -> None:
    sent = [
        ("r", "a", "b", 0.0, 10.0), ("r", "a", "b", 1.0, 10.0), ("r", "a", "b", 2.0, None), ("r", "a", "b", 10.0, 20.0),
        ("r", "a", "c", 0.0, 5.0), ("r", "a", "c", 5.0, 5.0), ("q", "a", "b", 3.0, None),
    ]  # fmt: skip
    messages = spark.createDataFrame(
        sent, "run string, sender string, receiver string, sent_ms double, received_ms double"
    )
    found = {
        (row["run"], row["sender"], row["receiver"]): (row["sent"], row["mean"], row["peak"])
        for row in metrics.queue_lengths(messages).collect()
    }
    # The lost message from a to b finds two messages before it; at 10 these have arrived, so the last one is alone.
    assert found == {("r", "a", "b"): (4, 1.75, 3), ("r", "a", "c"): (2, 1.0, 1), ("q", "a", "b"): (1, 1.0, 1)}


def test_queue_lengths_of_a_run(trace: Trace, tables: TraceTables) -> None:
    rows = metrics.queue_lengths(tables.messages).collect()
    assert sum(row["sent"] for row in rows) == len(trace.messages)
    assert all(1 <= row["mean"] <= row["peak"] <= row["sent"] for row in rows)


def test_the_long_form(spark: SparkSession, tables: TraceTables) -> None:
    rows = metrics.metric_rows(metrics.message_counts(tables.messages), "messages", "sent", "kind")
    counted = [("r", "queue-length", "b1", 3.5), ("r", "state", "routes", 12.0), ("q", "state", "routes", 7.0)]
    counted += [("r", "barrier-size", str(size), times) for size, times in ((0, 50.0), (1, 30.0), (2, 19.0), (9, 1.0))]
    counted += [("q", "barrier-size", "1", 1.0), ("q", "barrier-delay", "2.5", 3.0), ("q", "barrier-delay", "40", 0.0)]
    ours = spark.createDataFrame(counted, metrics.METRIC_DDL)
    assert rows.schema.simpleString() == ours.schema.simpleString()
    assert metrics.measured(ours, "queue-length").collect() == [("r", "b1", 3.5)]
    assert sorted(metrics.measured(ours, "state").collect()) == [("q", "routes", 7.0), ("r", "routes", 12.0)]
    sizes = {row["run"]: tuple(row)[1:] for row in metrics.distribution(ours, "barrier-size").collect()}
    assert sizes == {"r": (100, 0.77, 0.5, pytest.approx(2.07), 9.0), "q": (1, 1.0, 1.0, 1.0, 1.0)}
    [delays] = metrics.distribution(ours, "barrier-delay").collect()
    assert tuple(delays) == ("q", 3, 2.5, 2.5, 2.5, 2.5)
