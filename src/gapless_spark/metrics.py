"""Metrics of a trace: each is a function from the tables of a trace to a DataFrame.

Every result has the column `run` and one row for each measured object, so results of many runs, protocols and seeds can
be joined with `runs` and grouped. `summarised` does the grouping that figures need.

`metric_rows` converts a result to the one long form (run, metric, subject, value) in which metrics of any origin are
stored together: those of a trace, and those that only brokers can count, such as the sizes of their states and of
causal barriers, which are not in a trace. `measured` and `distribution` read that form.

| metric | function | from |
| --- | --- | --- |
| subscription latency | `subscription_latency` | `subscriptions` |
| delivery latency | `delivery_latency` | `history`, `events` |
| messages and bytes by kind, by node | `message_counts`, `node_load` | `messages` |
| queue lengths | `queue_lengths`; `measured(rows, "queue-length")` | `messages`; the long form |
| causal-barrier sizes | `distribution(rows, "barrier-size")` | the long form |
| causal-barrier delays | `distribution(rows, "barrier-delay")` | the long form |
| false positives | `false_positives` | `messages`, `history` |
| delivery ratio | `delivery_ratio` | the whole trace |
| state | `measured(rows, "state")` | the long form |
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers.evidence import Evidence
from gapless.checkers.matching import Matching
from gapless.checkers.verdict_rows import Row
from gapless_spark.audit.workers import in_workers, read_runs
from gapless_spark.tables import TraceTables

__all__ = [
    "METRIC_DDL", "delivery_latency", "delivery_ratio", "distribution", "false_positives", "measured", "message_counts",
    "metric_rows", "node_load", "queue_lengths", "subscription_latency", "summarised",
]  # fmt: skip

_RATIO = pa.schema([
    ("run", pa.string()), ("subscription_id", pa.string()), ("due", pa.int64()), ("delivered", pa.int64()),
])  # fmt: skip

METRIC_DDL = "run string, metric string, subject string, value double"
"""The long form. `subject` is the object of the value (a broker, a subscription, a kind), null for the whole run."""


def subscription_latency(subscriptions: DataFrame) -> DataFrame:
    """Return run, subscription_id, client, latency_ms: from the call until the starting cut was known; null if it never
    was."""
    latency = F.col("active_ms") - F.col("requested_ms")
    return subscriptions.select("run", "subscription_id", "client", latency.alias("latency_ms"))


def delivery_latency(history: DataFrame, events: DataFrame) -> DataFrame:
    """Return run, event_id, client, subscription_id, latency_ms: from publication to each delivery."""
    deliveries = history.where("kind = 'deliver'").select("run", "event_id", "client", "subscription_id", "time_ms")
    joined = deliveries.join(events.select("run", "event_id", "published_ms"), ["run", "event_id"])
    latency = F.col("time_ms") - F.col("published_ms")
    return joined.select("run", "event_id", "client", "subscription_id", latency.alias("latency_ms"))


def message_counts(messages: DataFrame) -> DataFrame:
    """Return run, kind, sent, lost, bytes: by kind of message."""
    return messages.groupBy("run", "kind").agg(
        F.count("*").alias("sent"),
        F.count_if(F.col("received_ms").isNull()).alias("lost"),
        F.sum("bytes").alias("bytes"),
    )


def node_load(messages: DataFrame) -> DataFrame:
    """Return run, node, sent, received, bytes: the load of each node; bytes in both directions."""
    sent = messages.select(
        "run", F.col("sender").alias("node"), F.lit(1).alias("sent"), F.lit(0).alias("received"), "bytes"
    )
    received = messages.where("received_ms IS NOT NULL").select(
        "run", F.col("receiver").alias("node"), F.lit(0).alias("sent"), F.lit(1).alias("received"), "bytes"
    )
    totals = sent.union(received).groupBy("run", "node")
    return totals.agg(F.sum("sent").alias("sent"), F.sum("received").alias("received"), F.sum("bytes").alias("bytes"))


def queue_lengths(messages: DataFrame) -> DataFrame:
    """Return run, sender, receiver, sent, mean, peak: the queue length of each link as seen by its messages, themselves
    included.

    A message is on the link from sending to reception. A lost message is on it for no time: it counts, but no other
    message sees it.
    """
    link = ["run", "sender", "receiver"]
    stays = F.coalesce(F.col("received_ms") > F.col("sent_ms"), F.lit(False))
    come = messages.select(*link, F.col("sent_ms").alias("time_ms"), stays.cast("int").alias("change"))
    gone = messages.where(stays).select(*link, "received_ms", F.lit(-1))
    # At equal times, received messages leave first; then sent messages queue behind those sent before them.
    before = Window.partitionBy(*link).orderBy("time_ms", "change").rowsBetween(Window.unboundedPreceding, -1)
    length = F.coalesce(F.sum("change").over(before), F.lit(0)) + 1
    found = come.union(gone).withColumn("length", length).where("change >= 0").groupBy(*link)
    return found.agg(F.count("*").alias("sent"), F.mean("length").alias("mean"), F.max("length").alias("peak"))


def false_positives(messages: DataFrame, history: DataFrame, kinds: Sequence[str]) -> DataFrame:
    """Return run, arrived, used, false_positives: arrivals of messages that carry events but led to no delivery.

    `kinds` are the messages that carry an event to a known or presumed subscriber. Events that a client delivers to
    itself were not carried by any message.
    """
    arrived = messages.where(F.col("kind").isin(list(kinds)) & F.col("received_ms").isNotNull())
    arrived = arrived.groupBy("run").agg(F.count("*").alias("arrived"))
    foreign = F.col("client") != F.expr(
        "substring(event_id, 1, length(event_id) - length(substring_index(event_id, ':', -1)) - 1)"
    )
    deliveries = history.where((F.col("kind") == "deliver") & foreign)
    used = deliveries.groupBy("run").agg(F.count_distinct("client", "event_id").alias("used"))
    joined = arrived.join(used, "run", "left").fillna(0, ["used"])
    return joined.select(
        "run", "arrived", "used", F.greatest(F.col("arrived") - F.col("used"), F.lit(0)).alias("false_positives")
    )


def delivery_ratio(tables: TraceTables) -> DataFrame:
    """Return run, subscription_id, due, delivered: matching events published while the subscription was active.

    A loose measure, for protocols without guarantees: it ignores cuts and order. The audit is strict.
    """
    spark = tables.runs.sparkSession
    names = sorted(row["run"] for row in tables.runs.select("run").collect())
    return in_workers(spark, tables, dict.fromkeys(names, tables.count() // max(1, len(names))), _ratios, _RATIO)


def _ratios(runs: Sequence[str], files: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    for trace in read_runs(runs, files):
        evidence = Evidence.of(trace)
        asked = [subscription.row.filter for subscription in evidence.subscriptions]
        matching = Matching(asked, ((event, event.attributes) for event in evidence.listed))
        for subscription in evidence.subscriptions:
            row = subscription.row
            came = {delivery.event_id for delivery in subscription.deliveries}
            ended_ms = inf if row.ended_ms is None else row.ended_ms
            due = [
                event.event_id
                for events in matching.events(row.filter).values()
                for event in events.values()
                if row.active_ms is not None and row.active_ms <= event.published_ms <= ended_ms
            ]
            delivered = sum(event_id in came for event_id in due)
            yield {"run": row.run, "subscription_id": row.subscription_id, "due": len(due), "delivered": delivered}


def metric_rows(frame: DataFrame, metric: str, value: str, subject: Column | str | None = None) -> DataFrame:
    """Return the column `value` of a result in the long form of `METRIC_DDL`."""
    about = F.lit(None) if subject is None else F.col(subject) if isinstance(subject, str) else subject
    return frame.select(
        "run",
        F.lit(metric).alias("metric"),
        about.cast("string").alias("subject"),
        F.col(value).cast("double").alias("value"),
    )


def measured(rows: DataFrame, metric: str) -> DataFrame:
    """Return run, subject, value: one metric of the long form."""
    return rows.where(F.col("metric") == metric).select("run", "subject", "value")


def distribution(rows: DataFrame, metric: str) -> DataFrame:
    """Return run, count, mean, median, p99, greatest of a metric whose subjects are numbers and whose values are their
    counts."""
    number, times = F.col("subject").cast("double"), F.col("value").cast("bigint")
    counted = measured(rows, metric).select("run", number.alias("number"), times.alias("times")).where("times > 0")
    return counted.groupBy("run").agg(
        F.sum("times").alias("count"),
        (F.sum(F.col("number") * F.col("times")) / F.sum("times")).alias("mean"),
        F.percentile("number", F.lit(0.5), F.col("times")).alias("median"),
        F.percentile("number", F.lit(0.99), F.col("times")).alias("p99"),
        F.max("number").alias("greatest"),
    )


def summarised(frame: DataFrame, value: str, *by: str) -> DataFrame:
    """Return the columns `by`; count, mean, deviation, least, median, p95, p99, greatest of `value`. Nulls
    are ignored."""
    column = F.col(value).cast("double")
    return frame.groupBy(*by).agg(
        F.count(column).alias("count"),
        F.mean(column).alias("mean"),
        F.stddev(column).alias("deviation"),
        F.min(column).alias("least"),
        F.percentile(column, F.lit(0.5)).alias("median"),
        F.percentile(column, F.lit(0.95)).alias("p95"),
        F.percentile(column, F.lit(0.99)).alias("p99"),
        F.max(column).alias("greatest"),
    )
