"""Events as columns: every value of every type, and values that do not fit."""

from datetime import UTC, datetime

import pytest
from pyspark.sql.types import StringType, StructType, VariantVal

from gapless.errors import SparkError
from gapless.events import Attributes, Event
from gapless_spark.stream.columns import Columns, default_schema

from .network import schema

POSITION = 1794843125287132
ODD: Attributes = {
    "text": "Grüße 😀", "empty": "", "long": "x" * 300, "int": -(2**63), "small": 5, "float": 2.5, "nan": float("nan"),
    "yes": True, "no": False, "größe": 1,
}  # fmt: skip


def test_every_event_has_these_columns() -> None:
    events = [Event("ann", 7, ODD, b"\x00any", POSITION), Event("bob", 1, {}, b"", POSITION + 1)]
    batch = Columns(default_schema(is_variant=False)).batch(events)
    batch.validate(full=True)
    first, second = batch.to_pylist()
    assert {name: first[name] for name in ("event_id", "publisher", "seq", "position", "payload")} == {
        "event_id": "ann:7", "publisher": "ann", "seq": 7, "position": f"p{POSITION}-7-ann", "payload": b"\x00any",
    }  # fmt: skip
    assert first["published_at"] == datetime.fromtimestamp(POSITION / 1e6, UTC)
    assert first["causal_rank"] == {"timestamp": POSITION, "publisher": "ann", "seq": 7}
    assert dict(first["attributes"]) == {
        "text": "Grüße 😀", "empty": "", "long": "x" * 300, "int": str(-(2**63)), "small": "5", "float": "2.5",
        "nan": "nan", "yes": "true", "no": "false", "größe": "1",
    }  # fmt: skip
    assert second["attributes"] == []


@pytest.mark.parametrize("count", [0, 1, 10, 300])
def test_a_variant_holds_every_value(count: int) -> None:
    attributes: Attributes = {f"name{number}": number * 0.5 for number in range(count)}
    attributes |= {name: value for name, value in ODD.items() if name != "nan"}
    batch = Columns(default_schema(is_variant=True)).batch([Event("ann", 1, attributes, b"", POSITION)])
    batch.validate(full=True)
    found = batch.to_pylist()[0]["attributes"]
    assert VariantVal(found["value"], found["metadata"]).toPython() == attributes


def test_missing_attributes_and_those_of_another_type_are_null_and_the_latter_are_counted() -> None:
    columns = Columns(schema(s="string", n="long", i="byte", d="double", b="boolean", misfits="integer", seq="long"))
    values: list[Attributes] = [
        {"s": "x", "n": 2**62, "i": -128, "d": 0.5, "b": True},
        {"d": 7},
        {"s": 1, "n": 1.0, "i": 128, "d": "1", "b": 0},
        {"n": True, "d": float("nan")},
    ]
    batch = columns.batch([Event("ann", number, value) for number, value in enumerate(values)])
    batch.validate(full=True)
    rows = [tuple(row.values()) for row in batch.to_pylist()]
    assert rows == [
        ("x", 2**62, -128, 0.5, True, 0, 0),
        (None, None, None, 7.0, None, 0, 1),
        (None, None, None, None, None, 5, 2),
        (None, None, None, None, None, 2, 3),
    ]
    assert columns.misfits == 7


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        (schema(raw="binary"), "the column 'raw' is BINARY, but an attribute is STRING, BOOLEAN, BIGINT"),
        (schema(position="long"), "the column 'position' is STRING, not BIGINT; an attribute of that name"),
        (
            StructType().add("n", "long", nullable=False),
            "the column 'n' is NOT NULL, but an event may lack that attribute",
        ),
        (StructType().add("s", StringType("UNICODE_CI")), "write STRING"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(columns: StructType, complaint: str) -> None:
    with pytest.raises(SparkError, match=complaint):
        Columns(columns)
