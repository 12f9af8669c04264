"""The page on filters is correct: each row of its tables is evaluated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gapless.filters import FilterError, filter_hints, parse
from gapless.filters.covering import COMPARING_MAX, COMPARING_MIN, COMPARING_PART
from gapless.filters.lexer import TEXT_LENGTH_MAX
from gapless.filters.like_matcher import SEARCH_COST_MAX
from gapless.filters.normal_form import CONJUNCTIONS_MAX, CONSTRAINTS_MAX, NORMALISING_MAX, PARTS_MAX
from gapless.filters.parser import DEPTH_MAX, TERMS_MAX

PAGE = (Path(__file__).parents[2] / "docs" / "FILTERS.md").read_text(encoding="utf-8")


def rows(*heads: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        head, _, *body = (tuple(line[2:-2].split(" | ")) for line in table.splitlines())
        if head == heads:
            found += [tuple(re.sub("^`(.*)`$", r"\1", cell) for cell in row) for row in body]
    assert found
    return found


@pytest.mark.parametrize(("text", "event", "answer"), rows("filter", "event", "answer"))
def test_evaluation_of_a_filter(text: str, event: str, answer: str) -> None:
    assert parse(text).evaluate(json.loads(event)) is {"true": True, "false": False, "unknown": None}[answer]


@pytest.mark.parametrize(("text", "message"), rows("filter", "error"))
def test_refused_input(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(("text", "other", "covers", "overlaps"), rows("filter", "other", "covers", "overlaps"))
def test_filters_beside_filters(text: str, other: str, covers: str, overlaps: str) -> None:
    assert parse(text).covers(parse(other)) is (covers == "yes")
    assert parse(text).overlaps(parse(other)) is (overlaps == "yes")


def test_common_mistakes_get_a_hint() -> None:
    mistaken = {text for text, _, _ in rows("filter", "event", "answer") if filter_hints(text)}
    assert mistaken == {"order-id = 1", "a = b", 'name = "ABC"', "name = ABC", "name LIKE 'A*'"}


def test_the_bounds_are_those_of_the_code() -> None:
    bounds = {what: bound for what, bound, _ in rows("resource", "bound", "beyond it")}
    assert bounds["text"] == f"{TEXT_LENGTH_MAX:,} characters"
    assert bounds["names and constants"] == f"{TERMS_MAX:,}"
    assert bounds["nesting"] == f"{DEPTH_MAX} levels"
    assert next(bound for what, bound in bounds.items() if "cost of LIKE patterns" in what) == f"{SEARCH_COST_MAX:,}"
    sizes = f"{CONJUNCTIONS_MAX} conjunctions, {CONSTRAINTS_MAX:,} constraints"
    assert bounds["normal form"] == (
        f"{sizes}, {NORMALISING_MAX:,} steps for the whole filter, or else {PARTS_MAX:,} for its parts"
    )
    parts = f"{COMPARING_PART} for each part of the smaller filter"
    steps = f"{COMPARING_MIN} steps plus {parts}, at most {COMPARING_MAX:,}"
    assert bounds["one comparison of two filters"] == steps


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("NOT a = 1", {"a": "x"}, None),
        ("a = 017", {"a": 17}, True),
        ("7 / 2 = 3.5", {}, True),
        ("a IN (1, 2)", {"a": 2}, True),
        ("a != 1", {"a": 2}, True),
        ("JMSPriority > 3", {"JMSPriority": 4}, True),
    ],
)
def test_the_differences_from_selectors(text: str, event: dict[str, int | str], expected: bool | None) -> None:
    assert parse(text).evaluate(event) is expected


@pytest.mark.parametrize("text", ["", "a = 0x1F", "a = 1L", "a = 2.5f", "a = 1d", "a LIKE 'x!y' ESCAPE '!'"])
def test_selectors_that_filters_refuse(text: str) -> None:
    with pytest.raises(FilterError):
        parse(text)
