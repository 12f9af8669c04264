"""The index finds exactly the filters that brute force finds, in the order of addition, while filters are added and
removed."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, FilterIndex, alphabet, parse, segment
from gapless.filters.checks import Checks
from gapless.filters.evaluation import Attributes
from tests.filters import generated

CUTS_USUAL = alphabet.CUTS_MAX

SMALL = {
    "gapless.filters.index.FEW": 1,
    "gapless.filters.store.PAGED_MIN": 4,
    "gapless.filters.store.WAITING_MAX": 1,
    "gapless.filters.store.EVENTS_PER_STEP": 1,
    "gapless.filters.store.MOVED": 1,
    "gapless.filters.store.LOOKED_AT": 2,
    "gapless.filters.store.STRINGS_MAX": 2,
    "gapless.filters.store.COLUMNS_MAX": 5,
    "gapless.filters.pages.BATCH": 2,
    "gapless.filters.pages.OPENED": 3,
    "gapless.filters.segments.YOUNG_MIN": 2,
    "gapless.filters.segments.YOUNG_MAX": 3,
    "gapless.filters.segments.SEGMENT_MAX": 8,
    "gapless.filters.segments.MOVED_PER_CALL": 1,
    "gapless.filters.segments.SAMPLE_MAX": 2,
    "gapless.filters.segment.CUT_PER_STEP": 1,
    "gapless.filters.segment.FEW": 1,
    "gapless.filters.segments.SHAPES_MAX": 2,
    "gapless.filters.alphabet.CUTS_MAX": 3,
    "gapless.filters.alphabet.STRINGS_MAX": 2,
    "gapless.filters.rare_values.RARE_MAX": 1,
    "gapless.filters.rare_values.COMMON_MAX": 3,
}


@pytest.fixture(scope="module", params=["small bounds", "usual bounds", "none are few"], autouse=True)
def bounds(request: pytest.FixtureRequest) -> Iterator[None]:
    with ExitStack() as stack:
        if request.param == "small bounds":
            for name, value in SMALL.items():
                stack.enter_context(patch(name, value))
        elif request.param == "none are few":
            stack.enter_context(patch("gapless.filters.index.FEW", 0))
            stack.enter_context(patch("gapless.filters.segment.FEW", 0))
        yield


def brute_force(kept: dict[int, Filter], event: dict[str, Any]) -> list[int]:
    return [key for key, filter_ in kept.items() if filter_.matches(event)]


def check(index: FilterIndex[int], kept: dict[int, Filter], events: list[dict[str, Any]]) -> None:
    expected = [brute_force(kept, event) for event in events]
    assert [index.match(event) for event in events] == expected
    assert index.match_many(events) == expected
    assert len(index) == len(kept)


SOME_FILTERS = st.one_of(generated.conjunctions, generated.filters)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), SOME_FILTERS),
        st.tuples(st.just("add"), SOME_FILTERS),
        st.tuples(st.just("remove"), st.integers(0, 1000)),
        st.tuples(st.just("match"), st.lists(st.one_of(generated.events, generated.events_by_hand), max_size=4)),
    ),
    max_size=40,
)


@given(STEPS, st.lists(generated.events, min_size=1, max_size=5))
@settings(max_examples=150)
def test_agrees_with_brute_force(steps: list[tuple[str, Any]], events: list[dict[str, Any]]) -> None:
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    for number, (step, argument) in enumerate(steps):
        if step == "add":
            index.add(number, argument)
            kept[number] = argument
        elif step == "remove" and kept:
            key = list(kept)[argument % len(kept)]
            index.remove(key)
            del kept[key]
            assert key not in index
        elif step == "match":
            check(index, kept, argument)
    check(index, kept, events)


def random_filter(source: random.Random) -> Filter:
    terms = []
    for name in source.sample("abcdefgh", source.randint(1, 4)):
        kind = source.randrange(7)
        low = source.randrange(500)
        terms.append(
            (
                f"{name} = 's{source.randrange(6)}'",
                f"{name} = 'rare{source.randrange(300)}'",
                f"{name} > {low / 2}",
                f"{name} BETWEEN {low} AND {low + source.randrange(200)}",
                f"{name} IN ('s1', 's{source.randrange(6)}', 'rare{source.randrange(300)}')",
                f"{name} LIKE 's%'",
                f"({name} IS NULL OR {name} < {low})",
            )[kind]
        )
    return parse(f" {source.choice(('AND', 'AND', 'AND', 'OR'))} ".join(terms))


def random_event(source: random.Random) -> dict[str, Any]:
    values = [f"s{source.randrange(6)}", f"rare{source.randrange(300)}", source.randrange(600), source.random() * 600]
    return {name: source.choice(values) for name in "abcdefgh" if source.random() < 0.8}


def test_a_large_population_comes_and_goes() -> None:
    source = random.Random(7)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    key = 0
    for adding in (0.95, 0.4, 0.1, 0.8, 0.0):
        for _ in range(600):
            if source.random() < adding or not kept:
                kept[key] = random_filter(source)
                index.add(key, kept[key])
                key += 1
            else:
                gone = source.choice(list(kept))
                del kept[gone]
                index.remove(gone)
        check(index, kept, [random_event(source) for _ in range(20)])
    for gone in list(kept):
        index.remove(gone)
    check(index, {}, [random_event(source) for _ in range(3)])


def test_keys() -> None:
    index: FilterIndex[str] = FilterIndex()
    index.add("x", parse("a = 1"))
    assert "x" in index
    assert "y" not in index
    with pytest.raises(KeyError, match="already"):
        index.add("x", parse("a = 2"))
    with pytest.raises(KeyError):
        index.remove("y")
    index.remove("x")
    assert len(index) == 0
    index.add("x", parse("a = 2"))
    assert index.match({"a": 2}) == ["x"]


def test_opaque_conditions_are_evaluated() -> None:
    index: FilterIndex[str] = FilterIndex()
    for key, text in (("p", "c = 'x' AND a > b"), ("q", "a + b > 3"), ("r", "c <> 'y' AND a + b < 3")):
        index.add(key, parse(text))
    events: list[Any] = [{"a": 3, "b": 2, "c": "x"}, {"a": 1, "b": 1, "c": "x"}, {"a": 1, "c": "x"}]
    assert index.match_many(events) == [["p", "q"], ["r"], []]


def test_order_is_that_of_adding() -> None:
    index: FilterIndex[str] = FilterIndex()
    for key, text in (("c", "a > 0"), ("a", "b = 'x'"), ("b", "TRUE"), ("d", "a = 1 OR b = 'x'")):
        index.add(key, parse(text))
    index.remove("c")
    index.add("c", parse("a > 0"))
    assert index.match({"a": 1, "b": "x"}) == ["a", "b", "d", "c"]


def test_equal_filters_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.filters.index.FEW", 16)
    index: FilterIndex[str] = FilterIndex()
    for key, text in {"a": "x = 1", "b": "y = 2", "c": "x = 1", "d": "y = 2", "e": "x = 1"}.items():
        index.add(key, parse(text))
    assert [keys for _, keys in index._tests] == [["a", "c", "e"], ["b", "d"]]
    assert index.match({"x": 1, "y": 2}) == ["a", "b", "c", "d", "e"]
    found = index.match({"x": 1})
    assert found == ["a", "c", "e"]
    found.clear()
    assert index.match({"x": 1}) == ["a", "c", "e"], "the caller owns the answer"
    index.remove("c")
    assert index.match_many([{"x": 1}, {"y": 2}, {}]) == [["a", "e"], ["b", "d"], []]


def test_values_of_other_types_count_as_absent() -> None:
    index: FilterIndex[int] = FilterIndex()
    for key, text in enumerate(("a = 1", "a > 0", "a = 'x'", "a IS NULL", "a")):
        index.add(key, parse(text))
    for value in (None, [1], {"x": 1}, b"x"):
        assert index.match({"a": value}) == [3]  # type: ignore[dict-item]
        assert index.match_many([{"a": value}]) == [[3]]  # type: ignore[dict-item]
    assert index.match({"a": True}) == [4]


def test_empty_index_and_empty_batch() -> None:
    index: FilterIndex[int] = FilterIndex()
    assert index.match({"a": 1}) == []
    assert index.match_many([{"a": 1}, {}]) == [[], []]
    assert index.match_many([]) == []
    index.add(1, parse("FALSE"))
    index.add(2, parse("a IS NULL"))
    assert index.match_many([{}, {"a": 1}, {"b": 1}, {"a": None}]) == [[2], [], [2], [2]]  # type: ignore[dict-item]


def test_numbers_as_large_as_they_get() -> None:
    """An integer beyond 64 bits counts as a float, compared with any constant."""
    index: FilterIndex[int] = FilterIndex()
    bounds = [2**62, 2**63 - 1, float(2**63), 1e30, -(2**62) - 1, -(2**63), 2**53 + 1]
    texts = [f"a {symbol} {bound}" for bound in bounds for symbol in ("<", "<=", ">", ">=", "=", "<>")]
    kept = {key: parse(text) for key, text in enumerate(texts)}
    for key, filter_ in kept.items():
        index.add(key, filter_)
    near = [number + step for number in (2**53, 2**62, 2**63, 2**64, -(2**62), -(2**63)) for step in (-1, 0, 1)]
    values: list[int | float] = [*near, *map(float, near), 10**30, 10**400, -(10**400), float("inf")]
    check(index, kept, [{"a": value} for value in values])


STRINGS_ASKED = ("v0", "v1", "v2", "v3", "v4")


def test_the_work_of_a_match_is_that_of_what_matches() -> None:
    """A match evaluates few filters that do not match, and no intervals and strings."""
    source = random.Random(11)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    for key in range(3000):
        low, size = source.randrange(9000), source.randrange(200, 1000)
        terms = [f"{name} BETWEEN {low} AND {low + size}" for name in source.sample("abcd", 2)]
        kept[key] = parse(" AND ".join([*terms, f"s = {source.choice(STRINGS_ASKED)!r}"]))
        index.add(key, kept[key])
    events: list[Attributes] = [
        {"s": f"v{key % 5}", **{name: source.randrange(10_000) for name in "abcd"}} for key in range(100)
    ]
    looked_at = evaluated = 0
    hold, test = Checks.hold, Filter.__dict__["test"].fget

    def counted(*arguments: Any) -> bool:
        nonlocal looked_at
        looked_at += 1
        return hold(*arguments)

    def counted_test(filter_: Filter) -> Any:
        nonlocal evaluated
        evaluated += 1
        return test(filter_)

    with patch.object(Checks, "hold", counted), patch.object(Filter, "test", property(counted_test)):
        found = sum(len(keys) for keys in index.match_many(events))
    if alphabet.CUTS_MAX == CUTS_USUAL:
        assert looked_at <= 2 * found + 100
    assert found
    if len(STRINGS_ASKED) < alphabet.STRINGS_MAX:
        assert not evaluated


def test_a_filter_in_the_index_takes_less_than_two_kilobytes() -> None:
    """The size includes everything except the filter's text."""
    if alphabet.CUTS_MAX != CUTS_USUAL or segment.FEW == 0:
        return
    source = random.Random(3)

    def condition(name: str) -> str:
        low = source.randrange(9000)
        return f"{name} = 'v{low % 10}'" if name < "c" else f"{name} BETWEEN {low} AND {low + 1000}"

    texts = [" AND ".join(map(condition, source.sample("abcdefghij", 4))) for _ in range(2000)]
    tracemalloc.start()
    try:
        index: FilterIndex[int] = FilterIndex()
        for key, text in enumerate(texts):
            index.add(key, Filter(text))
        index.match_many([{"a": "v1", "c": 500, "d": 700}] * 8)
        taken = tracemalloc.get_traced_memory()[0] / len(texts)
    finally:
        tracemalloc.stop()
    assert taken < 2000


def test_ranges_of_strings_are_not_evaluated_one_by_one() -> None:
    index: FilterIndex[int] = FilterIndex()
    for key in range(2000):
        index.add(key, parse(f"day BETWEEN '{key:05}' AND '{key + 1:05}'"))
    with (
        patch.object(Filter, "matches", side_effect=AssertionError),
        patch.object(Checks, "hold", autospec=True, side_effect=Checks.hold) as compared,
    ):
        assert index.match({"day": "00500"}) == [499, 500]
    assert compared.call_count < (1000 if alphabet.CUTS_MAX < CUTS_USUAL else 100)
