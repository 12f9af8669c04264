"""Converts rows to events.

One column becomes the payload. A column `attributes`, a map of strings, adds its entries as attributes. Each other
column is an attribute by its name; where it is null, the event lacks that attribute. Values of some types are converted
when a task writes them (`conversions`).
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType, MapType, StringType, StructField, StructType

from gapless.errors import SparkError
from gapless.events import Attributes
from gapless.runtime.codec import ATTRIBUTE_BYTES
from gapless_spark.stream.columns import ATTRIBUTES
from gapless_spark.stream.conversions import CONVERTED, NESTED, as_attribute, as_payload

__all__ = ["BATCH", "NUMBER", "SINK", "Layout"]

SINK, BATCH, NUMBER = "sink.id", "sink.batch", "sink.n"
"""Attributes of all events of a sink: its name; its run and batch; the index in the batch, from 0 on."""

_MAP = "attributes"
_OWN_BYTES = 3 * ATTRIBUTE_BYTES + len(SINK + BATCH + NUMBER)
"""The size of the three attributes of the sink, without their values."""


class Layout:
    """The layout of one schema; raises an error if a column does not fit."""

    def __init__(self, schema: StructType, payload: str) -> None:
        self._payload = payload if payload in schema.names else ""
        if payload != "payload" and not self._payload:
            raise SparkError(
                f"there is no column {payload!r} for the payload; the columns are {', '.join(schema.names)}"
            )
        self._map = any(field.name == _MAP and isinstance(field.dataType, MapType) for field in schema.fields)
        self._names = [name for name in schema.names if name != self._payload and not (self._map and name == _MAP)]
        for field in schema.fields:
            _check(field, is_payload=field.name == self._payload)

    def plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with columns that events can have; raise an error if a value does not fit."""
        columns = [
            as_payload(column) if name == self._payload else as_attribute(name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, batch.schema.names)

    def largest(self, batch: pa.RecordBatch, added: int) -> int:
        """Return the size of the largest event in bytes, slightly overestimated. `added` is the size of the sink's
        attributes."""
        if not batch.num_rows:
            return 0
        fixed = sum(len(name.encode()) + ATTRIBUTE_BYTES for name in self._names)
        sizes: Any = pa.array([0]).take(pa.array([0] * batch.num_rows, pa.int8()))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name == self._payload or pa.types.is_string(column.type):
                sizes = pc.add(sizes, pc.fill_null(pc.cast(pc.binary_length(column), pa.int64()), 0))
            elif self._map and name == _MAP:
                brought = [sum(len(k.encode()) + len((v or "").encode()) + ATTRIBUTE_BYTES for k, v in row or ())
                         for row in column.to_pylist()]  # fmt: skip
                sizes = pc.add(sizes, pa.array(brought, pa.int64()))
        return int(pc.max(sizes).as_py()) + fixed + added + _OWN_BYTES

    def events(self, batch: pa.RecordBatch, sink: str, label: str, first: int) -> Iterator[tuple[Attributes, bytes]]:
        """Yield one event for each row; the first has the index `first` in the batch."""
        found: dict[str, list[Any]] = {name: batch.column(name).to_pylist() for name in self._names}
        names = (*self._names, SINK, BATCH, NUMBER)
        numbers = range(first, first + batch.num_rows)
        rows = zip(*found.values(), repeat(sink), repeat(label), numbers, strict=False)
        has_nulls = any(batch.column(name).null_count for name in self._names)
        made: Iterator[Attributes] = (dict(zip(names, row, strict=True)) for row in rows)
        if has_nulls:
            made = ({name: value for name, value in each.items() if value is not None} for each in made)
        if self._map:
            brought = batch.column(_MAP).to_pylist()
            made = (
                {name: text for name, text in more or () if text is not None} | each
                for more, each in zip(brought, made, strict=True)
            )
        return zip(made, self._payloads(batch), strict=True)

    def _payloads(self, batch: pa.RecordBatch) -> list[bytes]:
        if not self._payload:
            return [b""] * batch.num_rows
        column = batch.column(self._payload)
        values = column.to_pylist()
        return [value or b"" for value in values] if column.null_count else values


def _check(field: StructField, *, is_payload: bool) -> None:
    kind = field.dataType
    shown = kind.simpleString().upper()
    if is_payload:
        if not isinstance(kind, (BinaryType, StringType, *NESTED)):
            raise SparkError(
                f"the column {field.name!r} is {shown}, but the payload is BINARY, STRING, ARRAY, STRUCT or MAP"
            )
    elif field.name in (SINK, BATCH, NUMBER):
        raise SparkError(f"the column {field.name!r} has the name of an attribute that the sink adds; rename it")
    elif field.name == _MAP and isinstance(kind, MapType):
        if not (isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)):
            raise SparkError(f"the column {field.name!r} is {shown}, but attributes in a map are MAP<STRING, STRING>")
    elif type(kind) not in (*ATTRIBUTES, *CONVERTED):
        way_out = "make it the payload, cast it" if isinstance(kind, NESTED) else "cast it"
        raise SparkError(
            f"the column {field.name!r} is {shown}, but an attribute is STRING, BOOLEAN, BIGINT, INT, SMALLINT, "
            f"TINYINT, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, DATE or DECIMAL; {way_out}, or leave it out"
        )
