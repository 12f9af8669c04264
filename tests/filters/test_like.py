"""LIKE patterns: reading, matching, and what patterns have in common."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters import oracle

from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern, PatternError, some_string

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
    assert Pattern.parse("a.b[c]*").matches("a.b[c]*")
    assert not Pattern.parse("a.b").matches("axb")


@given(patterns, st.text("xyz\n", max_size=5))
@settings(max_examples=1000)
def test_matches(pattern: Pattern, text: str) -> None:
    assert pattern.matches(text) is oracle.like(pattern.tokens, text)


@given(st.lists(patterns, max_size=2), st.lists(patterns, max_size=2))
@settings(max_examples=300, deadline=None)
def test_some_string(required: list[Pattern], forbidden: list[Pattern]) -> None:
    found = any(
        all(p.matches(word) for p in required) and not any(p.matches(word) for p in forbidden) for word in WORDS
    )
    assert some_string(required, forbidden) is found


def test_some_string_gives_up() -> None:
    hard = [Pattern.parse("%x" + "_" * length + "y%") for length in range(5, 25)]
    assert some_string([], hard) is not False
    assert some_string([Pattern.parse("x%"), *hard], [Pattern.parse("%x%")]) is not True
