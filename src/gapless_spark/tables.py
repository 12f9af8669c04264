"""A trace as DataFrames, and results as Parquet.

`read_tables` gives one DataFrame for each table of `docs/TRACE_FORMAT.md`. It raises a `TraceError` in the same cases
as `gapless.trace.read_trace`: a missing table, another version of the format, a missing column or one of another type,
forbidden nulls, a damaged file. For that it reads only the end of each file: here, if Spark runs on this machine, or
otherwise on the executors, so that a trace can be in any place that both Spark and pyarrow can read.

`write_tables` writes under another name and renames at the end, so that results are complete.
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
"""The maximum number of rows of a file of the table `runs` for which the inspection also reads the names."""


class TraceTables:
    """The tables of a trace, one attribute each, with the rows and the files of each.

    A table is opened when it is used: tables that workers read themselves need no plan of Spark.
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
        """Return the number of rows of all tables except `messages`."""
        return sum(count for table, count in self.rows.items() if table != "messages")

    def fits(self, rows: int, pairs: int) -> bool:
        """Return whether the tables together have at most `rows` rows, and at most `pairs` pairs of a subscription and
        an event."""
        return self.count() <= rows and self.rows["subscriptions"] * self.rows["events"] <= pairs


def read_tables(spark: SparkSession, trace: str | Path) -> TraceTables:
    """Open every table of the trace; raise a `TraceError` that says what is wrong with it."""
    # Spark resolves a relative path from the directory it was started in, which may differ from ours.
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
    """Write each DataFrame to its own folder in `directory`, which must be new, empty, or contain such tables."""
    with results_folder(directory, tables) as folder:
        for name, frame in tables.items():
            frame.write.parquet(f"file://{folder}/{name}")
            if not (folder / name / DONE).exists():
                raise SparkError(
                    f"Spark wrote {name} to a machine whose files this process cannot read: choose a shared directory"
                )


def _with_defaults(table: str, frame: DataFrame) -> DataFrame:
    """Add default values for columns that an earlier version of the format lacks."""
    defaults = {name: column_default(table, name) for name in frame.columns}
    known = {name: default for name, default in defaults.items() if default is not None}
    return frame.fillna(known) if known else frame


# ---- inspecting files -----------------------------------------------------------------------------------------


def _inspect(
    spark: SparkSession, place: str
) -> tuple[dict[str, int], dict[str, list[str]], list[str] | None]:  # fmt: skip
    """Return the rows of each existing table, the files of every table, and the names of the runs, if they are few."""
    if _is_here(spark, place):
        files = _files_here(Path(place))
        found = [row for file in files for row in _looked_into(file)]
    else:
        every = spark.read.format("binaryFile").option("pathGlobFilter", "*.parquet")
        listed = every.option("recursiveFileLookup", "true").load(_escaped(place))
        found = listed.select("path").mapInArrow(_inspected_batches, _INSPECTED).toArrow().to_pylist()
        files = listed.inputFiles()
    if not found and "://" not in place and (Path(place) / PARTS).is_dir():
        raise TraceError(f"the trace at {place} is in parts; merge them: gapless trace merge {place} OUT")
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
    """Return whether this process sees the same files as Spark's tasks: then no task is needed to inspect them."""
    is_local = not is_remote() and (spark.sparkContext.master or "").startswith("local")
    return is_local and "://" not in place and Path(place).is_dir()


def _files_here(place: Path) -> list[str]:
    """Return the files of all tables, as Spark would list them."""
    folders = [place / table for table in TABLES if (place / table).is_dir()]
    files = [path for folder in folders for path in sorted(folder.glob("*.parquet")) if path.is_file()]
    return [f"file:{path}" for path in files if not path.name.startswith((".", "_"))]


def _must_be_complete(place: str, files: list[str], found: list[dict[str, Any]]) -> None:
    """Raise an error about an empty file: Spark skips such files, and a table of a trace never has one."""
    listed = Counter(PurePosixPath(file).parent.name for file in files)
    looked_at = Counter(row["table"] for row in found)
    for table in TABLES:
        if listed[table] != looked_at[table]:
            raise TraceError(f"{place}/{table} is damaged and cannot be read: a file in it is empty")


def _inspected_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Inspect the files whose addresses are given; runs on an executor."""
    schema = pa.schema([
        ("table", pa.string()), ("address", pa.string()), ("file", pa.string()), ("rows", pa.int64()),
        ("complaint", pa.string()), ("names", pa.list_(pa.string())),
    ])  # fmt: skip
    for batch in batches:
        rows = [row for address in batch.column(0).to_pylist() for row in _looked_into(address)]
        yield pa.RecordBatch.from_pylist(rows, schema=schema)


def _looked_into(address: str) -> list[dict[str, Any]]:
    """Return the properties of a file, if it belongs to a table and is not empty."""
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
    """Convert the URI of a file, as Spark reports it, to one for pyarrow.

    Spark writes addresses without escapes; pyarrow requires them, except for local files.
    """
    if address.startswith("file:"):
        return fs.LocalFileSystem(), _without_scheme(address)
    system, path = fs.FileSystem.from_uri(quote(address, safe=":/@"))
    return system, path


def _without_scheme(address: str) -> str:
    """Return an address without the scheme `file:`, and any other address unchanged."""
    return re.sub(r"^file:/+", "/", address)


def _complaint(table: str, file: pq.ParquetFile, path: str) -> str | None:
    """Return what does not fit the format, in the words of `gapless.trace`."""
    found = file.schema_arrow
    version = (found.metadata or {}).get(VERSION_KEY)
    if version is None:
        return f"{path} is not a table of a Gapless trace: its metadata has no {VERSION_KEY.decode()}"
    if version.decode(errors="replace") not in KNOWN_VERSIONS:
        return (
            f"{path} has version {version.decode(errors='replace')} of the trace format, but this "
            f"version of Gapless reads version {' and '.join(KNOWN_VERSIONS)}"
        )
    for field in arrow_schema(table):
        if field.name not in found.names:
            if version != SCHEMA_VERSION.encode() and column_default(table, field.name) is not None:
                continue
            return f"{path} has no column {field.name!r}; write the trace again with this version of Gapless"
        if found.field(field.name).type != field.type:
            kind = found.field(field.name).type
            return f"{path}: column {field.name!r} has type {kind}, but must have {field.type}"
        nulls = 0 if field.nullable else _nulls(file, found.get_field_index(field.name))
        if nulls:
            return f"{path}: column {field.name!r} has {nulls} nulls, but must have none"
    return None


def _nulls(file: pq.ParquetFile, column: int) -> int:
    """Return how many nulls a column has, from the statistics in the file, or by reading it if there are none."""
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
    """Return the path with its special characters escaped, because Spark treats paths as patterns."""
    return re.sub(r"([\[\]{}*?,\\])", r"\\\1", path)
