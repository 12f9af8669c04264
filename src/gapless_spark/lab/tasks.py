"""One case, one task: Arrow in, Arrow out, on whatever machine Spark chooses.

A case that fails is a row like any other, with what went wrong in it: it does not disturb the others. Metrics travel
back with the row. A trace is too large for that, and is written where it belongs by the task itself: the folder must be
one that all machines see. Each file appears there whole, under its name, however often Spark repeats the task.
"""

import os
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.errors import GaplessError
from gapless.trace import Trace
from gapless.trace.tables import TABLES, rows_to_table
from gapless_spark.lab.conduct import conduct
from gapless_spark.lab.grid import Case

__all__ = ["DONE", "METRICS", "TODO", "carrier", "carry_out", "trace_file"]

TODO = pa.schema([("place", pa.int32()), ("key", pa.string()), ("case", pa.string())])
"""A case to be run: where it stands in its batch, its key, and itself as JSON."""

METRICS = pa.struct([("metric", pa.string()), ("subject", pa.string()), ("value", pa.float64())])
DONE = pa.schema([
    ("key", pa.string()), ("failure", pa.string()), ("details", pa.string()), ("seconds", pa.float64()),
    ("metrics", pa.list_(METRICS)),
])  # fmt: skip
"""What became of it: its metrics, or why it failed, in a sentence and in detail."""

_Batches = Iterator[pa.RecordBatch]


def carrier(folder: Path) -> Callable[[_Batches], _Batches]:
    """What turns cases into results on an executor; traces go to the folder."""
    return partial(_carry_out, str(folder))


def trace_file(folder: Path, key: str, table: str) -> Path:
    """Where the task leaves one table of a trace, for the sweep to collect."""
    return folder / f".{key}.partial" / f"{table}.parquet"


def _carry_out(folder: str, batches: _Batches) -> _Batches:
    for batch in batches:
        for row in batch.to_pylist():
            yield pa.RecordBatch.from_pylist([carry_out(Path(folder), row["key"], row["case"])], schema=DONE)


def carry_out(folder: Path, key: str, text: str) -> dict[str, Any]:
    """What became of one case, as a row of `DONE`."""
    start = time.perf_counter()
    failure = details = None
    metrics: list[dict[str, Any]] = []
    try:
        found, trace = conduct(msgspec.json.decode(text, type=Case))
        metrics = [metric._asdict() for metric in found]
        if trace is not None:
            _write(folder, key, trace)
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
