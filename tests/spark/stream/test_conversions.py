"""Columns of types that no attribute has are published as the client publishes such values, and read again."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DecimalType, LongType, StructType

from gapless.client.attribute_values import plain_attributes
from gapless.errors import SparkError
from gapless.events import Attributes, Event
from gapless_spark.stream.columns import Columns
from gapless_spark.stream.layout import Layout

from .network import schema

COLUMNS = schema(at="timestamp", local="timestamp_ntz", day="date").add("sum", DecimalType(30, 4)).add("n", "long")
KINDS = {"at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": pa.date32(), "sum": pa.decimal128(30, 4)}
VALUES: list[dict[str, Any]] = [
    {"at": datetime(2026, 11, 16, 10, 32, tzinfo=UTC), "local": datetime(2026, 11, 16, 10, 32, 0, 7),
     "day": date(2026, 11, 16), "sum": Decimal("12.5000"), "n": 1},
    {"at": datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "local": datetime(1969, 1, 1),
     "day": date(1969, 12, 31), "sum": Decimal("-123456789012.3400"), "n": 2},
    {"at": None, "local": None, "day": None, "sum": None, "n": 3},
]  # fmt: skip


def batch_of(values: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(values, pa.schema([*KINDS.items(), ("n", pa.int64())]))


def test_values_are_published_as_by_the_client_and_read_as_they_were() -> None:
    layout = Layout(COLUMNS, "payload")
    published = [attributes for attributes, _ in layout.events(layout.plain(batch_of(VALUES)), "sink", "run/0", 0)]
    own = {"sink.id": "sink", "sink.batch": "run/0"}
    for place, (values, found) in enumerate(zip(VALUES, published, strict=True)):
        expected = {name: value for name, value in values.items() if value is not None}
        assert found == plain_attributes(expected) | own | {"sink.n": place}
    read = Columns(COLUMNS).batch([Event("ann", 1 + n, each) for n, each in enumerate(published)])
    read.validate(full=True)
    assert read.to_pylist() == VALUES


def test_invalid_values_are_null_and_counted() -> None:
    columns = Columns(COLUMNS.add("misfits", "integer"))
    wrong: Attributes = {
        "at": "2026-11-16T10:32:00",
        "local": "2026-11-16T10:32:00Z",
        "day": "yesterday",
        "sum": 0.12345,
        "n": 4,
    }
    (row,) = columns.batch([Event("ann", 1, wrong)]).to_pylist()
    assert row == {"at": None, "local": None, "day": None, "sum": None, "n": 4, "misfits": 4}


def test_a_decimal_without_a_float_of_the_same_digits_is_refused() -> None:
    layout = Layout(COLUMNS, "payload")
    with pytest.raises(SparkError, match=r"'sum' has the value 12345678901234567890\.1234, which no float represents"):
        layout.plain(batch_of([VALUES[0] | {"sum": Decimal("12345678901234567890.1234")}]))


@pytest.mark.parametrize(
    ("kind", "arrow", "value"),
    [
        (ArrayType(LongType()), pa.list_(pa.int64()), [1, 2]),
        (StructType().add("a", "long"), pa.struct({"a": pa.int64()}), {"a": 7}),
    ],
)
def test_a_nested_payload_becomes_json(kind: Any, arrow: pa.DataType, value: Any) -> None:
    layout = Layout(StructType().add("payload", kind), "payload")
    given = pa.RecordBatch.from_arrays([pa.array([value, None], arrow)], ["payload"])
    payloads = [payload for _, payload in layout.events(layout.plain(given), "sink", "run/0", 0)]
    assert [msgspec.json.decode(payloads[0]), payloads[1]] == [value, b""]
