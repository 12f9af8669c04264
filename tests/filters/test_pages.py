"""Large numbers of filters are kept in pages, which find them exactly while filters are added, removed and moved."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

import gapless.filters.pages  # noqa: F401 - importing numpy in a measured call would count
from gapless.filters import Filter, FilterIndex, parse
from tests.filters.test_work import LINES_A_CALL, lines_of

MANY = 200


@pytest.fixture(autouse=True)
def few_are_many() -> Iterator[None]:
    small: dict[str, Any] = {"PAGED_MIN": MANY, "SAMPLE_MAX": MANY, "WAITING_MAX": 10, "EVENTS_PER_STEP": 1}
    with patch.multiple("gapless.filters.store", **small):
        yield


def random_filter(source: random.Random) -> Filter:
    low, high = source.randrange(1000), source.choice((2**53 - 1, 2**53, 2**53 + 1, 2**60 + 1))
    kinds = (
        "{} = 's{}'", "{} = 's{}'", "{} <> 's{}'", "{} IN ('s{}', 's1')", "{} > {}", "{} <= {}", "{} BETWEEN {} AND {}",
        "{} BETWEEN {} AND {}", "{} IS NULL", "{} IS NOT NULL", "{} >= {high}", "{} < -{high}", "{} LIKE 's{}%'", "{}",
        "NOT {}", "({} IS NULL OR {name} < {})", "{} IN ({}, 7)", "{} > -b", "{} > 's{}'", "{} < 's{}x'",
        "{} BETWEEN 's{}' AND 's7'", "{} NOT BETWEEN 's{}' AND 's7'", "({} > 's{}' AND {name} NOT LIKE '%3')",
    )  # fmt: skip
    terms = []
    for name in source.sample("abcdefgh", source.randint(1, 4)):
        kind = source.choice(kinds)
        number = source.randrange(8) if "'" in kind else low
        terms.append(kind.format(name, number, low + source.randrange(300), high=high, name=name))
    return parse(" AND ".join(terms))


def random_event(source: random.Random) -> dict[str, Any]:
    large = source.choice((2**53, 2**60, 2**63, 2**64, 10**400)) + source.randrange(-1, 2)
    others = (float("nan"), float("inf"), True, False, None, b"x", large, -large)

    def value() -> Any:
        usual = source.choice((f"s{source.randrange(10)}", source.randrange(1300), source.random() * 1300))
        return usual if source.random() < 0.85 else source.choice(others)

    return {name: value() for name in "abcdefghi" if source.random() < 0.85}


def check(index: FilterIndex[int], kept: dict[int, Filter], events: list[dict[str, Any]]) -> None:
    expected = [[key for key, filter_ in kept.items() if filter_.matches(event)] for event in events]
    assert [index.match(event) for event in events] == expected
    assert index.match_many(events) == expected


def settle(index: FilterIndex[int]) -> None:
    index.match({})
    while index._store._task is not None:
        index.match_many([{}] * 10)


def in_pages(index: FilterIndex[int]) -> int:
    return sum(pages.living_count for pages in index._store._pages)


def test_added_and_removed_filters_are_matched_in_batches_of_mixed_types() -> None:
    source = random.Random(3)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    most = key = 0
    for adding in (1.0, 0.9, 0.5, 0.1, 0.9, 0.0):
        for number in range(700):
            if source.random() < adding:
                kept[key] = random_filter(source)
                index.add(key, kept[key])
                key += 1
            elif kept:
                gone = source.choice(list(kept))
                del kept[gone]
                index.remove(gone)
            if not number % 50:  # often while filters are being moved
                check(index, kept, [random_event(source) for _ in range(5)])
            most = max(most, in_pages(index))
        check(index, kept, [random_event(source) for _ in range(40)])
    assert most > MANY
    assert in_pages(index) < most / 2


def interval_filter(source: random.Random) -> Filter:
    low, other = source.randrange(9000), source.randrange(9000)
    return Filter(f"a BETWEEN {low} AND {low + 1500} AND b >= {other} AND s = 'v{low % 5}'")


def interval_event(source: random.Random) -> dict[str, Any]:
    return {"a": source.randrange(10_000), "b": source.randrange(10_000), "s": f"v{source.randrange(6)}"}


def test_no_call_takes_long_while_filters_move_to_pages_to_others_and_back() -> None:
    source = random.Random(4)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    worst = 0
    for key in range(2500):
        kept[key] = interval_filter(source)
        _ = kept[key].disjunction
        worst = max(worst, lines_of(lambda key=key: index.add(key, kept[key])))  # type: ignore[misc]
    for rest in (2500, 20):
        for key in source.sample(list(kept), len(kept) - rest):
            worst = max(worst, lines_of(lambda key=key: index.remove(key)))  # type: ignore[misc]
            del kept[key]
        while in_pages(index) != (len(kept) if rest > MANY else 0):
            worst = max(worst, lines_of(lambda: index.match({"s": "v0"})))
        check(index, kept, [interval_event(source) for _ in range(300)])
    assert worst <= LINES_A_CALL


def test_places_of_brokers_that_left_are_reused() -> None:
    source = random.Random(5)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    for key in range(6000):
        kept[key] = interval_filter(source)
        index.add(key, kept[key])
        if key >= 500:
            del kept[key - 500]
            index.remove(key - 500)
        if not key % 500:
            check(index, kept, [interval_event(source) for _ in range(20)])
    settle(index)
    assert in_pages(index) > MANY
    assert len(kept) == 500
    assert len(index._store._pages) <= 2


def test_many_equal_filters() -> None:
    index: FilterIndex[int] = FilterIndex()
    text = "a BETWEEN 10 AND 20 AND b < 5.5"
    kept = {key: parse(text) for key in range(1200)}
    for key, filter_ in kept.items():
        index.add(key, filter_)
    assert in_pages(index) == 0
    settle(index)
    assert in_pages(index) == len(kept)
    assert index.match({"a": 20, "b": 5}) == list(kept)
    assert index.match_many([{"a": 20, "b": 5}, {"a": 21, "b": 5}, {"a": 10}]) == [list(kept), [], []]
    for key in range(0, 1200, 2):
        index.remove(key)
    assert index.match({"a": 10.0, "b": -(10**400)}) == list(range(1, 1200, 2))


def test_filters_without_an_index_key() -> None:
    index: FilterIndex[int] = FilterIndex()
    kept = {key: parse(("TRUE", "a <> 's1'", "a IS NULL", "b", "a > 3")[key % 5]) for key in range(900)}
    for key, filter_ in kept.items():
        index.add(key, filter_)
    settle(index)
    assert in_pages(index) > MANY
    check(index, kept, [{}, {"a": "s1"}, {"a": "s2", "b": True}, {"a": 4}, {"b": False}, {"a": float("nan")}])


def test_without_numpy_all_stay_in_segments() -> None:
    source = random.Random(6)
    index: FilterIndex[int] = FilterIndex()
    kept = {key: interval_filter(source) for key in range(3 * MANY)}
    with patch.dict(sys.modules, {"gapless.filters.pages": None}):
        for key, filter_ in kept.items():
            index.add(key, filter_)
        settle(index)
    assert in_pages(index) == 0
    check(index, kept, [interval_event(source) for _ in range(20)])


def test_ranges_of_strings_are_in_pages_and_few_are_evaluated() -> None:
    source = random.Random(7)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    for key in range(1000):
        low, high = sorted((source.random(), source.random() / 100))
        kept[key] = parse(
            f"at BETWEEN '2026-{low:.6f}' AND '2026-{high:.6f}'" if key % 2 else f"at LIKE '2026-{low:.4f}%'"
        )
        index.add(key, kept[key])
    settle(index)
    assert in_pages(index) == len(kept)
    events = [{"at": f"2026-{source.random() / 50:.6f}"} for _ in range(50)]
    check(index, kept, events)
    assert sum(map(len, index.match_many(events))) > 50
    assert lines_of(lambda: index.match({"at": "2026-0.999"})) < len(kept)
    for key in list(kept)[::2]:
        index.remove(key)
        del kept[key]
    check(index, kept, events)
