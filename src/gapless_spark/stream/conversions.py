"""Conversions of column types that attributes do not have, for publishing and for reading.

| column | attribute |
| --- | --- |
| TIMESTAMP | text in UTC, with microseconds: `2026-11-16T10:32:00.000000Z` |
| TIMESTAMP_NTZ | the same text without the `Z` |
| DATE | text: `2026-11-16` |
| DECIMAL | the float with the same digits; refused if there is none |

These are the conversions of the client (`gapless.client.attribute_values`). A payload that is an ARRAY, a STRUCT or a
MAP becomes JSON.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, DataType, DateType, DecimalType, MapType, StructType, TimestampType
from pyspark.sql.types import TimestampNTZType as LocalTimestampType

from gapless.errors import SparkError
from gapless_spark.stream.arrays import numbers

__all__ = ["CONVERTED", "NESTED", "as_attribute", "as_payload", "typed"]

CONVERTED: tuple[type[DataType], ...] = (TimestampType, LocalTimestampType, DateType, DecimalType)
NESTED: tuple[type[DataType], ...] = (ArrayType, MapType, StructType)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT = "%Y-%m-%dT%H:%M:%S"


def as_attribute(name: str, column: pa.Array) -> pa.Array:
    """Return the column in the form in which it is published. Raise a `SparkError` if a value cannot be converted."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        shown = pc.strftime(pc.cast(column, pa.timestamp("us", kind.tz and "UTC")), _TEXT + ("Z" if kind.tz else ""))
        return pc.cast(shown, pa.string())
    if pa.types.is_date(kind):
        return pc.cast(pc.strftime(column, "%Y-%m-%d"), pa.string())
    if pa.types.is_decimal(kind):
        return numbers([_float(name, value) for value in column.to_pylist()], pa.float64())
    return column


def _float(name: str, value: Decimal | None) -> float | None:
    if value is None:
        return None
    found = float(value)  # Arrow truncates instead of rounding
    if Decimal(repr(found)) != value:
        raise SparkError(
            f"the column {name!r} has the value {value}, which no float represents exactly; round it, "
            "or cast the column to STRING, which filters compare as text"
        )
    return found


def as_payload(column: pa.Array) -> pa.Array:
    """Return the column as bytes: text encoded, and nested values as JSON."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_nested(column.type):
        pairs = pa.types.is_map(column.type)
        values = column.to_pylist()
        return pa.array([None if each is None else _json(dict(each) if pairs else each) for each in values])
    return column


_json = msgspec.json.Encoder(enc_hook=str).encode


def typed(values: list[Any], kind: pa.DataType, misfits: list[int]) -> pa.Array:
    """Return attributes as a column of such a type. A value that does not fit is null, and counted in its row."""
    convert, whole = _reader(kind)
    found: list[Any] = []
    for row, value in enumerate(values):
        try:
            found.append(None if value is None else convert(value))
        except (ValueError, TypeError, ArithmeticError):
            found.append(None)
            misfits[row] += 1
    return pa.array(found, kind) if whole is None else numbers(found, whole).view(kind)


def _reader(kind: pa.DataType) -> tuple[Callable[[Any], Any], pa.DataType | None]:
    """Return the conversion from an attribute, and the number type that Arrow uses for the result."""
    if pa.types.is_timestamp(kind):
        return (_instant if kind.tz else _local), pa.int64()
    if pa.types.is_date(kind):
        return (lambda value: (date.fromisoformat(value) - _EPOCH.date()).days), pa.int32()
    return (lambda value: _decimal(value, kind)), None


def _instant(value: Any) -> int:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("no zone")
    return _microseconds(moment)


def _local(value: Any) -> int:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        raise ValueError("a zone")
    return _microseconds(moment.replace(tzinfo=UTC))


def _microseconds(moment: datetime) -> int:
    passed = moment - _EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    """Return the digits of a number or of a text, if they fit without rounding."""
    if type(value) not in (int, float, str):
        raise TypeError
    found = Decimal(repr(value) if type(value) is float else value).normalize()
    _, digits, exponent = found.as_tuple()
    if not isinstance(exponent, int) or -exponent > kind.scale or len(digits) + exponent > kind.precision - kind.scale:
        raise ValueError("too many digits")
    return found
