"""Runs that are too large for a worker as the checkers hold them, but fit into one as arrays: see `glance`.

A task looks at some shares of runs, one after the other. Of each it reads the events and the certificate of the run,
and streams the history past itself, keeping what the share's clients did. Nothing is sorted or sent by Spark. If one
share of a run is unclear, the joins judge the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gapless.errors import TraceError
from gapless_spark.audit.glance import Glance, UnclearError
from gapless_spark.audit.keeping import materialise
from gapless_spark.audit.small_runs import ANOMALY, ANOMALY_DDL, Sizes, opened, read_rows, row_groups, tasks_of
from gapless_spark.tables import TraceTables

__all__ = ["EVENTS_MAX", "glance_at"]

EVENTS_MAX = 5_000_000
"""Events of a trace whose runs are looked at: a task holds those of one run, with their attributes."""

ROWS_PER_SHARE = 8_000_000
"""Of `history`, in the hands of a task: half a gigabyte."""

_GLANCED = pa.schema([
    ("run", pa.string()), ("guarantee", pa.string()), ("unclear", pa.bool_()), ("events", pa.int64()),
    ("subscriptions", pa.int64()), ("deliveries", pa.int64()), ("accepted", pa.int64()), ("found", pa.list_(ANOMALY)),
])  # fmt: skip
_GLANCED_DDL = f"""
    run string, guarantee string, unclear boolean, events bigint, subscriptions bigint, deliveries bigint,
    accepted bigint, found {ANOMALY_DDL}
"""


class _Share(NamedTuple):
    run: str
    number: int
    of: int


def glance_at(spark: SparkSession, tables: TraceTables, runs: Sizes) -> tuple[DataFrame, Sizes]:
    """Of runs that are clear, a row each, as `judge_in_workers` gives it; and the runs that are not."""
    shares = [
        _Share(run, number, count)
        for run, rows in runs.items()
        for count in [max(tasks_of(spark), -(-rows // ROWS_PER_SHARE))]
        for number in range(count)
    ]
    look = partial(_glanced_batches, shares, tables.files)
    tasks = max(1, min(len(shares), 4 * tasks_of(spark)))
    found = materialise(spark.range(0, len(shares), 1, tasks).mapInArrow(look, _GLANCED_DDL))
    unclear = {row["run"] for row in found.where("unclear").select("run").distinct().collect()}
    clear = found.where(~F.col("run").isin(list(unclear))) if unclear else found
    return _summed_up(clear), {run: rows for run, rows in runs.items() if run in unclear}


def _summed_up(shares: DataFrame) -> DataFrame:
    summed = [F.sum(name).alias(name) for name in ("deliveries", "accepted")]
    same = [F.first(name).alias(name) for name in ("events", "subscriptions", "guarantee")]
    gaps = F.flatten(F.collect_list("found")).alias("found")
    runs = shares.groupBy("run").agg(*summed, *same, gaps)
    count = F.size("found")
    first = F.array_min(F.transform("found", lambda gap: F.struct(gap["subscription"], gap["event"], gap["message"])))
    message = first["message"]
    more = F.concat(message, F.lit(" (and "), (count - 1).cast("string"), F.lit(" more)"))
    reason = (
        F.when(count > 0, F.when(count == 1, message).otherwise(more))
        .when(F.col("accepted") == 0, F.lit("nothing was delivered in the whole run"))
        .otherwise(F.concat(F.col("accepted").cast("string"), F.lit(" deliveries are as promised")))
    )
    status = F.expr("CASE WHEN size(found) > 0 THEN 'invalid' WHEN accepted = 0 THEN 'unknown' ELSE 'valid' END")
    nothing = F.create_map().cast("map<string,bigint>")
    counts = F.when(count > 0, F.create_map(F.lit("gap"), count.cast("bigint"))).otherwise(nothing)
    return runs.select(
        "run", "guarantee", status.alias("status"), reason.alias("reason"), counts.alias("counts"), "events",
        "subscriptions", "deliveries", F.array().cast("array<string>").alias("cut_short"), "found",
        F.lit(None).cast("string").alias("fault"),
    )  # fmt: skip


# ---- on an executor --------------------------------------------------------------------------------------------


def _glanced_batches(
    shares: Sequence[_Share], files: Mapping[str, Sequence[str]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            share = shares[number]
            try:
                row = _glanced(share, files)
            except (UnclearError, TraceError):
                row = {"run": share.run, "unclear": True}
            yield pa.RecordBatch.from_pylist([row], schema=_GLANCED)


def _glanced(share: _Share, files: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    chosen = pa.array([share.run], pa.string())
    tables = ("runs", "subscriptions", "cuts", "cut_short", "skipped")
    small = {table: read_rows(table, files[table], chosen) for table in tables}
    if len(small["runs"]) != 1 or small["cut_short"] or small["skipped"]:
        raise UnclearError
    columns = {
        "events": ["event_id", "publisher", "seq", "attributes", "published_ms"],
        "pasts": ["event_id", "publisher", "seq"],
        "history": ["client", "step", "kind", "event_id", "subscription_id", "time_ms"],
    }
    read = {table: _batches(files[table], share.run, names) for table, names in columns.items()}
    glance = Glance(small["runs"][0], small["subscriptions"], small["cuts"], read["events"], read["pasts"])
    judged = glance.judge(read["history"], share.number, share.of)
    return {
        "run": share.run, "guarantee": small["runs"][0].guarantee, "unclear": False, "events": glance.events,
        "subscriptions": len(small["subscriptions"]), "deliveries": judged.deliveries, "accepted": judged.accepted,
        "found": judged.gaps,
    }  # fmt: skip


_FEW_VALUES = ("run", "client", "kind", "subscription_id")
"""Columns that repeat a few names: they are read as numbers."""


def _batches(addresses: Sequence[str], run: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """These columns of one run's rows, some hundred thousand at a time."""
    few = [name for name in ("run", *columns) if name in _FEW_VALUES]
    for address in addresses:
        with opened(address, read_dictionary=few) as file:
            for group in row_groups(file, run, run):
                for batch in file.iter_batches(1 << 20, row_groups=[group], columns=["run", *columns]):
                    runs = batch.column("run")
                    is_mine = pc.take(pc.equal(runs.dictionary, run), runs.indices)
                    mine = batch.select(list(columns))
                    yield mine if pc.all(is_mine).as_py() else mine.filter(is_mine)
