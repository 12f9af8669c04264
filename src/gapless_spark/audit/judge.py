"""The audit on Spark: workers check every run by the rules of `gapless.checkers`.

A run that fits into a worker is checked there as a whole (`workers`); a larger one in shares of its clients (`shares`).
"""

from dataclasses import dataclass
from functools import reduce
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers.verdict_rows import IN_ORDER, PAIRS_MAX, ROWS_MAX
from gapless.checkers.verdict_rows import first_anomalies as first_of_rows
from gapless_spark.audit.findings import VERDICT, verdict_rows
from gapless_spark.audit.shares import ROWS_PER_SHARE, judge_in_shares
from gapless_spark.audit.workers import judge_in_workers, sizes_of_runs
from gapless_spark.tables import TraceTables

__all__ = ["Audit", "audit", "first_anomalies"]

COLLECTED_MAX = 20_000
"""Up to this number, anomalies are sorted in the driver on request: Spark needs seconds to plan a sort."""


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    rows: list[dict[str, Any]]
    """The verdicts, by name of the run."""
    verdicts: DataFrame
    """run, guarantee, status, reason, anomalies, counts, events, subscriptions, deliveries, cut_short"""
    anomalies: DataFrame
    """run, kind, client, subscription, event, publisher, witness, message"""

    def summary(self, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the verdict on each run, by name, and at most `count` anomalies (see `first_anomalies`)."""
        total = sum(row["anomalies"] for row in self.rows)
        if not total:
            return self.rows, []
        if total > COLLECTED_MAX:
            return self.rows, first_anomalies(self.anomalies, count).toArrow().to_pylist()
        return self.rows, first_of_rows(self.anomalies.toArrow().to_pylist(), count)


def audit(
    spark: SparkSession, tables: TraceTables, *, rows_max: int = ROWS_MAX, rows_per_share: int = ROWS_PER_SHARE
) -> Audit:
    """Check every run of the trace against the guarantee that it claims. Raise a `TraceError` if no run can have
    written the trace.

    A run with at most `rows_max` rows is checked as a whole; a larger one in shares of `rows_per_share`.
    """
    small, large = sizes_of_runs(spark, tables, rows_max, PAIRS_MAX)
    parts = []
    if large:
        parts.append(judge_in_shares(spark, tables, large, rows_per_share))
    if small or not parts:
        parts.append(judge_in_workers(spark, tables, small).localCheckpoint())
    found = reduce(DataFrame.union, parts)
    said = found.drop("found").toArrow().to_pylist(maps_as_pydicts="strict")
    rows = sorted(verdict_rows(said), key=itemgetter("run"))
    schema = ", ".join(f"{name} {kind}" for name, kind in VERDICT.items())
    verdicts = spark.createDataFrame([tuple(row[name] for name in VERDICT) for row in rows], schema)
    anomalies = found.select("run", F.explode("found").alias("found")).select("run", "found.*")
    return Audit(rows, verdicts, anomalies)


def first_anomalies(found: DataFrame, count: int) -> DataFrame:
    """Return at most `count` anomalies, the first of each kind in each run before the second of any."""
    place = F.row_number().over(Window.partitionBy("run", "kind").orderBy(*IN_ORDER))
    chosen = found.withColumn("place", place).orderBy("place", "run", "kind").limit(count)
    return chosen.orderBy("run", "place", "kind", *IN_ORDER).drop("place")
