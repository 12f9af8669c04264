"""Number sets: the order of representable numbers, and set operations compared with membership."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters.number_sets import (
    EVERY_NUMBER,
    NumberSet,
    compared,
    complement,
    contains,
    disjoint,
    includes,
    intersection,
    of_values,
    predecessor,
    successor,
    union,
)
from tests.filters.generated import NUMBERS, neighbours

integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.one_of(
    integers,
    st.floats(allow_nan=False),
    integers.map(float),
    st.sampled_from([near for number in NUMBERS for near in neighbours(number)]),
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 5e-324),
        (1, 1.0000000000000002),
        (2**53, 2**53 + 1),
        (2.0**53, 2**53 + 1),
        (2**53 + 1, 2**53 + 2),
        (2**63 - 1, 2.0**63),
        (-(2**63), -(2**63) + 1),
        (2.0**63, math.nextafter(2.0**63, math.inf)),
        (1.7976931348623157e308, math.inf),
        (-math.inf, -1.7976931348623157e308),
        (math.inf, None),
    ],
)
def test_successor(value: float, expected: float | None) -> None:
    assert successor(value) == expected


@given(numbers)
@settings(max_examples=250)
def test_successor_and_predecessor_are_inverse(value: int | float) -> None:
    above, below = successor(value), predecessor(value)
    if above is not None:
        assert above > value
        assert predecessor(above) == value
    if below is not None:
        assert below < value
        assert successor(below) == value


@given(numbers, numbers)
@settings(max_examples=250)
def test_no_number_is_between_a_value_and_its_successor(value: int | float, other: int | float) -> None:
    above = successor(value)
    assert above is None or not value < other < above


sets: st.SearchStrategy[NumberSet] = st.recursive(
    st.one_of(
        st.builds(compared, st.sampled_from(("=", "<>", "<", "<=", ">", ">=")), numbers),
        st.lists(numbers, max_size=4).map(lambda values: of_values(frozenset(values))),
    ),
    lambda inner: st.one_of(
        st.builds(union, inner, inner), st.builds(intersection, inner, inner), st.builds(complement, inner)
    ),
    max_leaves=5,
)


@given(sets, sets, numbers)
@settings(max_examples=250)
def test_algebra(a: NumberSet, b: NumberSet, value: int | float) -> None:
    in_a, in_b = contains(a, value), contains(b, value)
    assert contains(union(a, b), value) is (in_a or in_b)
    assert contains(intersection(a, b), value) is (in_a and in_b)
    assert contains(complement(a), value) is not in_a
    assert complement(complement(a)) == a
    assert union(a, complement(a)) == EVERY_NUMBER
    assert includes(a, b) is (union(a, b) == a)
    assert disjoint(a, b) is disjoint(b, a) is (not intersection(a, b))
    assert not (includes(a, b) and in_b and not in_a)
