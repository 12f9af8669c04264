"""The directory of a sweep: writes results, and finds those of earlier sweeps.

| | |
| --- | --- |
| `sweep.json` | identifies the directory as that of a sweep, with the name of its experiment |
| `runs/KEY` | one folder for each finished run: `metrics.parquet`, and the tables of its trace, if it is kept |
| `cases` | the runs with their parameters (Parquet) |
| `metrics` | run, metric, subject and value of all runs (Parquet) |
| `trace` | the traces of all runs, merged into one that can be audited |
| `failures.json` | the failed runs, with the reason and the command that repeats each |

A run is built under another name and renamed when it is complete, so that everything in `runs` is finished and need not
be repeated. The tables are made from the runs when all are finished, in the order of the grid, so that they do not
depend on the workers. A new sweep deletes the tables first, so that they are never older than the runs.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.errors import ExperimentError, SparkError
from gapless.trace.tables import TABLES
from gapless_papers.lab.grid import Case
from gapless_papers.lab.tasks import METRICS, trace_file

__all__ = ["Failure", "Store"]

FORMAT = 1
_TABLES = ("cases", "metrics", "trace")
_CASES = pa.schema([
    ("run", pa.string()), ("key", pa.string()), ("protocol", pa.string()), ("seed", pa.int64()), ("axes", pa.string()),
])  # fmt: skip


class Failure(msgspec.Struct, frozen=True):
    """A run that failed."""

    run: str
    reason: str
    repeat: str
    details: str = ""


class Store:
    """The directory of one sweep."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.runs = self.directory / "runs"

    @contextmanager
    def open(self, experiment: str) -> Iterator[None]:
        """Lock the directory for this sweep within the block; raise an error if it contains something else."""
        marker = self.directory / "sweep.json"
        if self.directory.exists() and not self.directory.is_dir():
            raise ExperimentError(f"{self.directory} is a file; name a directory for the results")
        if marker.exists():
            self._check_marker(marker, experiment)
        elif self.directory.exists() and any(self.directory.iterdir()):
            first = min(entry.name for entry in self.directory.iterdir())
            raise ExperimentError(
                f"{self.directory} contains something other than a sweep ({first}); choose another directory"
            )
        self.runs.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.runs, os.O_RDONLY)
        try:
            self._take(lock)
            _write_whole(marker, msgspec.json.encode({"format": FORMAT, "experiment": experiment}))
            yield
        finally:
            os.close(lock)

    def _take(self, lock: int) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExperimentError(
                f"another sweep is running in {self.directory}; wait for it, or choose another directory"
            ) from None
        except OSError:
            pass  # not every file system has locks

    def _check_marker(self, marker: Path, experiment: str) -> None:
        try:
            found = msgspec.json.decode(marker.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError:
            found = {}
        if found.get("experiment") != experiment or found.get("format") != FORMAT:
            other = found.get("experiment", "an unknown version")
            raise ExperimentError(f"{self.directory} contains the runs of {other}; choose another directory")

    # ---- runs

    def has(self, key: str) -> bool:
        """Return whether the run with this key is finished."""
        return (self.runs / key / "metrics.parquet").exists()

    def clear_tables(self) -> None:
        """Delete the tables, which are made from the runs, and incomplete runs, before anything changes."""
        for name in _TABLES:
            shutil.rmtree(self.directory / name, ignore_errors=True)
        (self.directory / "failures.json").unlink(missing_ok=True)
        for draft in self.directory.rglob(".*.partial"):
            shutil.rmtree(draft, ignore_errors=True)

    def keep(self, key: str, metrics: Sequence[dict[str, Any]], *, with_trace: bool) -> None:
        """Store a finished run."""
        draft = self.runs / f".{key}.partial"
        draft.mkdir(exist_ok=True)
        missing = [table for table in TABLES if with_trace and not trace_file(self.runs, key, table).exists()]
        if missing:
            raise SparkError(
                f"the traces were written to files that this process cannot read: {self.directory} must be shared"
            )
        table = pa.Table.from_pylist(list(metrics), schema=pa.schema(list(METRICS)))
        pq.write_table(table, draft / "metrics.parquet", compression="zstd", write_page_checksum=True)
        draft.rename(self.runs / key)

    def forget_others(self, keys: Iterable[str]) -> None:
        """Delete obsolete runs: those of other code, or of cases that left the grid."""
        wanted = set(keys)
        for entry in self.runs.iterdir():
            if entry.name not in wanted:
                shutil.rmtree(entry, ignore_errors=True)

    # ---- tables

    def finish(self, cases: Sequence[Case], failures: Sequence[Failure]) -> None:
        """Make the tables from the finished runs."""
        done = [(case, case.key()) for case in cases]
        done = [(case, key) for case, key in done if self.has(key)]
        self._build("cases", lambda folder: _write_cases(folder, done))
        self._build("metrics", lambda folder: self._write_metrics(folder, done))
        if any(case.trace for case, _ in done):
            self._build("trace", lambda folder: self._link_traces(folder, [key for _, key in done]))
        if failures:
            text = msgspec.json.format(msgspec.json.encode(failures), indent=2)
            _write_whole(self.directory / "failures.json", text)

    def _build(self, name: str, fill: Callable[[Path], None]) -> None:
        workshop = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".partial", dir=self.directory))
        try:
            (workshop / name).mkdir()
            fill(workshop / name)
            (workshop / name).rename(self.directory / name)
        finally:
            shutil.rmtree(workshop, ignore_errors=True)

    def _write_metrics(self, folder: Path, done: Sequence[tuple[Case, str]]) -> None:
        schema = pa.schema([("run", pa.string()), *list(METRICS)])
        with pq.ParquetWriter(folder / "part-00000.parquet", schema, compression="zstd") as writer:
            for case, key in done:
                table = pq.read_table(self.runs / key / "metrics.parquet")
                names = pa.array([case.run] * table.num_rows, pa.string())
                writer.write_table(pa.Table.from_arrays([names, *table.columns], schema=schema))

    def _link_traces(self, folder: Path, keys: Sequence[str]) -> None:
        for table in TABLES:
            (folder / table).mkdir()
            for key in keys:
                source, target = self.runs / key / f"{table}.parquet", folder / table / f"{key}.parquet"
                try:
                    os.link(source, target)
                except OSError:  # not every file system has links
                    shutil.copyfile(source, target)

    def has_tables(self) -> bool:
        """Return whether a sweep finished here and no other has begun since."""
        return all((self.directory / name / "part-00000.parquet").exists() for name in ("cases", "metrics"))

    def failed(self) -> int:
        """Return the number of failed runs of the last sweep."""
        file = self.directory / "failures.json"
        return len(msgspec.json.decode(file.read_bytes(), type=list[Failure])) if file.exists() else 0

    def read(self) -> tuple[pa.Table, pa.Table]:
        """Return the cases and the metrics."""
        found = [pq.read_table(self.directory / name / "part-00000.parquet") for name in ("cases", "metrics")]
        return found[0], found[1]


def _write_cases(folder: Path, done: Sequence[tuple[Case, str]]) -> None:
    rows = [
        {
            "run": case.run, "key": key, "protocol": case.protocol, "seed": case.seed,
            "axes": msgspec.json.encode(case.axes).decode(),
        }
        for case, key in done
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=_CASES), folder / "part-00000.parquet", compression="zstd")


def _write_whole(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}.partial")
    draft.write_bytes(content)
    os.replace(draft, file)
