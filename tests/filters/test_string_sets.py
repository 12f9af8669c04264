"""String sets: the algebra against membership."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.like import Pattern
from gapless.filters.string_sets import (
    PATTERNS_MAX,
    StringSet,
    all_but,
    contains,
    disjoint,
    includes,
    intersection,
    is_empty,
    like,
    of_values,
    union,
)

WORDS = ["".join(letters) for length in range(6) for letters in product("xyz", repeat=length)]
some_words = st.frozensets(st.sampled_from(("", "x", "y", "xy", "xyx")), max_size=3)
sets: st.SearchStrategy[StringSet] = st.recursive(
    st.one_of(
        some_words.map(of_values),
        some_words.map(all_but),
        st.builds(like, st.text("xy%_", max_size=3).map(Pattern.parse), st.booleans()),
    ),
    lambda inner: st.builds(intersection, inner, inner),
    max_leaves=3,
)


@given(sets, sets)
@settings(max_examples=500, deadline=None)
def test_algebra(a: StringSet, b: StringSet) -> None:
    in_a, in_b = {w for w in WORDS if contains(a, w)}, {w for w in WORDS if contains(b, w)}
    assert {w for w in WORDS if contains(intersection(a, b), w)} == in_a & in_b
    assert is_empty(a) is (not in_a)
    assert includes(a, b) is (in_b <= in_a)
    assert disjoint(a, b) is (not in_a & in_b)
    both = union(a, b)
    if both is not None:
        assert {w for w in WORDS if contains(both, w)} == in_a | in_b


def test_beyond_the_bound_answers_are_safe() -> None:
    many = all_but(frozenset())
    for i in range(PATTERNS_MAX + 1):
        many = intersection(many, like(Pattern.parse(f"%{i:02}%"), True))
    nothing = intersection(many, like(Pattern.parse("x"), True))
    assert is_empty(nothing)
    never = intersection(many, like(Pattern.parse("%0%"), False))
    assert not is_empty(never)
    assert not disjoint(many, never)
    assert includes(many, many)
    assert not includes(many, of_values(frozenset(("x",))))
