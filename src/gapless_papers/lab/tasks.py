"""One case as one task: takes the case as JSON and returns a row, on any machine that a pool chooses.

A case that fails returns a row that describes the failure, so that other cases are not affected. Metrics travel back in
the row. A trace is too large for that, so the task writes it to a folder that all machines share. Each file appears
there complete and under its final name, however often the task is repeated.
"""

import os
import time
import traceback
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.errors import GaplessError
from gapless.trace import Trace
from gapless.trace.tables import TABLES, rows_to_table
from gapless_papers.lab.conduct import conduct
from gapless_papers.lab.grid import Case

__all__ = ["DONE", "METRICS", "carry_out", "trace_file"]

METRICS = pa.struct([("metric", pa.string()), ("subject", pa.string()), ("value", pa.float64())])
DONE = pa.schema([
    ("key", pa.string()), ("failure", pa.string()), ("details", pa.string()), ("seconds", pa.float64()),
    ("metrics", pa.list_(METRICS)),
])  # fmt: skip
"""The schema of the outcome: metrics, or the reason of the failure, in a sentence and in detail."""


def trace_file(folder: Path, key: str, table: str) -> Path:
    """Return the path where the task leaves one table of a trace for the sweep to collect."""
    return folder / f".{key}.partial" / f"{table}.parquet"


def carry_out(folder: str, key: str, text: str) -> dict[str, Any]:
    """Return the outcome of one case, as a row of `DONE`; write its trace to the folder."""
    start = time.perf_counter()
    failure = details = None
    metrics: list[dict[str, Any]] = []
    try:
        found, trace = conduct(msgspec.json.decode(text, type=Case))
        metrics = [metric._asdict() for metric in found]
        if trace is not None:
            _write(Path(folder), key, trace)
    except GaplessError as error:
        failure, details = str(error), ""
    except Exception as error:
        failure = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        details = getattr(error, "traceback_text", "") or traceback.format_exc()
    return {
        "key": key, "failure": failure, "details": details, "metrics": metrics,
        "seconds": time.perf_counter() - start,
    }  # fmt: skip


def _write(folder: Path, key: str, trace: Trace) -> None:
    for table in TABLES:
        target = trace_file(folder, key, table)
        target.parent.mkdir(exist_ok=True)
        draft = target.with_name(f".{table}.{uuid.uuid4().hex}")
        pq.write_table(rows_to_table(table, getattr(trace, table)), draft, compression="zstd", write_page_checksum=True)
        os.replace(draft, target)
