"""LIKE patterns: reading, matching, and what patterns have in common."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern, PatternError
from gapless.filters.like_matcher import SEARCH_COST_MAX, matcher, search_cost
from gapless.filters.some_string import some_string
from gapless.filters.work import Work
from tests.filters import oracle

patterns = st.text("xy%_", max_size=4).map(Pattern.parse)
WORDS = ["".join(letters) for length in range(7) for letters in product("xyz", repeat=length)]


def test_tokens() -> None:
    assert Pattern.parse("a%_!%b", "!").tokens == ("a", ANY_ONE, ANY_RUN, "%", "b")
    assert Pattern.parse("%%").matches_everything
    assert Pattern.parse("a!_", "!").literal == "a_"
    assert Pattern.parse("a_").literal is None
    assert Pattern.parse("%_%_") == Pattern.parse("__%")


@pytest.mark.parametrize(("text", "offset"), [("!", 0), ("a!b", 1), ("%!", 1)])
def test_misplaced_escape(text: str, offset: int) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern.parse(text, "!")
    assert caught.value.offset == offset


def test_special_characters_are_themselves() -> None:
    assert matcher(Pattern.parse("a.b[c]*"))("a.b[c]*")
    assert not matcher(Pattern.parse("a.b"))("axb")
    assert matcher(Pattern.parse("%.b_*%"))("a.bx*")
    assert not matcher(Pattern.parse("%.b_*%"))("axbxx")


@given(st.text("xy%_", max_size=9).map(Pattern.parse), st.text("xyz\n", max_size=9))
@settings(max_examples=800)
def test_matches(pattern: Pattern, text: str) -> None:
    assert matcher(pattern)(text) is oracle.like(pattern.tokens, text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("%/%/%/%/%/z", "http://" + "a/" * 220, False),
        ("%error%timeout%db%", "error timeout " * 1500, False),
        ("%a" * 9 + "%b", "a" * 40, False),
        ("%a" * 500 + "%b", "a" * 60_000, False),
        ("%a" * 500 + "%", "a" * 60_000, True),
        ("%a_" * 100 + "%b", "a" * 60_000, False),
        ("%" + "a_" * 60 + "b%", "a" * 60_000, False),
        ("a_" * 15_000 + "%", "a" * 60_000, True),
        ("%" + "_a" * 15_000, "a" * 60_000, True),
        ("%a%" + "_" * 30_000, "a" * 60_000, True),
        ("%" + "a" * 1000 + "b%", "a" * 60_000, False),
    ],
)
def test_no_pattern_goes_back(pattern: str, text: str, expected: bool) -> None:
    """A matcher that tried every combination would not finish on these patterns."""
    assert matcher(Pattern.parse(pattern))(text) is expected


def test_the_cost_of_a_search_counts_what_has_to_be_looked_for() -> None:
    assert [search_cost(Pattern.parse(text)) for text in ("abc%", "%abc", "a%c", "a_c", "%", "_%_")] == [0] * 6
    assert search_cost(Pattern.parse("%abc%")) == 4 + 3
    assert search_cost(Pattern.parse("x%abc__%d%y")) == 4 + 3 + 1
    assert search_cost(Pattern.parse("%a_c%")) == 4 + 3 * 8
    assert search_cost(Pattern.parse("%" + "a" * 3000 + "%")) > SEARCH_COST_MAX


@given(st.lists(patterns, max_size=2), st.lists(patterns, max_size=2))
@settings(max_examples=300)
def test_some_string(required: list[Pattern], forbidden: list[Pattern]) -> None:
    musts, must_nots = [matcher(p) for p in required], [matcher(p) for p in forbidden]
    found = any(all(m(word) for m in musts) and not any(m(word) for m in must_nots) for word in WORDS)
    assert some_string(required, forbidden, Work(10**9)) is found


def test_some_string_gives_up() -> None:
    hard = [Pattern.parse("%x" + "_" * length + "y%") for length in range(5, 25)]
    work = Work(10**9)
    assert some_string([], hard, work) is not False
    assert some_string([Pattern.parse("x%"), *hard], [Pattern.parse("%x%")], work) is not True
    assert some_string([Pattern.parse("x" * 5000 + "%")], [Pattern.parse("y%")], work) is None
    assert 10**9 - work.left < 50_000
