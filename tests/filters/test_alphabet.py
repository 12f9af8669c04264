"""Codes: a bucket that a set covers in full holds only members, one that it does not touch holds none."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.alphabet import (
    ABSENT,
    CUTS_MAX,
    FALSE,
    FIRST_STRING,
    NAN,
    OTHER_STRING,
    STRINGS_MAX,
    TRUE,
    Alphabet,
    choose_cuts,
    runs,
)
from gapless.filters.number_sets import NumberSet, contains
from tests.filters.test_number_sets import numbers, sets

few_numbers = st.one_of(st.integers(0, 20), st.integers(0, 40).map(lambda half: half / 2))


@st.composite
def scattered(draw: st.DrawFn) -> NumberSet:
    """A few intervals with gaps between them."""
    bounds = sorted(draw(st.sets(few_numbers, min_size=2, max_size=8)))
    return tuple(zip(bounds[::2], bounds[1::2], strict=False))


@given(st.lists(few_numbers, max_size=6), st.one_of(sets, scattered()), st.lists(st.one_of(numbers, few_numbers)))
@settings(max_examples=250)
def test_runs(cuts: list[int | float], number_set: NumberSet, values: list[int | float]) -> None:
    alphabet = Alphabet()
    alphabet.cuts = sorted(set(cuts))
    found = runs(number_set, alphabet.cuts)
    touched = [code for first, after, _ in found for code in range(first, after)]
    doubtful = {code for _, _, doubts in found for code in doubts}
    assert touched == sorted(set(touched))
    assert doubtful <= set(touched)
    for value in (*values, *(bound for interval in number_set for bound in interval)):
        code = alphabet.code(value)
        assert alphabet.codes([value]) == [code]
        if code not in doubtful:
            assert contains(number_set, value) is (code in touched)


def test_states() -> None:
    alphabet = Alphabet()
    values = [None, [1], math.nan, False, True, "x"]
    assert [alphabet.code(value) for value in values] == [ABSENT, ABSENT, NAN, FALSE, TRUE, OTHER_STRING]
    assert alphabet.codes(values) == [ABSENT, ABSENT, NAN, FALSE, TRUE, OTHER_STRING]


def test_cuts_are_the_bounds_while_they_are_few() -> None:
    cuts = choose_cuts([((1, 2),), ((1, math.inf),), ((-math.inf, 5),)])
    assert cuts == [1, math.nextafter(2, 3), math.nextafter(5, 6)]


def test_frequent_bounds_become_cuts() -> None:
    rare: list[NumberSet] = [((i, math.inf),) for i in range(1000)]
    frequent: list[NumberSet] = [((500.5, math.inf),)] * 100
    cuts = choose_cuts(rare + frequent)
    assert len(cuts) <= CUTS_MAX
    assert 500.5 in cuts


def test_strings_are_listed_while_named() -> None:
    alphabet = Alphabet()
    assert alphabet.name(["y", "x"]) == [FIRST_STRING, FIRST_STRING + 1]
    assert alphabet.name(["x"]) == []
    alphabet.forget(["x", "y"])
    assert alphabet.code("y") == OTHER_STRING
    assert alphabet.code("x") != OTHER_STRING
    freed = FIRST_STRING + 1
    assert alphabet.name(["z"]) == [freed]
    assert {alphabet.code("x"), alphabet.code("z")} == {FIRST_STRING, freed}


def test_strings_beyond_the_bound_are_not_listed() -> None:
    alphabet = Alphabet()
    alphabet.name(str(i) for i in range(STRINGS_MAX + 5))
    assert len(alphabet.strings) == STRINGS_MAX
    assert alphabet.size == FIRST_STRING + STRINGS_MAX
