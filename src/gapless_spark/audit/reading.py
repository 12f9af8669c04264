"""Reads the files of a trace in a worker: the rows of some runs, or of some clients of one run.

Runs are in the files in the order in which they were written, and each row group stores the range of its runs' names,
so a worker skips most of the rows of others.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.errors import TraceError
from gapless.trace.tables import table_to_rows
from gapless_spark.tables import located

__all__ = ["batches_of_run", "opened", "read_rows"]

_FEW_VALUES = ("run", "client", "kind", "subscription_id")
"""Columns with few distinct names: they are read as dictionary indices."""


@contextmanager
def opened(address: str, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a file of the trace; raise a `TraceError` if it cannot be read."""
    system, path = located(address)
    try:
        with system.open_input_file(path) as source:
            yield pq.ParquetFile(source, page_checksum_verification=True, **options)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(f"{path} is damaged and cannot be read: {reason}") from None


def read_rows(table: str, addresses: Sequence[str], runs: pa.Array, clients: pa.Array | None = None) -> list[Any]:
    """Return the rows of these runs; with `clients`, only those of these clients."""
    rows: list[Any] = []
    for address in addresses:
        with opened(address) as file:
            for number in _row_groups(file, pc.min(runs).as_py(), pc.max(runs).as_py()):
                group = file.read_row_group(number)
                found = group.filter(pc.is_in(group.column("run"), runs))
                if clients is not None:
                    found = found.filter(pc.is_in(found.column("client"), clients))
                rows += table_to_rows(table, found, located(address)[1])
    return rows


def batches_of_run(addresses: Sequence[str], run: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield these columns of one run's rows, some hundred thousand at a time."""
    few = [name for name in ("run", *columns) if name in _FEW_VALUES]
    for address in addresses:
        with opened(address, read_dictionary=few) as file:
            for group in _row_groups(file, run, run):
                for batch in file.iter_batches(1 << 20, row_groups=[group], columns=["run", *columns]):
                    runs = batch.column("run")
                    is_mine = pc.take(pc.equal(runs.dictionary, run), runs.indices)
                    mine = batch.select(list(columns))
                    yield mine if pc.all(is_mine).as_py() else mine.filter(is_mine)


def _row_groups(file: pq.ParquetFile, first: str, last: str) -> Iterator[int]:
    """Return the row groups that can contain runs between these names."""
    column = file.schema_arrow.get_field_index("run")
    for number in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(number).column(column).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or (statistics.min <= last and statistics.max >= first):
            yield number
