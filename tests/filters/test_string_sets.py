"""String sets: set operations compared with membership."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.like import Pattern
from gapless.filters.string_sets import (
    PATTERNS_MAX,
    StringSet,
    all_but,
    compared,
    difference,
    disjoint,
    includes,
    intersection,
    is_empty,
    like,
    members,
    of_values,
    union,
)
from gapless.filters.work import Work

WORDS = ["".join(letters) for length in range(6) for letters in product("\0xyz", repeat=length)]
some_words = st.frozensets(st.sampled_from(("", "x", "y", "xy", "xyx")), max_size=3)
sets: st.SearchStrategy[StringSet] = st.recursive(
    st.one_of(
        some_words.map(of_values),
        some_words.map(all_but),
        st.builds(like, st.text("xy%_", max_size=3).map(Pattern.parse), st.booleans()),
        st.builds(compared, st.sampled_from(("<", "<=", ">", ">=")), st.sampled_from(("", "x", "xy", "y"))),
    ),
    lambda inner: st.builds(lambda a, b: intersection(a, b, plenty()), inner, inner),
    max_leaves=3,
)


def plenty() -> Work:
    return Work(10**9)


def words(strings: StringSet) -> frozenset[str]:
    return members(WORDS, strings, plenty())


@given(sets, sets)
@settings(max_examples=250)
def test_algebra(a: StringSet, b: StringSet) -> None:
    in_a, in_b = words(a), words(b)
    assert words(intersection(a, b, plenty())) == in_a & in_b
    assert is_empty(a, plenty()) is (not in_a)
    assert includes(a, b, plenty()) is (in_b <= in_a)
    assert disjoint(a, b, plenty()) is (not in_a & in_b)
    left_over = difference(a, b, plenty())
    assert frozenset().union(*map(words, left_over)) == in_a - in_b
    assert not any(is_empty(part, plenty()) for part in left_over)
    both = union(a, b, plenty())
    if both is not None:
        assert words(both) == in_a | in_b


def many_likes(count: int) -> StringSet:
    many = all_but(frozenset())
    for i in range(count):
        many = intersection(many, like(Pattern.parse(f"%{i:02}%"), True), plenty())
    return many


def test_beyond_the_bound_the_first_patterns_count() -> None:
    many = many_likes(PATTERNS_MAX + 1)
    assert is_empty(intersection(many, like(Pattern.parse("x"), True), plenty()), plenty())
    assert is_empty(intersection(many, like(Pattern.parse("%00%"), False), plenty()), plenty())
    never = intersection(many, like(Pattern.parse(f"%{PATTERNS_MAX}%"), False), plenty())
    assert not is_empty(never, plenty())
    assert not disjoint(many, never, plenty())
    assert includes(many, many, plenty())
    assert not includes(many, of_values(frozenset(("x",))), plenty())


def test_many_excluded_strings_hide_no_prefix() -> None:
    wide, narrow = like(Pattern.parse("x%"), True), like(Pattern.parse("xy%"), True)
    excluded = all_but(frozenset(f"xy{i}" for i in range(40)))
    assert includes(wide, intersection(narrow, excluded, plenty()), plenty())
    assert includes(wide, intersection(like(Pattern.parse("x%y"), True), excluded, plenty()), plenty())
    assert not includes(narrow, intersection(wide, excluded, plenty()), plenty())


patterned = st.text("xy%_", max_size=4).map(Pattern.parse).filter(lambda pattern: pattern.literal is None)


@pytest.mark.slow
@given(patterned, patterned, some_words)
@settings(max_examples=400)
def test_one_pattern_in_another(a: Pattern, b: Pattern, excluded: frozenset[str]) -> None:
    wide, narrow = like(a, True), intersection(like(b, True), all_but(excluded), plenty())
    assert includes(wide, narrow, plenty()) is (words(narrow) <= words(wide))
