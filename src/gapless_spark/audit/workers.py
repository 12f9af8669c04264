"""Checks runs that fit into a worker: reads their rows there, and checks them with `gapless.checkers`.

Spark neither sorts nor moves rows, so all such runs of a trace take one Spark job. Runs are distributed in the order of
their files, many at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from gapless.checkers.evidence import Evidence
from gapless.checkers.judge import check_run
from gapless.checkers.verdict_rows import ROWS_MAX, Row
from gapless.errors import TraceError
from gapless.trace import Trace
from gapless.trace.tables import TABLES
from gapless_spark.audit.findings import FOUND, fault_row, found_row
from gapless_spark.audit.reading import opened, read_rows
from gapless_spark.tables import TraceTables

__all__ = ["Sizes", "in_workers", "judge_in_workers", "read_runs", "sizes_of_runs", "tasks_of"]

Sizes = dict[str, int]
"""The number of rows of each run."""

Work: TypeAlias = Callable[[Sequence[str], Mapping[str, Sequence[str]]], Iterable[Row]]
"""Takes the names of runs and the files of each table; returns rows."""

_JUDGED = tuple(table for table in TABLES if table != "messages")

_COUNTED = pa.schema([("table", pa.string()), ("run", pa.string()), ("rows", pa.int64()), ("fault", pa.string())])


# ---- choosing runs and distributing them -----------------------------------------------------------------------


def sizes_of_runs(spark: SparkSession, tables: TraceTables, rows_max: int, pairs_max: int) -> tuple[Sizes, Sizes]:
    """Return the runs of the trace that fit into a worker, in the order of their files, and those that do not."""
    if tables.fits(rows_max, pairs_max):
        # If all runs together fit into a worker, each of them does, and their individual sizes are not needed.
        known = tables.names
        names = set(known) if known is not None else {row["run"] for row in tables.runs.select("run").collect()}
        return dict.fromkeys(sorted(names), tables.count() // max(1, len(names))), {}
    counted = _counted(spark, tables)
    small, large = Sizes(), Sizes()
    for run in sorted(counted["runs"]):
        rows = sum(of_table[run] for of_table in counted.values())
        fits = rows <= rows_max and counted["subscriptions"][run] * counted["events"][run] <= pairs_max
        (small if fits else large)[run] = rows
    return small, large


def _counted(spark: SparkSession, tables: TraceTables) -> dict[str, Counter[str]]:
    """Return the number of rows that each table has of each run."""
    files = [(table, file) for table in _JUDGED for file in tables.files[table]]
    listed = spark.range(0, len(files), 1, max(1, min(len(files), 4 * tasks_of(spark))))
    rows: dict[str, Counter[str]] = {table: Counter() for table in _JUDGED}
    for row in listed.mapInArrow(partial(_counted_batches, files), from_arrow_schema(_COUNTED)).collect():
        if row["fault"] is not None:
            raise TraceError(row["fault"])
        rows[row["table"]][row["run"]] += row["rows"]
    return rows


def judge_in_workers(spark: SparkSession, tables: TraceTables, runs: Sizes) -> DataFrame:
    """Return a row for each of these runs, with `fault` set if one cannot be checked."""
    return in_workers(spark, tables, runs, _judged, FOUND)


def in_workers(spark: SparkSession, tables: TraceTables, runs: Sizes, work: Work, schema: pa.Schema) -> DataFrame:
    """Return the rows that `work` gives for these runs, some runs at a time; executors must be able to import
    `work`."""
    shares = _dealt_out(runs, tasks_of(spark))
    carrier = partial(_worked, shares, {table: tables.files[table] for table in _JUDGED}, work, schema)
    return spark.range(0, len(shares), 1, max(1, len(shares))).mapInArrow(carrier, from_arrow_schema(schema))


def tasks_of(spark: SparkSession) -> int:
    """Return the number of tasks."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 4)


def _dealt_out(runs: Sizes, tasks: int) -> list[list[str]]:
    """Divide the runs into shares of about the same size: `tasks` shares, or more if they would be too large."""
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
    """Yield the number of rows that each file has of each run."""
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


def _worked(
    shares: Sequence[Sequence[str]],
    files: Mapping[str, Sequence[str]],
    work: Work,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for row in work(shares[number], files):
                yield pa.RecordBatch.from_pylist([row], schema=schema)


def read_runs(runs: Sequence[str], files: Mapping[str, Sequence[str]]) -> list[Trace]:
    """Return the traces of these runs."""
    chosen = pa.array(runs, pa.string())
    tables = {table: read_rows(table, addresses, chosen) for table, addresses in files.items()}
    return Trace(**tables, messages=[]).split()


def _judged(runs: Sequence[str], files: Mapping[str, Sequence[str]]) -> Iterator[Row]:
    """Yield the findings on each of these runs."""
    try:
        for trace in read_runs(runs, files):
            evidence = Evidence.of(trace)
            yield found_row(evidence, check_run(evidence))
    except TraceError as error:
        yield fault_row(runs[0], str(error))
