"""Converts rows to Arrow tables and back, with validation when reading.

The columns of a table are the fields of its row struct, in order. The format version is in the
metadata of every file, under `gapless.trace.version`, so a single file can be identified. A file of
an earlier version lacks some columns: its rows have the defaults of the row struct.
"""

from functools import cache
from types import NoneType
from typing import Any, get_args

import msgspec
import pyarrow as pa

from gapless.errors import TraceError
from gapless.trace.rows import (
    CutRow,
    CutShortRow,
    EventRow,
    HistoryRow,
    MessageRow,
    PastRow,
    Row,
    RunRow,
    SkippedRow,
    SubscriptionRow,
)

__all__ = [
    "KNOWN_VERSIONS", "SCHEMA_VERSION", "TABLES", "VERSION_KEY", "arrow_schema", "column_default", "rows_to_table",
    "table_to_rows",
]  # fmt: skip

SCHEMA_VERSION = "3"
KNOWN_VERSIONS = ("1", "2", "3")
"""The versions of the format that can be read. Version 1 has no `runs.clock_skew_ms`, no `subscriptions.ready`, and no
table `cut_short`. Before version 3 there is no table `skipped`."""
VERSION_KEY = b"gapless.trace.version"

TABLES: dict[str, type[Row]] = {
    "runs": RunRow,
    "events": EventRow,
    "subscriptions": SubscriptionRow,
    "cuts": CutRow,
    "history": HistoryRow,
    "pasts": PastRow,
    "messages": MessageRow,
    "cut_short": CutShortRow,
    "skipped": SkippedRow,
}

_ARROW_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@cache
def arrow_schema(table: str) -> pa.Schema:
    """Return the columns of a table, with the format version in the metadata."""
    columns = [
        pa.field(field.name, _arrow_type(field.type), nullable=NoneType in get_args(field.type))
        for field in msgspec.structs.fields(TABLES[table])
    ]
    return pa.schema(columns, metadata={VERSION_KEY: SCHEMA_VERSION.encode()})


def _arrow_type(annotation: Any) -> pa.DataType:
    kinds = {type(choice) if isinstance(choice, str) else choice for choice in get_args(annotation)} - {NoneType}
    return _ARROW_TYPES[kinds.pop() if kinds else annotation]


def rows_to_table(table: str, rows: list[Row]) -> pa.Table:
    """Return the rows as an Arrow table."""
    schema = arrow_schema(table)
    arrays = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


@cache
def column_default(table: str, column: str) -> Any:
    """Return the default of a column for rows of earlier versions, or None if every version has the column."""
    [field] = [field for field in msgspec.structs.fields(TABLES[table]) if field.name == column]
    return None if field.default is msgspec.NODEFAULT else field.default


def table_to_rows(table: str, found: pa.Table, place: str) -> list[Any]:
    """Return the rows of a table that was read from `place`. Raise a `TraceError` where it does not fit the format."""
    columns = [_column(found, field, place, column_default(table, field.name)) for field in arrow_schema(table)]
    rows = list(map(TABLES[table], *columns))
    if table in ("runs", "subscriptions", "history"):
        _check_words(rows, TABLES[table], place)
    return rows


def _column(found: pa.Table, field: pa.Field, place: str, default: Any) -> list[Any]:
    if field.name not in found.column_names:
        if default is not None and (found.schema.metadata or {}).get(VERSION_KEY) != SCHEMA_VERSION.encode():
            return [default] * len(found)
        raise TraceError(f"{place} has no column {field.name!r}; write the trace again with this version of Gapless")
    column = found.column(field.name)
    if column.type != field.type:
        raise TraceError(f"{place}: column {field.name!r} has type {column.type}, but must have {field.type}")
    if column.null_count and not field.nullable:
        raise TraceError(f"{place}: column {field.name!r} has {column.null_count} nulls, but must have none")
    if not pa.types.is_string(column.type):
        return list(column.to_pylist())
    # Names repeat, so rows share the strings.
    encoded = column.combine_chunks().dictionary_encode()
    names = [*encoded.dictionary.to_pylist(), None]
    return [names[place] for place in encoded.indices.fill_null(-1).to_pylist()]


@cache
def _words(row_type: type[Row]) -> dict[str, list[str]]:
    """Return the enumerated columns, with their allowed values."""
    choices = {field.name: get_args(field.type) for field in msgspec.structs.fields(row_type)}
    found = {name: [word for word in words if isinstance(word, str)] for name, words in choices.items()}
    return {name: words for name, words in found.items() if words}


def _check_words(rows: list[Any], row_type: type[Row], place: str) -> None:
    """Check that enumerated columns contain only allowed values."""
    for name, words in _words(row_type).items():
        strange = {getattr(row, name) for row in rows} - set(words)
        if strange:
            raise TraceError(
                f"{place}: column {name!r} contains {min(strange)!r}, but only {', '.join(words)} are allowed"
            )
