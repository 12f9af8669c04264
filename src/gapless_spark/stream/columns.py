"""Events as columns of a query, made in batches of Arrow.

Every event has the standard columns with these names and types. A query with its own schema selects some of them, and
adds columns for attributes by their names. There, a missing attribute is null, and so is one of another type; the
column `misfits` counts the latter.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from gapless.errors import SparkError
from gapless.events import Event
from gapless_spark.stream.arrays import binaries, maps, numbers, strings, structs
from gapless_spark.stream.conversions import CONVERTED, typed
from gapless_spark.stream.variant import variant_of

__all__ = ["ATTRIBUTES", "STANDARD", "Columns", "default_schema"]

RANK = StructType(
    [StructField("timestamp", LongType()), StructField("publisher", StringType()), StructField("seq", LongType())]
)
"""The order of history, the same for all readers: effects after their causes."""

STANDARD: dict[str, DataType] = {
    "event_id": StringType(),
    "publisher": StringType(),
    "seq": LongType(),
    "position": StringType(),
    "published_at": TimestampType(),
    "attributes": MapType(StringType(), StringType()),
    "payload": BinaryType(),
    "causal_rank": RANK,
    "misfits": IntegerType(),
    "origin": StringType(),
}
"""Columns that are not attributes. `attributes` can be a VARIANT, too."""

ON_REQUEST = ("misfits", "origin")
"""Columns that exist only on request."""

ATTRIBUTES: dict[type[DataType], type] = {
    StringType: str, BooleanType: bool, ByteType: int, ShortType: int, IntegerType: int, LongType: int,
    FloatType: float, DoubleType: float,
}  # fmt: skip
"""The allowed types of attribute columns; for the converted ones see `conversions`."""

_INT_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}

Events: TypeAlias = Sequence[Event]


def default_schema(*, is_variant: bool) -> StructType:
    """Return the columns of a query without a schema of its own."""
    kinds = STANDARD | ({"attributes": VariantType()} if is_variant else {})
    return StructType([StructField(name, kind) for name, kind in kinds.items() if name not in ON_REQUEST])


class Columns:
    """Makes batches of one schema. Raises an error if the schema is not supported."""

    def __init__(self, schema: StructType, origin: str = "brokers") -> None:
        self._origin = origin
        for field in schema.fields:
            _check(field)
        self._arrow = to_arrow_schema(schema, timezone="UTC")
        self._kinds = {field.name: type(field.dataType) for field in schema.fields if field.name not in STANDARD}
        self.misfits = 0
        """The number of values so far that did not fit the type of their column."""

    def batch(self, events: Events) -> pa.RecordBatch:
        """Return a batch with one row for each event."""
        misfits = [0] * len(events)
        rows = _Rows(events)
        found = {
            field.name: _attribute(field, self._kinds[field.name], events, misfits)
            if field.name in self._kinds
            else _MAKERS[field.name](rows, field.type)
            for field in self._arrow
            if field.name not in ON_REQUEST
        }
        if "origin" in self._arrow.names:
            found["origin"] = strings([self._origin] * len(events), pa.string())
        if "misfits" in self._arrow.names:
            found["misfits"] = numbers(misfits, pa.int32())
        self.misfits += sum(misfits)
        return pa.RecordBatch.from_arrays([found[name] for name in self._arrow.names], schema=self._arrow)


def _check(field: StructField) -> None:
    standard = STANDARD.get(field.name)
    if standard is None:
        if type(field.dataType) not in (*ATTRIBUTES, *CONVERTED):
            raise SparkError(
                f"the column {field.name!r} is {_shown(field.dataType)}, but an attribute is STRING, BOOLEAN, BIGINT, "
                "INT, SMALLINT, TINYINT, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, DATE or DECIMAL"
            )
        if isinstance(field.dataType, StringType) and field.dataType != StringType():
            raise SparkError(f"the column {field.name!r} is {_shown(field.dataType)}; write STRING")
    elif field.dataType.simpleString() != standard.simpleString() and not (
        field.name == "attributes" and isinstance(field.dataType, VariantType)
    ):
        raise SparkError(
            f"the column {field.name!r} is {_shown(standard)}, not {_shown(field.dataType)}; an attribute of "
            "that name is in the column 'attributes'"
        )
    if not field.nullable and field.name not in STANDARD:
        raise SparkError(f"the column {field.name!r} is NOT NULL, but an event may lack that attribute")


def _shown(kind: DataType) -> str:
    return kind.simpleString().upper()


# ---- attributes ----------------------------------------------------------------------------------------------


def _attribute(field: pa.Field, kind: type[DataType], events: Events, misfits: list[int]) -> pa.Array:
    values: list[Any] = [event.attributes.get(field.name) for event in events]
    if kind in CONVERTED:
        return typed(values, field.type, misfits)
    fits = _test_of(kind)
    for row, value in enumerate(values):
        if value is not None and not fits(value):
            values[row] = None
            misfits[row] += 1
    return strings(values, field.type) if kind is StringType else numbers(values, field.type)


def _test_of(kind: type[DataType]) -> Callable[[Any], bool]:
    """Return whether a value fits: integers are numbers, and fit a DOUBLE, rounded; not-a-number fits nothing."""
    wanted = ATTRIBUTES[kind]
    if wanted is float:
        return lambda value: type(value) is int or (type(value) is float and value == value)
    if wanted is int:
        most = 2 ** (_INT_BITS[kind] - 1)
        return lambda value: type(value) is int and -most <= value < most
    return lambda value: type(value) is wanted


# ---- standard columns ----------------------------------------------------------------------------------------


class _Rows:
    """Intermediate values that several columns share, computed once."""

    def __init__(self, events: Events) -> None:
        self.events = events

    @cached_property
    def publishers(self) -> pa.Array:
        return strings([event.publisher for event in self.events], pa.string())

    @cached_property
    def numbers(self) -> pa.Array:
        return numbers([event.seq for event in self.events], pa.int64())

    @cached_property
    def stamps(self) -> pa.Array:
        return numbers([event.stamp for event in self.events], pa.int64())


def _attributes(rows: _Rows, kind: pa.DataType) -> pa.Array:
    found = [event.attributes for event in rows.events]
    if not pa.types.is_map(kind):
        made = [variant_of(attributes) for attributes in found]
        return structs([binaries([pair[place] for pair in made], pa.binary()) for place in range(2)], kind)
    values = [value if type(value) is str else _text(value) for attributes in found for value in attributes.values()]
    names = strings([name for attributes in found for name in attributes], pa.string())
    return maps(list(map(len, found)), names, strings(values, pa.string()), kind)


def _text(value: Any) -> str:
    """Return a value as JSON text, which SQL can read."""
    return ("true" if value else "false") if type(value) is bool else repr(value)


_MAKERS: dict[str, Callable[[_Rows, Any], pa.Array]] = {
    "event_id": lambda rows, kind: strings([f"{event.publisher}:{event.seq}" for event in rows.events], kind),
    "publisher": lambda rows, kind: rows.publishers,
    "seq": lambda rows, kind: rows.numbers,
    "position": lambda rows, kind: strings([str(event.position) for event in rows.events], kind),
    "published_at": lambda rows, kind: rows.stamps.view(kind),
    "attributes": _attributes,
    "payload": lambda rows, kind: binaries([event.payload for event in rows.events], kind),
    "causal_rank": lambda rows, kind: structs([rows.stamps, rows.publishers, rows.numbers], kind),
}
