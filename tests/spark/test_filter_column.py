"""A filter as a Spark column gives the same results as our evaluator, for generated filters and events."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from gapless.errors import FilterError
from gapless.filters import Filter, parse
from gapless.filters.names import render_name
from gapless.trace import attributes_to_text
from gapless_spark.filter_column import column_over_frame, column_over_json
from tests.filters import generated
from tests.filters.test_evaluation import test_value as by_hand

EXAMPLES = 40
COLUMNS_PER_QUERY = 40

BY_HAND: list[tuple[str, dict[str, Any], bool | None]] = [*by_hand.pytestmark[0].args[1]]


@pytest.fixture(scope="module", autouse=True)
def compiled(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    yield
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")


def drawn() -> tuple[list[Filter], list[dict[str, Any]]]:
    filters: dict[str, Filter] = {}
    events: list[dict[str, Any]] = []

    @settings(max_examples=EXAMPLES, phases=[Phase.generate], derandomize=True, database=None)
    @given(generated.filters, generated.events)
    def collect(filter_: Filter, event: dict[str, Any]) -> None:
        filters[filter_.text] = filter_
        events.append(event)

    collect()
    return list(filters.values()), events


def answers(frame: DataFrame, filters: Sequence[Filter], column: Callable[[Filter], Column]) -> list[list[bool | None]]:
    found: list[list[bool | None]] = []
    for first in range(0, len(filters), COLUMNS_PER_QUERY):
        part = filters[first : first + COLUMNS_PER_QUERY]
        columns = [column(filter_).alias(f"f{number}") for number, filter_ in enumerate(part)]
        table = frame.select("row", *columns).orderBy("row").toArrow()
        found += [table.column(name).to_pylist() for name in table.column_names[1:]]
    return found


def assert_same(
    found: Sequence[Sequence[bool | None]], filters: Sequence[Filter], events: Sequence[dict[str, Any]]
) -> None:
    for filter_, said in zip(filters, found, strict=True):
        for event, answer in zip(events, said, strict=True):
            assert answer is filter_.evaluate(event), f"{filter_.text} of {event}"


def json_frame(spark: SparkSession, texts: Sequence[str]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(texts)), "row int, attributes string")


@pytest.mark.slow
def test_over_json_text(spark: SparkSession) -> None:
    filters, events = drawn()
    frame = json_frame(spark, [attributes_to_text(event) for event in events])
    found = answers(frame, filters, lambda filter_: column_over_json(filter_, F.col("attributes")))
    assert_same(found, filters, events)
    flat = [answer for said in found for answer in said]
    assert min(flat.count(value) for value in (True, False, None)) > 100


@pytest.mark.slow
def test_over_json_text_by_hand(spark: SparkSession) -> None:
    texts = list(dict.fromkeys(json.dumps(attributes) for _, attributes, _ in BY_HAND))
    filters = [parse(text) for text in dict.fromkeys(text for text, _, _ in BY_HAND)]
    frame = json_frame(spark, texts)
    found = answers(frame, filters, lambda filter_: column_over_json(filter_, F.col("attributes")))
    said = {
        (filter_.text, text): answer
        for filter_, row in zip(filters, found, strict=True)
        for text, answer in zip(texts, row, strict=True)
    }
    for text, attributes, expected in BY_HAND:
        assert said[text, json.dumps(attributes)] is expected, f"{text} of {attributes}"


TYPES: dict[str, type] = {"string": str, "bigint": int, "double": float, "boolean": bool}


@pytest.mark.parametrize("turn", [0, *(pytest.param(turn, marks=pytest.mark.slow) for turn in (1, 2, 3))])
def test_over_typed_columns(spark: SparkSession, turn: int) -> None:
    draw = random.Random(turn)
    kinds = [list(TYPES)[(turn + place) % 4] for place in range(len(generated.NAMES))]
    rows = []
    for number in range(60):
        worlds = [[value for value in generated.WORLD if type(value) is TYPES[kind]] for kind in kinds]
        rows.append((number, *(draw.choice([None, *world]) for world in worlds)))
    named = ", ".join(f"`{name}` {kind}" for name, kind in zip(generated.NAMES, kinds, strict=True))
    frame = spark.createDataFrame(rows, f"row int, {named}")
    filters = drawn()[0][turn::4]
    found = answers(frame, filters, lambda filter_: column_over_frame(filter_, frame))
    events = [
        {name: value for name, value in zip(generated.NAMES, row[1:], strict=True) if value is not None} for row in rows
    ]
    assert_same(found, filters, events)


def test_a_deep_filter_is_no_large_column(spark: SparkSession) -> None:
    frame = spark.range(3)
    deep = parse(" + ".join(["id"] * 24) + " = 24 AND " + "-(" * 12 + "id" + ")" * 12 + " = 1")
    assert [row["id"] for row in frame.where(column_over_frame(deep, frame)).collect()] == [1]


def test_a_column_that_is_not_there_is_missing(spark: SparkSession) -> None:
    frame = spark.range(1)
    missing = frame.select(column_over_frame(parse("nobody IS NULL AND id >= 0"), frame).alias("is"))
    assert missing.collect()[0]["is"] is True


def test_names_in_double_quotes_are_columns(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(range(len(generated.QUOTED)))], list(generated.QUOTED))
    filters = [parse(f"{render_name(name)} = {value}") for value, name in enumerate(generated.QUOTED)]
    found = frame.select(*(column_over_frame(filter_, frame).alias(f"f{i}") for i, filter_ in enumerate(filters)))
    assert list(found.collect()[0]) == [True] * len(filters)


def test_names_in_double_quotes_are_attributes(spark: SparkSession) -> None:
    text = json.dumps({name: value for value, name in enumerate(generated.QUOTED)})
    frame = json_frame(spark, [text, "{}"])
    filters = [parse(f"{render_name(name)} = {value}") for value, name in enumerate(generated.QUOTED)]
    found = answers(frame, filters, lambda filter_: column_over_json(filter_, F.col("attributes")))
    assert found == [[True, None]] * len(filters)


def test_small_numbers_are_numbers_too(spark: SparkSession) -> None:
    frame = spark.sql("SELECT 7 AS i, CAST(1.5 AS FLOAT) AS f, 2.50 AS d, CAST(3 AS SMALLINT) AS s")
    test = parse("i = 7 AND f = 1.5 AND d = 2.5 AND s * 2 = 6.0 AND i / 2 = 3.5")
    assert frame.where(column_over_frame(test, frame)).count() == 1


def test_a_column_of_a_type_that_filters_do_not_know_is_refused(spark: SparkSession) -> None:
    frame = spark.sql("SELECT now() AS moment")
    with pytest.raises(FilterError, match="column moment is of type timestamp"):
        column_over_frame(parse("moment > 3"), frame)
