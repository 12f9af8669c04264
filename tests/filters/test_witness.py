"""A witness is an event that a filter matches; it helps to find the filters that cover the filter."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, FilterIndex, parse
from gapless.filters.syntax import Value
from tests.filters import generated


@pytest.mark.parametrize(
    ("text", "witness"),
    [
        ("a = 7 AND b = 'x'", {"a": 7, "b": "x"}),
        ("a < 3", {"a": 2.9999999999999996}),
        ("a BETWEEN 3 AND 5 OR b = 1", {"a": 3}),
        ("a <> ''", {"a": "~"}),
        ("a LIKE 'x_%y'", {"a": "x~y"}),
        ("a IS NULL", {}),
        ("NOT a", {"a": False}),
        ("TRUE", {}),
        ("FALSE", None),
        ("a = b AND a > 0", None),
    ],
)
def test_a_witness_matches_its_filter(text: str, witness: dict[str, Value] | None) -> None:
    assert parse(text).witness == witness
    assert witness is None or parse(text).matches(witness)


@given(st.lists(generated.filters, min_size=1, max_size=30), generated.filters)
@settings(max_examples=100)
def test_all_that_cover_a_filter_are_found_through_its_witness(wider: list[Filter], narrower: Filter) -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, pattern in enumerate(wider):
        index.add(key, pattern)
    found = index.may_cover(narrower)
    assert [key for key, pattern in enumerate(wider) if pattern.covers(narrower) and key not in found] == []
    assert found == sorted(found)


def test_most_filters_of_one_conjunction_have_a_witness() -> None:
    texts = ["a = 1", "a IN ('p', 'q') AND b > 2", "c LIKE 'it%' AND d IS NOT NULL", "NOT e = 5", "f >= 1 AND f < 2"]
    assert all(parse(text).witness is not None for text in texts)
