"""The live audit as a query: start it, read batches, and get its verdict.

It begins at the start of all recordings, however long the network has been running, and can always start again from
them. Its checkpoint is a temporary directory.
"""

import queue
import shutil
import tempfile
import time
from pathlib import Path
from typing import Self

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from gapless.checkers import Anomaly, Verdict
from gapless.checkers.live import RunReport, SubscriptionReport, sum_up
from gapless.errors import TraceError
from gapless_spark.live.parts_source import PartsSource
from gapless_spark.live.processors import FACTS, REPORTS, Following, Judging, report_of
from gapless_spark.spark_errors import started_too_slowly

__all__ = ["SETTINGS", "Batch", "LiveAudit"]

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # Each batch is small, and starts as many tasks as there are states.
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "2",
}
"""Settings that the session must be started with."""

LOOK_S = 0.2
STARTS_MAX = 20
"""The number of restarts. Spark gives a Python process ten seconds to start; if that is too short, the query is
restarted."""


class Batch(msgspec.Struct, frozen=True):
    """The results of one batch."""

    number: int
    run: RunReport
    subscriptions: list[SubscriptionReport]
    """The subscriptions with new results."""
    anomalies: list[Anomaly]
    """The new anomalies."""
    withdrawn: list[Anomaly]
    """The anomalies that no longer hold, because missing records have arrived late."""


class LiveAudit:
    """One query. Read batches, then ask for its verdict."""

    def __init__(
        self, spark: SparkSession, directory: Path | str, *, every_s: float = 1.0, clock_skew_ms: float | None = None
    ) -> None:
        self._directory = Path(directory)
        self._given_skew_ms = clock_skew_ms
        self._spark = spark
        self._every_s = every_s
        self._waiting: queue.SimpleQueue[tuple[int, list[tuple[str, bytes]]]] = queue.SimpleQueue()
        self._query: StreamingQuery | None = None
        self._starts = 0
        self._checkpoint = tempfile.mkdtemp(prefix="gapless-live.")
        self.run: RunReport | None = None
        """The report on the run; None before the first batch."""
        self.reports: dict[str, SubscriptionReport] = {}
        """The latest report on each subscription."""

    def __enter__(self) -> Self:
        self._start()
        return self

    def _start(self) -> None:
        spark, skew_ms = self._spark, self._given_skew_ms or 0.0
        self._starts += 1
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        spark.dataSource.register(PartsSource)
        records = spark.readStream.format("gapless-parts").option("path", str(self._directory)).load()
        of_run = records.withColumn("run", F.lit("")).groupBy("run")
        facts = of_run.transformWithState(Following(), FACTS, "Append", "None")
        judged = facts.groupBy("subscription").transformWithState(Judging(skew_ms), REPORTS, "Append", "None")
        writing = judged.writeStream.foreachBatch(self._take).outputMode("append")
        writing = writing.trigger(processingTime=f"{self._every_s} seconds")
        self._query = writing.option("checkpointLocation", self._checkpoint).start()

    def __exit__(self, *_: object) -> None:
        if self._query is not None:
            self._query.stop()
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def next(self, timeout_s: float) -> Batch | None:
        """Return the next batch, or None after the timeout. Raises the error of a failed query."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                number, rows = self._waiting.get(timeout=min(LOOK_S, max(0.0, deadline - time.monotonic())))
            except queue.Empty:
                self._check()
                if time.monotonic() >= deadline:
                    return None
                continue
            return self._batch(number, rows)

    def verdict(self, *, quiesced: bool) -> Verdict | None:
        """Return the verdict as if the run ended here; None if there are no records. `quiesced`: all traffic has ended,
        and all faults are healed."""
        if self.run is None or self.run.run is None:
            return None
        return sum_up(self.run, self.reports.values(), quiesced=quiesced)

    def _take(self, frame: DataFrame, number: int) -> None:
        self._waiting.put((number, [(row.subscription, bytes(row.report)) for row in frame.collect()]))

    def _check(self) -> None:
        query = self._query
        if query is not None and not query.isActive:
            error = query.exception()
            if error is not None and started_too_slowly(error) and self._starts < STARTS_MAX:
                self._start()
            elif error is not None:
                raise error

    def _batch(self, number: int, rows: list[tuple[str, bytes]]) -> Batch:
        fresh: list[SubscriptionReport] = []
        came: list[Anomaly] = []
        gone: list[Anomaly] = []
        for name, blob in sorted(rows):
            report = report_of(name, blob)
            if isinstance(report, RunReport):
                self.run = report
                self._check_run(report)
                continue
            before = self.reports.get(name)
            known = {_name(each) for each in before.anomalies} if before is not None else set()
            now = {_name(each) for each in report.anomalies}
            came += [each for each in report.anomalies if _name(each) not in known]
            gone += [each for each in (before.anomalies if before is not None else ()) if _name(each) not in now]
            self.reports[name] = report
            fresh.append(report)
        assert self.run is not None
        return Batch(number, self.run, fresh, came, gone)

    def _check_run(self, report: RunReport) -> None:
        if report.fault:
            raise TraceError(f"{self._directory}: {report.fault}")
        if len(report.machines) > 1 and self._given_skew_ms is None:
            first, second = report.machines[:2]
            raise TraceError(
                f"the parts in {self._directory} were written on {len(report.machines)} machines ({first}, {second}, "
                "…); state by how many milliseconds their clocks may differ (--clock-skew-ms)"
            )


def _name(anomaly: Anomaly) -> tuple[str, ...]:
    """Return the fields that identify an anomaly. A duplicate is identified by its step."""
    steps = anomaly.witness if anomaly.kind in ("duplicate", "spurious") else ()
    return (anomaly.kind, anomaly.client, str(anomaly.subscription), str(anomaly.event), *steps)
