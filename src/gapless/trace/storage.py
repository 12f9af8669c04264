"""Stores traces on disk: a folder for each table with Parquet files.

A trace appears as a whole: the folders are built next to their destination and moved into place by
one rename. An earlier trace at the same place is replaced; anything else there is left alone, with
an error. The bytes depend only on the rows: not on time, host, or the order of sets.

Many runs can be written to one directory without holding them all in memory: rows are flushed in
groups.
"""

import shutil
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.errors import TraceError
from gapless.trace.rows import Trace
from gapless.trace.tables import KNOWN_VERSIONS, TABLES, VERSION_KEY, arrow_schema, rows_to_table, table_to_rows

__all__ = ["count_rows", "must_be_free", "read_trace", "write_trace"]

ROWS_PER_GROUP = 65_536
"""The number of rows buffered per table before a flush: large enough to compress well, small enough for memory."""

OPTIONAL_TABLES = frozenset({"messages", "cut_short", "skipped"})
"""Tables that are always written but not required for reading. Messages affect counts, not verdicts, and without
`cut_short` all clients are complete."""


def write_trace(traces: Trace | Iterable[Trace], directory: Path | str) -> None:
    """Write traces to a directory that is missing, empty, or contains an earlier trace."""
    target = Path(directory).absolute()
    replaced = _must_be_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        fresh = workshop / "new"
        fresh.mkdir()
        _write_tables([traces] if isinstance(traces, Trace) else traces, fresh)
        _move_into_place(fresh, target, workshop / "old" if replaced else None)
    finally:
        shutil.rmtree(workshop)


def read_trace(directory: Path | str, *, without: Collection[str] = ()) -> Trace:
    """Return all runs in a directory as one trace. Raise a `TraceError` that says what is wrong with it.

    `without` names tables that are not read; they are empty then.
    """
    source = _existing(directory)
    return Trace(**{table: [] if table in without else _read_table(table, source / table) for table in TABLES})


def count_rows(directory: Path | str) -> dict[str, int]:
    """Return the number of rows of each table, from its metadata. Raise a `TraceError` that says what is wrong with the
    trace.
    """
    source = _existing(directory)
    return {table: sum(_count(file) for file in _files(table, source / table)) for table in TABLES}


def _count(file: Path) -> int:
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(file, error) from None


def _existing(directory: Path | str) -> Path:
    source = Path(directory)
    if not source.is_dir():
        raise TraceError(f"there is no trace at {source}: it is not a directory")
    if (source / "parts").is_dir():
        raise TraceError(f"the trace at {source} is in parts; merge them: gapless trace merge {source} OUT")
    return source


def must_be_free(directory: Path | str) -> None:
    """Raise a `TraceError` if no trace can be written to the directory, so that a long run fails early."""
    _must_be_replaceable(Path(directory).absolute())


def _must_be_replaceable(target: Path) -> bool:
    """Return whether the directory contains an earlier trace that will be replaced. Raise an error if it contains
    anything else."""
    if not target.exists():
        return False
    if not target.is_dir():
        raise TraceError(f"{target} is a file; name a directory for the trace")
    entries = sorted(entry.name for entry in target.iterdir())
    if entries and not (set(entries) <= set(TABLES) and _has_version(target / "runs")):
        raise TraceError(
            f"{target} contains something other than a trace ({entries[0]}); choose another directory or empty this one"
        )
    return True


def _move_into_place(fresh: Path, target: Path, aside: Path | None) -> None:
    if aside is not None:
        target.rename(aside)
    try:
        fresh.rename(target)
    except BaseException:
        if aside is not None:
            aside.rename(target)
        raise


def _has_version(folder: Path) -> bool:
    try:
        return any(VERSION_KEY in (pq.read_schema(file).metadata or {}) for file in folder.glob("*.parquet"))
    except (OSError, pa.ArrowException):
        return False


def _write_tables(traces: Iterable[Trace], directory: Path) -> None:
    waiting: dict[str, list[Any]] = {table: [] for table in TABLES}
    written: set[str] = set()
    writers = {table: _open_writer(directory / table, table) for table in TABLES}
    try:
        for trace in traces:
            _must_be_new(trace, written)
            for table, rows in waiting.items():
                rows.extend(getattr(trace, table))
                while len(rows) >= ROWS_PER_GROUP:
                    writers[table].write_table(rows_to_table(table, rows[:ROWS_PER_GROUP]))
                    del rows[:ROWS_PER_GROUP]
        for table, rows in waiting.items():
            writers[table].write_table(rows_to_table(table, rows))
    finally:
        for writer in writers.values():
            writer.close()


def _open_writer(folder: Path, table: str) -> pq.ParquetWriter:
    folder.mkdir()
    return pq.ParquetWriter(
        folder / "part-00000.parquet", arrow_schema(table), compression="zstd", write_page_checksum=True
    )


def _must_be_new(trace: Trace, written: set[str]) -> None:
    for row in trace.runs:
        if row.run in written:
            raise TraceError(f"two runs have the name {row.run!r}; give each run of a trace a different name")
        written.add(row.run)


def _read_table(table: str, folder: Path) -> list[Any]:
    return [row for file in _files(table, folder) for row in _read_file(table, file)]


def _files(table: str, folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.parquet"))
    if not files and table not in OPTIONAL_TABLES:
        raise TraceError(f"the trace at {folder.parent} has no table {table!r}; it is incomplete or not a trace")
    return files


def _read_file(table: str, file: Path) -> list[Any]:
    try:
        found = pq.ParquetFile(file, page_checksum_verification=True).read()
    except (OSError, pa.ArrowException) as error:
        raise _damaged(file, error) from None
    version = (found.schema.metadata or {}).get(VERSION_KEY)
    if version is None:
        raise TraceError(f"{file} is not a table of a Gapless trace: its metadata has no {VERSION_KEY.decode()}")
    if version.decode(errors="replace") not in KNOWN_VERSIONS:
        raise TraceError(
            f"{file} has version {version.decode(errors='replace')} of the trace format, but this "
            f"version of Gapless reads version {' and '.join(KNOWN_VERSIONS)}"
        )
    return table_to_rows(table, found, str(file))


def _damaged(file: Path, error: Exception) -> TraceError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return TraceError(f"{file} is damaged and cannot be read: {reason}")


assert tuple(TABLES) == tuple(field.name for field in msgspec.structs.fields(Trace))
