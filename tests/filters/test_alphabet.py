"""Codes: a bucket that a set covers completely has only members, and an untouched bucket has none."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.alphabet import (
    ABSENT,
    CUTS_MAX,
    FALSE,
    FIRST_NUMBER,
    FIRST_STRING,
    NAN,
    OTHER_STRING,
    STRINGS_MAX,
    TRUE,
    Alphabet,
    choose_cuts,
    ends,
    number_intervals,
    runs,
    string_intervals,
)
from gapless.filters.number_sets import Number, NumberSet, contains
from gapless.filters.string_sets import StringSet
from tests.filters.test_number_sets import numbers, sets

few_numbers = st.one_of(st.integers(0, 20), st.integers(0, 40).map(lambda half: half / 2))


@st.composite
def scattered(draw: st.DrawFn) -> NumberSet:
    bounds = sorted(draw(st.sets(few_numbers, min_size=2, max_size=8)))
    return tuple(zip(bounds[::2], bounds[1::2], strict=False))


@given(st.lists(few_numbers, max_size=6), st.one_of(sets, scattered()), st.lists(st.one_of(numbers, few_numbers)))
@settings(max_examples=250)
def test_runs(cuts: list[int | float], number_set: NumberSet, values: list[int | float]) -> None:
    alphabet = Alphabet()
    alphabet.cuts = sorted(set(cuts))
    found = runs(number_intervals(number_set), alphabet.cuts, FIRST_NUMBER)
    touched = [code for first, after, _ in found for code in range(first, after)]
    doubtful = {code for _, _, doubts in found for code in doubts}
    assert touched == sorted(set(touched))
    assert doubtful <= set(touched)
    for value in (*values, *(bound for interval in number_set for bound in interval)):
        code = alphabet.code(value)
        assert alphabet.codes([value]) == [code]
        if code not in doubtful:
            assert contains(number_set, value) is (code in touched)


def bounds(number_sets: list[NumberSet]) -> list[Number]:
    return [end for each in number_sets for end in ends(number_intervals(each))]


def test_states() -> None:
    alphabet = Alphabet()
    values = [None, [1], math.nan, False, True, "x"]
    assert [alphabet.code(value) for value in values] == [ABSENT, ABSENT, NAN, FALSE, TRUE, OTHER_STRING]
    assert alphabet.codes(values) == [ABSENT, ABSENT, NAN, FALSE, TRUE, OTHER_STRING]


def test_strings_that_are_not_listed_are_in_buckets() -> None:
    alphabet = Alphabet()
    alphabet.string_cuts = ["b", "d"]
    alphabet.name(["c"])
    values = ["", "a", "b", "bz", "c", "d", "z"]
    codes = [OTHER_STRING + n for n in (0, 0, 1, 1)] + [FIRST_STRING, OTHER_STRING + 2, OTHER_STRING + 2]
    assert [alphabet.code(value) for value in values] == alphabet.codes(values) == codes


STRING_BOUNDS = st.one_of(st.none(), st.text("ab", min_size=1, max_size=3))


@given(st.lists(st.text("ab", min_size=1, max_size=3)), STRING_BOUNDS, STRING_BOUNDS, st.text("ab", max_size=4))
def test_a_range_of_strings_covers_buckets(cuts: list[str], low: str | None, high: str | None, value: str) -> None:
    alphabet = Alphabet()
    alphabet.string_cuts = sorted(set(cuts))
    strings = StringSet(complement=True, low=low or "", high=high)
    found = runs(string_intervals(strings), alphabet.string_cuts, OTHER_STRING)
    code = alphabet.code(value)
    if not any(code in doubts for _, _, doubts in found):
        is_in = (low or "") <= value and (high is None or value < high)
        assert is_in is any(first <= code < after for first, after, _ in found)


def test_cuts_are_the_bounds_while_they_are_few() -> None:
    cuts = choose_cuts(bounds([((1, 2),), ((1, math.inf),), ((-math.inf, 5),)]))
    assert cuts == [1, math.nextafter(2, 3), math.nextafter(5, 6)]


def test_frequent_bounds_become_cuts() -> None:
    rare: list[NumberSet] = [((i, math.inf),) for i in range(1000)]
    frequent: list[NumberSet] = [((500.5, math.inf),)] * 100
    cuts = choose_cuts(bounds(rare + frequent))
    assert len(cuts) <= CUTS_MAX
    assert 500.5 in cuts


def test_strings_are_listed_while_named() -> None:
    alphabet = Alphabet()
    assert alphabet.name(["y", "x"]) == ["x", "y"]
    assert [alphabet.code("x"), alphabet.code("y")] == [FIRST_STRING, FIRST_STRING + 1]
    assert alphabet.name(["x"]) == []
    alphabet.forget(["x", "y"])
    assert alphabet.code("y") == OTHER_STRING
    assert alphabet.code("x") == FIRST_STRING
    freed = FIRST_STRING + 1
    assert alphabet.name(["z"]) == ["z"]
    assert {alphabet.code("x"), alphabet.code("z")} == {FIRST_STRING, freed}


def test_strings_beyond_the_bound_are_not_listed() -> None:
    alphabet = Alphabet()
    alphabet.name(str(i) for i in range(STRINGS_MAX + 5))
    assert len(alphabet.strings) == STRINGS_MAX
    assert alphabet.size == FIRST_STRING + STRINGS_MAX
