"""Runs that fit into a worker: each is judged there, whole, by `gapless.checkers` themselves.

A task reads the rows of some runs from the files of the trace, and judges one run after the other. Nothing is sorted or
sent, so all such runs of a trace cost one step of Spark, instead of the hundreds that the joins take. Only a run that
is too large, by its rows or by what its subscriptions may match, goes through the joins.

Runs stand in the files in the order in which they were written, and a group of rows says between which names its runs
lie. So runs are dealt out in that order, many at a time, and a task skips most of what is not its own.

What cannot be judged comes out as a sentence, since an exception on an executor has no good way to the user.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gapless.checkers import Verdict, check
from gapless.errors import TraceError
from gapless.trace import RunRow, Trace
from gapless.trace.tables import TABLES, table_to_rows
from gapless_spark.tables import TraceTables, located

__all__ = ["PAIRS_MAX", "ROWS_MAX", "Sizes", "judge_in_workers", "sizes_of_runs"]

ROWS_MAX = 500_000
"""Rows that a worker holds at a time: about half a gigabyte, and less time than the joins take for them."""

PAIRS_MAX = 50_000_000
"""Pairs of a subscription and an event in a run: the checkers look at each that matches."""

Sizes = dict[str, int]
"""How many rows each run has."""

_JUDGED = tuple(table for table in TABLES if table != "messages")

_ANOMALY = pa.struct([
    ("kind", pa.string()), ("client", pa.string()), ("subscription", pa.string()), ("event", pa.string()),
    ("publisher", pa.string()), ("witness", pa.list_(pa.string())), ("message", pa.string()),
])  # fmt: skip
_FOUND = pa.schema([
    ("run", pa.string()), ("guarantee", pa.string()), ("status", pa.string()), ("reason", pa.string()),
    ("counts", pa.map_(pa.string(), pa.int64())), ("events", pa.int64()), ("subscriptions", pa.int64()),
    ("deliveries", pa.int64()), ("cut_short", pa.list_(pa.string())), ("found", pa.list_(_ANOMALY)),
    ("fault", pa.string()),
])  # fmt: skip
_FOUND_DDL = """
    run string, guarantee string, status string, reason string, counts map<string,bigint>, events bigint,
    subscriptions bigint, deliveries bigint, cut_short array<string>,
    found array<struct<kind: string, client: string, subscription: string, event: string, publisher: string,
                       witness: array<string>, message: string>>,
    fault string
"""


# ---- which runs, and where -------------------------------------------------------------------------------------


def sizes_of_runs(tables: TraceTables, rows_max: int, pairs_max: int) -> tuple[Sizes, Sizes]:
    """The runs of the trace that fit into a worker, in the order of their files, and those that do not."""
    listed = tables.runs.select("run").distinct()
    if tables.fits(rows_max, pairs_max):
        # All together fit, so each does, and it does not matter which is the larger.
        names = [row["run"] for row in listed.collect()]
        return dict.fromkeys(sorted(names), tables.count() // max(1, len(names))), {}
    counted = [
        getattr(tables, table).groupBy("run").agg(F.count("*").alias("rows")).withColumn("table", F.lit(table))
        for table in _JUDGED
    ]
    together = reduce(DataFrame.unionByName, counted).groupBy("run")
    of_table = {name: F.sum(F.when(F.col("table") == name, F.col("rows"))) for name in ("subscriptions", "events")}
    pairs = F.coalesce(of_table["subscriptions"] * of_table["events"], F.lit(0))
    sizes = together.agg(F.sum("rows").alias("rows"), pairs.alias("pairs")).join(listed, "run", "left_semi")
    small, large = Sizes(), Sizes()
    for row in sizes.orderBy("run").collect():
        fits = row["rows"] <= rows_max and row["pairs"] <= pairs_max
        (small if fits else large)[row["run"]] = row["rows"]
    return small, large


def judge_in_workers(spark: SparkSession, tables: TraceTables, runs: Sizes) -> DataFrame:
    """A row for each of these runs; `fault` where one cannot be judged."""
    cores = int(spark.conf.get("spark.sql.shuffle.partitions") or 4)
    shares = _dealt_out(runs, cores)
    judge = partial(_judged_batches, shares, {table: tables.files[table] for table in _JUDGED})
    return spark.range(0, len(shares), 1, max(1, len(shares))).mapInArrow(judge, _FOUND_DDL)


def _dealt_out(runs: Sizes, tasks: int) -> list[list[str]]:
    """The runs in shares of about the same size: so many, or more where they would be too large."""
    most = min(ROWS_MAX, max(1, sum(runs.values()) // tasks))
    shares: list[list[str]] = []
    held = 0
    for run, rows in runs.items():
        if not shares or held + rows > most:
            shares.append([])
            held = 0
        shares[-1].append(run)
        held += rows
    return shares


# ---- on an executor --------------------------------------------------------------------------------------------


def _judged_batches(
    shares: Sequence[Sequence[str]], files: Mapping[str, Sequence[str]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for row in _judged(shares[number], files):
                yield pa.RecordBatch.from_pylist([row], schema=_FOUND)


def _judged(runs: Sequence[str], files: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """What is found of each of these runs."""
    chosen = pa.array(runs, pa.string())
    try:
        tables = {table: _rows(table, addresses, chosen) for table, addresses in files.items()}
        _must_be_single(tables["runs"])
        for trace in Trace(**tables, messages=[]).split():
            yield _row(check(trace))
    except TraceError as error:
        yield {"fault": str(error)}


def _must_be_single(runs: Sequence[RunRow]) -> None:
    for run, count in Counter(row.run for row in runs).items():
        if count > 1:
            raise TraceError(f"two runs are named {run!r}; give each run of a trace a name of its own")


def _rows(table: str, addresses: Sequence[str], runs: pa.Array) -> list[Any]:
    """The rows of these runs."""
    rows: list[Any] = []
    for address in addresses:
        system, path = located(address)
        try:
            with system.open_input_file(path) as source:
                found = _of_runs(pq.ParquetFile(source, page_checksum_verification=True), runs)
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TraceError(f"{path} is damaged and cannot be read: {reason}") from None
        if found is not None:
            rows += table_to_rows(table, found, path)
    return rows


def _of_runs(file: pq.ParquetFile, runs: pa.Array) -> pa.Table | None:
    """What the file holds of these runs."""
    first, last = pc.min(runs).as_py(), pc.max(runs).as_py()
    column = file.schema_arrow.get_field_index("run")
    groups = []
    for number in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(number).column(column).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or (statistics.min <= last and statistics.max >= first):
            group = file.read_row_group(number)
            groups.append(group.filter(pc.is_in(group.column("run"), runs)))
    return pa.concat_tables(groups) if groups else None


def _row(verdict: Verdict) -> dict[str, Any]:
    told = msgspec.to_builtins(verdict)
    told["found"] = told.pop("anomalies")
    return {**told, "counts": list(verdict.counts.items()), "fault": None}
