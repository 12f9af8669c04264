"""Audits a trace that fits into this process with its checkers, without Spark.

Starting Spark takes seconds, and ten times the processor time that the checkers need for a small
trace. The output is the same.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.checkers import check_all
from gapless.checkers.verdict_rows import PAIRS_MAX, ROWS_MAX, Row, anomaly_rows, verdict_row
from gapless.trace.results import DONE, results_folder
from gapless.trace.storage import count_rows, read_trace

__all__ = ["fits_here", "judge_here"]

_VERDICTS = pa.schema([
    ("run", pa.string()), ("guarantee", pa.string()), ("status", pa.string()), ("reason", pa.string()),
    ("anomalies", pa.int64()), ("counts", pa.map_(pa.string(), pa.int64())), ("events", pa.int64()),
    ("subscriptions", pa.int64()), ("deliveries", pa.int64()), ("cut_short", pa.list_(pa.string())),
])  # fmt: skip
_ANOMALIES = pa.schema([
    ("run", pa.string()), ("kind", pa.string()), ("client", pa.string()), ("subscription", pa.string()),
    ("event", pa.string()), ("publisher", pa.string()), ("witness", pa.list_(pa.string())), ("message", pa.string()),
])  # fmt: skip


def fits_here(trace: Path) -> bool:
    """Return whether this process can check all runs of the trace, which must be on this machine."""
    rows = count_rows(trace)
    acts = sum(count for table, count in rows.items() if table != "messages")
    return acts <= ROWS_MAX and rows["subscriptions"] * rows["events"] <= PAIRS_MAX


def judge_here(trace: Path, out: Path | None) -> tuple[list[Row], list[Row]]:
    """Return the verdict on each run by name, and all anomalies. If `out` is given, also write both to that
    directory."""
    judged = sorted(check_all(read_trace(trace, without=("messages",))), key=lambda verdict: verdict.run)
    verdicts = [verdict_row(verdict) for verdict in judged]
    found = [row for verdict in judged for row in anomaly_rows(verdict)]
    if out is not None:
        with results_folder(out, ("verdicts", "anomalies")) as folder:
            counted = [{**row, "counts": [*row["counts"].items()]} for row in verdicts]
            _write(folder / "verdicts", counted, _VERDICTS)
            _write(folder / "anomalies", found, _ANOMALIES)
    return verdicts, found


def _write(folder: Path, rows: Sequence[Row], schema: pa.Schema) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([*rows], schema), folder / "part-00000.parquet")
    (folder / DONE).touch()
