"""Brokers return every row that Spark would keep, and no other row where Spark does not check again."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from pyspark.sql import datasource as ds

from gapless.events import Attributes, Event
from gapless.filters import parse
from gapless_spark.stream.columns import Columns
from gapless_spark.stream.pushdown import Pushdown

from .network import schema

SCHEMA = schema(s="string", n="long", d="double", f="float", b="boolean", position="string", published_at="timestamp")
VALUES: list[Any] = [
    None, "", "abc", "a%c", "a_c", "a!c", "it's", "5", 0, 5, -5, 2**53, 2**53 + 1, 2**62, 0.0, -0.0, 5.0, 5.5, -5.5,
    1e300, float(2**53), float("inf"), float("nan"), True, False,
]  # fmt: skip
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": lambda value, bound: value == bound,
    "LessThan": lambda value, bound: value < bound,
    "LessThanOrEqual": lambda value, bound: value <= bound,
    "GreaterThan": lambda value, bound: value > bound,
    "GreaterThanOrEqual": lambda value, bound: value >= bound,
    "StringStartsWith": lambda value, bound: value.startswith(bound),
    "StringEndsWith": lambda value, bound: value.endswith(bound),
    "StringContains": lambda value, bound: bound in value,
}
BOUNDS: dict[str, list[Any]] = {
    "s": ["", "abc", "a%c", "a_", "!", "it's"],
    "n": [0, 5, -5, 2**53, 2**62],
    "d": [0.0, 5.0, 5.5, 1e300, float(2**53), float("inf"), float("nan")],
    "f": [5.5],
    "b": [True, False],
}


def conditions() -> list[ds.Filter]:
    made: list[ds.Filter] = []
    for column, bounds in BOUNDS.items():
        kinds = [kind for kind in COMPARED if column == "s" or not kind.startswith("String")]
        made += [getattr(ds, kind)((column,), bound) for kind, bound in product(kinds, bounds)]
        made += [ds.In((column,), tuple(bounds)), ds.In((column,), tuple(bounds[:2]))]
    made += [ds.Not(condition) for condition in made]
    return made + [kind((column,)) for kind in (ds.IsNull, ds.IsNotNull) for column in BOUNDS]


def keeps(condition: Any, row: dict[str, Any]) -> bool | None:
    if isinstance(condition, ds.Not):
        inner = keeps(condition.child, row)
        return None if inner is None else not inner
    value = row[condition.attribute[0]]
    if isinstance(condition, ds.IsNull | ds.IsNotNull):
        return (value is None) == isinstance(condition, ds.IsNull)
    if value is None:
        return None
    if isinstance(condition, ds.In):
        return value in condition.value
    bound = condition.value
    if bound != bound:  # Spark treats NaN as larger than all numbers
        return isinstance(condition, ds.LessThan | ds.LessThanOrEqual)
    return COMPARED[type(condition).__name__](value, bound)


def test_brokers_let_through_what_spark_keeps() -> None:
    kinds: list[Attributes] = [{} if value is None else {name: value} for name in BOUNDS for value in VALUES]
    events = [Event("ann", seq, attributes, stamp=1) for seq, attributes in enumerate(kinds, 1)]
    rows = Columns(SCHEMA).batch(events).to_pylist()
    handled = set()
    for condition in conditions():
        pushdown = Pushdown(SCHEMA)
        is_exact = pushdown.take(condition)
        passes = parse(pushdown.filter("TRUE"))
        for event, row in zip(events, rows, strict=True):
            kept, passed = keeps(condition, row) is True, passes.matches(event.attributes)
            assert passed or not kept, (condition, event.attributes)
            assert kept or not passed or not is_exact, (condition, event.attributes)
        if is_exact:
            handled.add((type(condition).__name__, getattr(condition, "attribute", ("",))[0]))
    assert handled >= {("EqualTo", "s"), ("GreaterThan", "d"), ("EqualTo", "b"), ("In", "s"), ("StringContains", "s")}
    assert handled >= {(each, "s") for each in COMPARED if not each.startswith("String")}
    assert not any(column in ("n", "f") for _, column in handled)


def at_us(stamp: int) -> datetime:
    return datetime(1970, 1, 1, 0, 0, 0, stamp, UTC)


@pytest.mark.parametrize(
    ("condition", "since", "until"),
    [
        (ds.GreaterThan(("published_at",), at_us(7)), 7, None),
        (ds.GreaterThanOrEqual(("published_at",), at_us(7)), 6, None),
        (ds.LessThan(("published_at",), at_us(7)), 0, 6),
        (ds.EqualTo(("published_at",), at_us(7)), 6, 7),
        (ds.LessThanOrEqual(("published_at",), datetime(2026, 11, 16, 10, 0, 0, 5, UTC)), 0, 1794823200000005),
    ],
)
def test_conditions_on_times_narrow_the_range(condition: ds.Filter, since: int, until: int) -> None:
    pushdown = Pushdown(SCHEMA)
    assert pushdown.take(condition)
    assert (pushdown.since, pushdown.until) == (since, until)
    assert pushdown.filter("a = 1") == "a = 1"


def test_other_conditions_are_left_to_spark() -> None:
    pushdown = Pushdown(SCHEMA)
    attributes: Attributes = {"s": "x" * 70_000}
    for condition in (
        ds.EqualTo(("elsewhere",), 1), ds.EqualTo(("s", "t"), 1), ds.Not(ds.EqualTo(("published_at",), 1)),
        ds.GreaterThan(("position",), "p7"),
        ds.EqualNullSafe(("s",), None), ds.EqualTo(("s",), attributes["s"]),
    ):  # fmt: skip
        assert not pushdown.take(condition)
    assert pushdown.filter("TRUE") == "TRUE"
