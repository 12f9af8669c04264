"""A trace as DataFrames, and results as Parquet.

`read_tables` gives one DataFrame for each table of `docs/TRACE_FORMAT.md`. What it refuses, with a `TraceError`,
is what `gapless.trace.read_trace` refuses: a missing table, another version of the format, a missing column or one
of another type, nulls where none may be, a damaged file. It reads only the end of each file for that: here, where
Spark runs on this machine, or else on the executors, so that a trace can lie wherever Spark reads and pyarrow can look.

`write_tables` writes under another name and renames at the end: what stands at its place is whole.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.utils import is_remote

from gapless.errors import SparkError, TraceError
from gapless.trace.part_recorder import PARTS
from gapless.trace.results import DONE, results_folder
from gapless.trace.storage import OPTIONAL_TABLES
from gapless.trace.tables import KNOWN_VERSIONS, SCHEMA_VERSION, TABLES, VERSION_KEY, arrow_schema, column_default

__all__ = ["TraceTables", "located", "read_tables", "write_tables"]

_INSPECTED = "table string, address string, file string, rows bigint, complaint string, names array<string>"

NAMES_MAX = 10_000
"""Rows of a file of the table `runs` whose names are told with the rest of what is seen of it."""


class TraceTables:
    """The tables of a trace, one attribute each, how many rows each has, and in which files they are.

    A table is opened when it is asked for: what workers read themselves costs Spark no plan.
    """

    runs: DataFrame
    events: DataFrame
    subscriptions: DataFrame
    cuts: DataFrame
    history: DataFrame
    pasts: DataFrame
    messages: DataFrame
    cut_short: DataFrame
    skipped: DataFrame

    def __init__(
        self,
        opener: Callable[[str], DataFrame],
        rows: Mapping[str, int],
        files: Mapping[str, Sequence[str]],
        names: Sequence[str] | None = None,
    ) -> None:
        self._opener = opener
        self.rows = dict(rows)
        self.files = dict(files)
        self.names = names
        """The names of all runs, if there are not too many."""

    def __getattr__(self, table: str) -> DataFrame:
        if table not in TABLES:
            raise AttributeError(f"a trace has no table {table!r}")
        opened = self._opener(table)
        setattr(self, table, opened)
        return opened

    def count(self) -> int:
        """How many rows all of it has, save for messages."""
        return sum(count for table, count in self.rows.items() if table != "messages")

    def fits(self, rows: int, pairs: int) -> bool:
        """Whether all of it together has no more rows, and no more pairs of a subscription and an event."""
        return self.count() <= rows and self.rows["subscriptions"] * self.rows["events"] <= pairs


def read_tables(spark: SparkSession, trace: str | Path) -> TraceTables:
    """Open every table of the trace; a `TraceError` says what is wrong with it."""
    # Spark would look for a relative path from where it was started, which need not be where we are.
    place = _without_scheme(str(trace))
    place = place.rstrip("/") if "://" in place else str(Path(place).absolute())
    rows, files, names = _inspect(spark, place)
    for table in TABLES:
        if table not in rows and table not in OPTIONAL_TABLES:
            raise TraceError(f"the trace at {place} has no table {table!r}; it is incomplete or not a trace")

    def opened(table: str) -> DataFrame:
        schema = from_arrow_schema(arrow_schema(table))
        if table not in rows:
            return spark.createDataFrame([], schema)
        reader = spark.read.schema(schema).option("pathGlobFilter", "*.parquet")
        return _with_defaults(table, reader.parquet(_escaped(f"{place}/{table}")))

    return TraceTables(opened, {table: rows.get(table, 0) for table in TABLES}, files, names)


def write_tables(tables: Mapping[str, DataFrame], directory: str | Path) -> None:
    """Write each DataFrame to a folder of its own in `directory`, which must be free, empty, or hold such tables."""
    with results_folder(directory, tables) as folder:
        for name, frame in tables.items():
            frame.write.parquet(f"file://{folder}/{name}")
            if not (folder / name / DONE).exists():
                raise SparkError(f"Spark wrote {name} to a machine whose files we do not see: name a shared directory")


def _with_defaults(table: str, frame: DataFrame) -> DataFrame:
    """In place of columns that an earlier version of the format lacks, the values that they would have."""
    defaults = {name: column_default(table, name) for name in frame.columns}
    known = {name: default for name, default in defaults.items() if default is not None}
    return frame.fillna(known) if known else frame


# ---- looking at the files -------------------------------------------------------------------------------------


def _inspect(
    spark: SparkSession, place: str
) -> tuple[dict[str, int], dict[str, list[str]], list[str] | None]:  # fmt: skip
    """The rows of each table that is there, the files of every table, and the names of the runs, if they are few."""
    if _is_here(spark, place):
        files = _files_here(Path(place))
        found = [row for file in files for row in _looked_into(file)]
    else:
        every = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet")
        listed = every.option("recursiveFileLookup", "true").load(_escaped(place))
        found = listed.select("path").mapInArrow(_inspected_batches, _INSPECTED).toArrow().to_pylist()
        files = listed.inputFiles()
    if not found and "://" not in place and (Path(place) / PARTS).is_dir():
        raise TraceError(f"the trace at {place} is in parts; put them together: gapless trace merge {place} OUT")
    of_trace = [row for row in found if row["file"].rsplit("/", 2)[0] == place]
    rows: dict[str, int] = {}
    names: list[str] | None = []
    addresses: dict[str, list[str]] = {table: [] for table in TABLES}
    for row in sorted(of_trace, key=lambda row: (list(TABLES).index(row["table"]), row["file"])):
        if row["complaint"] is not None:
            raise TraceError(row["complaint"])
        rows[row["table"]] = rows.get(row["table"], 0) + row["rows"]
        addresses[row["table"]].append(row["address"])
        if row["table"] == "runs":
            names = [*names, *row["names"]] if names is not None and row["names"] is not None else None
    _must_be_complete(place, files, found)
    return rows, addresses, names


def _is_here(spark: SparkSession, place: str) -> bool:
    """Whether we see what Spark's tasks see: then a look at the ends of some files needs no task."""
    is_local = not is_remote() and (spark.sparkContext.master or "").startswith("local")
    return is_local and "://" not in place and Path(place).is_dir()


def _files_here(place: Path) -> list[str]:
    """The files of all tables, as Spark would list them."""
    folders = [place / table for table in TABLES if (place / table).is_dir()]
    files = [path for folder in folders for path in sorted(folder.glob("*.parquet")) if path.is_file()]
    return [f"file:{path}" for path in files if not path.name.startswith((".", "_"))]


def _must_be_complete(place: str, files: list[str], found: list[dict[str, Any]]) -> None:
    """Spark leaves out files without a single byte; a table of a trace never has one."""
    listed = Counter(PurePosixPath(file).parent.name for file in files)
    looked_at = Counter(row["table"] for row in found)
    for table in TABLES:
        if listed[table] != looked_at[table]:
            raise TraceError(f"{place}/{table} is damaged and cannot be read: a file in it is empty")


def _inspected_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Looks into the files whose addresses are given; on an executor."""
    schema = pa.schema([
        ("table", pa.string()), ("address", pa.string()), ("file", pa.string()), ("rows", pa.int64()),
        ("complaint", pa.string()), ("names", pa.list_(pa.string())),
    ])  # fmt: skip
    for batch in batches:
        rows = [row for address in batch.column(0).to_pylist() for row in _looked_into(address)]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _looked_into(address: str) -> list[dict[str, Any]]:
    """What is seen of a file, if it belongs to a table and is not empty."""
    table = PurePosixPath(address).parent.name
    if table not in TABLES or (address.startswith("file:") and not Path(_without_scheme(address)).stat().st_size):
        return []
    return [{"table": table, "address": address, **_inspected(table, address)}]


def _inspected(table: str, address: str) -> dict[str, int | str | list[str] | None]:
    system, path = located(address)
    shown = path if isinstance(system, fs.LocalFileSystem) else address
    try:
        with system.open_input_file(path) as source, pq.ParquetFile(source) as file:
            complaint, rows = _complaint(table, file, path), file.metadata.num_rows
            names = None
            if table == "runs" and complaint is None and rows <= NAMES_MAX:
                names = file.read(columns=["run"]).column(0).to_pylist()
            return {"file": shown, "rows": rows, "complaint": complaint, "names": names}
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {"file": shown, "rows": 0, "complaint": f"{path} is damaged and cannot be read: {reason}"}


def located(address: str) -> tuple[fs.FileSystem, str]:
    """Where pyarrow finds a file that Spark has named.

    Spark writes addresses without escapes; pyarrow wants them escaped, save for files of this machine.
    """
    if address.startswith("file:"):
        return fs.LocalFileSystem(), _without_scheme(address)
    system, path = fs.FileSystem.from_uri(quote(address, safe=":/@"))
    return system, path


def _without_scheme(address: str) -> str:
    """The path, if it is one of this machine."""
    return re.sub(r"^file:/+", "/", address)


def _complaint(table: str, file: pq.ParquetFile, path: str) -> str | None:
    """What does not fit the format, in the words of `gapless.trace`."""
    found = file.schema_arrow
    version = (found.metadata or {}).get(VERSION_KEY)
    if version is None:
        return f"{path} is not a table of a Gapless trace: its metadata have no {VERSION_KEY.decode()}"
    if version.decode(errors="replace") not in KNOWN_VERSIONS:
        return (
            f"{path} has version {version.decode(errors='replace')} of the trace format, but this Gapless reads "
            f"version {' and '.join(KNOWN_VERSIONS)}"
        )
    for field in arrow_schema(table):
        if field.name not in found.names:
            if version != SCHEMA_VERSION.encode() and column_default(table, field.name) is not None:
                continue
            return f"{path} has no column {field.name!r}; write the trace again with this version of Gapless"
        if found.field(field.name).type != field.type:
            kind = found.field(field.name).type
            return f"{path}: column {field.name!r} holds {kind}, but {field.type} belongs there"
        nulls = 0 if field.nullable else _nulls(file, found.get_field_index(field.name))
        if nulls:
            return f"{path}: column {field.name!r} has {nulls} nulls, but may have none"
    return None


def _nulls(file: pq.ParquetFile, column: int) -> int:
    """How many nulls a column has, by the statistics in the file, or by reading it where there are none."""
    total = 0
    for number in range(file.metadata.num_row_groups):
        statistics = file.metadata.row_group(number).column(column).statistics
        if statistics is None or not statistics.has_null_count:
            name = file.schema_arrow.names[column]
            total += file.read_row_group(number, columns=[name]).column(0).null_count
        else:
            total += statistics.null_count
    return total


def _escaped(path: str) -> str:
    """Spark takes paths for patterns; ours are names."""
    return re.sub(r"([\[\]{}*?,\\])", r"\\\1", path)
