"""Hints for filters that may not mean what their author expects."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, FilterError, attribute_hint, filter_hints, parse
from tests.filters import generated


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("order-id = 1", ["order-id is a subtraction here", 'write "order-id"']),
        ("a > 1 AND (x.y-z) < 3", ["x.y-z is a subtraction", 'write "x.y-z"']),
        ("a-b-c = 1 OR a-b-c = 2", ["a-b-c is a subtraction"]),
        ('name = "ABC"', ['"ABC" is the name of an attribute here', "write 'ABC'"]),
        ('"O\'Hara" <> "it\'s"', ["write 'it''s'"]),
        ("topic = price", ["price is the name of an attribute here", "write 'price'"]),
        ("amount > 1 AND NOT (topic != price)", ["price is the name of an attribute here"]),
        ("a = 1 OR topic <> price AND b = 2", ["write 'price'"]),
        ("name LIKE 'a*'", ["* is an ordinary character in a pattern", "write LIKE 'a%'"]),
        ("name NOT LIKE '*''s'", ["write LIKE '%''s'"]),
    ],
)
def test_filters_with_hints(text: str, words: list[str]) -> None:
    (hint,) = filter_hints(text)
    assert all(word in hint for word in words)


@pytest.mark.parametrize(
    "text",
    [
        "price < 10",
        "order - id = 1",
        "order-1 = 2",
        "1-a = 2",
        "1e5-a = 2",
        "a-(b) = 1",
        '"order-id" = 1',
        "name = 'order-id'",
        "name = 'it''s-a'",
        "name LIKE 'a-b'",
        "-a = 1",
        '"a-b" = 1 AND "c" > 2',
        "bid < ask",
        "total = price * amount",
        "a + b = c",
        "name = 'price'",
        "name LIKE 'a%*'",
        "name LIKE 'a%'",
    ],
)
def test_a_correct_filter_has_no_hint(text: str) -> None:
    assert parse(text)
    assert filter_hints(text) == []


@pytest.mark.parametrize("name", generated.QUOTED)
def test_names_that_need_quotes(name: str) -> None:
    hint = attribute_hint(name)
    assert hint is not None
    assert ("subtraction" in hint) is (name == "order-id")
    assert parse(hint[hint.index(', "') + 2 :].removesuffix(": without them it is a subtraction")).matches({name: True})


@pytest.mark.parametrize("name", ["price", "sensor.temp", "_x", "order.in", "été"])
def test_names_that_need_none(name: str) -> None:
    assert attribute_hint(name) is None


@given(generated.filters)
@settings(max_examples=100)
def test_without_hyphens_and_quotes_only_comparisons_of_two_attributes_and_stars_get_hints(filter_: Filter) -> None:
    assert not any("subtraction" in hint or hint.startswith('"') for hint in filter_hints(filter_.text))


@given(st.text(st.sampled_from("ab1 .'\"()=<>-LIKE"), max_size=20))
@settings(max_examples=300)
def test_every_filter_that_can_be_read_can_be_hinted_at(text: str) -> None:
    try:
        parse(text)
    except FilterError:
        return
    assert all(isinstance(hint, str) for hint in filter_hints(text))
