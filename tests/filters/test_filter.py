"""A filter as a value, and the public names."""

from __future__ import annotations

import doctest
import pickle

import gapless.filters
from gapless.filters import FilterError, parse


def test_equal_by_text() -> None:
    assert parse("a = 1") == parse("a = 1")
    assert parse("a = 1") != parse("a  = 1")
    assert parse("a = 1") != "a = 1"
    assert len({parse("a = 1"), parse("a = 1"), parse("b")}) == 2


def test_travels_by_pickle() -> None:
    filter_ = parse("a > 1 AND b LIKE 'x%'")
    assert filter_.matches({"a": 2, "b": "xy"})
    copy = pickle.loads(pickle.dumps(filter_))
    assert copy == filter_
    assert copy.matches({"a": 2, "b": "xy"})


def test_errors_travel_by_pickle() -> None:
    error = FilterError("wrong", "a b", 2)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_true_matches_everything() -> None:
    assert parse("TRUE").matches({})
    assert parse("TRUE").covers(parse("a + b > 3"))
    assert not parse("FALSE").overlaps(parse("TRUE"))


def test_examples() -> None:
    assert doctest.testmod(gapless.filters).failed == 0


def test_public_names() -> None:
    assert gapless.filters.__all__ == [
        "Filter",
        "FilterError",
        "FilterIndex",
        "attribute_hint",
        "filter_hints",
        "parse",
    ]
