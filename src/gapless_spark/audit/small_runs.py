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
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from gapless.checkers import Verdict, check
from gapless.checkers.verdict_rows import ROWS_MAX
from gapless.errors import TraceError
from gapless.trace import Trace
from gapless.trace.tables import TABLES, table_to_rows
from gapless_spark.tables import TraceTables, located

__all__ = [
    "ANOMALY",
    "ANOMALY_DDL",
    "Sizes",
    "judge_in_workers",
    "opened",
    "read_rows",
    "row_groups",
    "sizes_of_runs",
    "tasks_of",
]

Sizes = dict[str, int]
"""How many rows each run has."""

_JUDGED = tuple(table for table in TABLES if table != "messages")

ANOMALY = pa.struct([
    ("kind", pa.string()), ("client", pa.string()), ("subscription", pa.string()), ("event", pa.string()),
    ("publisher", pa.string()), ("witness", pa.list_(pa.string())), ("message", pa.string()),
])  # fmt: skip
ANOMALY_DDL = """
    array<struct<kind: string, client: string, subscription: string, event: string, publisher: string,
                 witness: array<string>, message: string>>
"""
_COUNTED = pa.schema([("table", pa.string()), ("run", pa.string()), ("rows", pa.int64()), ("fault", pa.string())])
_COUNTED_DDL = "table string, run string, rows bigint, fault string"
_FOUND = pa.schema([
    ("run", pa.string()), ("guarantee", pa.string()), ("status", pa.string()), ("reason", pa.string()),
    ("counts", pa.map_(pa.string(), pa.int64())), ("events", pa.int64()), ("subscriptions", pa.int64()),
    ("deliveries", pa.int64()), ("cut_short", pa.list_(pa.string())), ("found", pa.list_(ANOMALY)),
    ("fault", pa.string()),
])  # fmt: skip
_FOUND_DDL = f"""
    run string, guarantee string, status string, reason string, counts map<string,bigint>, events bigint,
    subscriptions bigint, deliveries bigint, cut_short array<string>,
    found {ANOMALY_DDL}, fault string
"""


# ---- which runs, and where -------------------------------------------------------------------------------------


def sizes_of_runs(spark: SparkSession, tables: TraceTables, rows_max: int, pairs_max: int) -> tuple[Sizes, Sizes]:
    """The runs of the trace that fit into a worker, in the order of their files, and those that do not."""
    if tables.fits(rows_max, pairs_max):
        # All together fit, so each does, and it does not matter which is the larger.
        told = tables.names
        names = set(told) if told is not None else {row["run"] for row in tables.runs.select("run").collect()}
        return dict.fromkeys(sorted(names), tables.count() // max(1, len(names))), {}
    counted = _counted(spark, tables)
    small, large = Sizes(), Sizes()
    for run in sorted(counted["runs"]):
        rows = sum(of_table[run] for of_table in counted.values())
        fits = rows <= rows_max and counted["subscriptions"][run] * counted["events"][run] <= pairs_max
        (small if fits else large)[run] = rows
    return small, large


def _counted(spark: SparkSession, tables: TraceTables) -> dict[str, Counter[str]]:
    """How many rows each table has of each run."""
    files = [(table, file) for table in _JUDGED for file in tables.files[table]]
    listed = spark.range(0, len(files), 1, max(1, min(len(files), 4 * tasks_of(spark))))
    rows: dict[str, Counter[str]] = {table: Counter() for table in _JUDGED}
    for row in listed.mapInArrow(partial(_counted_batches, files), _COUNTED_DDL).collect():
        if row["fault"] is not None:
            raise TraceError(row["fault"])
        rows[row["table"]][row["run"]] += row["rows"]
    return rows


def judge_in_workers(spark: SparkSession, tables: TraceTables, runs: Sizes) -> DataFrame:
    """A row for each of these runs; `fault` where one cannot be judged."""
    shares = _dealt_out(runs, tasks_of(spark))
    judge = partial(_judged_batches, shares, {table: tables.files[table] for table in _JUDGED})
    return spark.range(0, len(shares), 1, max(1, len(shares))).mapInArrow(judge, _FOUND_DDL)


def tasks_of(spark: SparkSession) -> int:
    """Into how many tasks work is dealt out."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 4)


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


def _counted_batches(files: Sequence[tuple[str, str]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How many rows each file has of each run."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            table, address = files[number]
            try:
                counts = _counts_of_runs(address)
                rows: list[Any] = [{"table": table, "run": run, "rows": count} for run, count in counts.items()]
            except TraceError as error:
                rows = [{"fault": str(error)}]
            yield pa.RecordBatch.from_pylist(rows, schema=_COUNTED)


def _counts_of_runs(address: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    with opened(address, read_dictionary=["run"]) as file:
        for batch in file.iter_batches(columns=["run"], batch_size=1 << 20):
            for entry in batch.column(0).value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts


@contextmanager
def opened(address: str, **options: Any) -> Iterator[pq.ParquetFile]:
    """A file of the trace; a `TraceError` if it cannot be read."""
    system, path = located(address)
    try:
        with system.open_input_file(path) as source:
            yield pq.ParquetFile(source, page_checksum_verification=True, **options)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(f"{path} is damaged and cannot be read: {reason}") from None


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
        tables = {table: read_rows(table, addresses, chosen) for table, addresses in files.items()}
        for trace in Trace(**tables, messages=[]).split():
            yield _row(check(trace))
    except TraceError as error:
        yield {"fault": str(error)}


def read_rows(table: str, addresses: Sequence[str], runs: pa.Array) -> list[Any]:
    """The rows of these runs."""
    rows: list[Any] = []
    for address in addresses:
        with opened(address) as file:
            found = _of_runs(file, runs)
        if found is not None:
            rows += table_to_rows(table, found, located(address)[1])
    return rows


def _of_runs(file: pq.ParquetFile, runs: pa.Array) -> pa.Table | None:
    """What the file holds of these runs."""
    groups = []
    for number in row_groups(file, pc.min(runs).as_py(), pc.max(runs).as_py()):
        group = file.read_row_group(number)
        groups.append(group.filter(pc.is_in(group.column("run"), runs)))
    return pa.concat_tables(groups) if groups else None


def row_groups(file: pq.ParquetFile, first: str, last: str) -> Iterator[int]:
    """The groups of rows that may hold something of runs between these names."""
    column = file.schema_arrow.get_field_index("run")
    for number in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(number).column(column).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or (statistics.min <= last and statistics.max >= first):
            yield number


def _row(verdict: Verdict) -> dict[str, Any]:
    told = msgspec.to_builtins(verdict)
    told["found"] = told.pop("anomalies")
    return {**told, "counts": list(verdict.counts.items()), "fault": None}
