"""Ranges of numbers, compared with plain sets."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gapless.protocols.parts.ranges import Ranges, add_range, without

PAIRS = st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 40), st.integers(0, 6)), max_size=12)


def ranges(pairs: list[tuple[str, int, int]]) -> Ranges:
    found: Ranges = {}
    for publisher, first, more in pairs:
        add_range(found, publisher, first, first + more)
    return found


def numbers(found: Ranges) -> set[tuple[str, int]]:
    return {(p, seq) for p, known in found.items() for first, last in known for seq in range(first, last + 1)}


@given(PAIRS)
def test_the_index_contains_exactly_the_added_filters(pairs: list[tuple[str, int, int]]) -> None:
    found = ranges(pairs)
    assert numbers(found) == {(p, first + step) for p, first, more in pairs for step in range(more + 1)}
    for known in found.values():
        assert all(end + 1 < begin for (_, end), (begin, _) in pairwise(known))


def test_numbers_outside_the_ranges_remain() -> None:
    known = [(3, 5), (8, 8)]
    assert without(known, 1, 10) == [(1, 2), (6, 7), (9, 10)]
    assert without(known, 4, 8) == [(6, 7)]
    assert without(known, 3, 5) == []
    assert without([], 2, 4) == [(2, 4)]
