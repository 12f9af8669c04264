"""Malicious filters and events take bounded work, measured as executed lines of Python instead of time.

Lines are counted from outside, so that no loop can be missed. Code in C is proportional to the lines, or has its own
bound: the parser limits the cost of searching for the pieces of a LIKE pattern.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, FilterError, FilterIndex, covering
from gapless.filters.covering import COMPARING_MAX, COMPARING_MIN, COMPARING_PART, allowance
from gapless.filters.lexer import TEXT_LENGTH_MAX
from gapless.filters.like_matcher import SEARCH_COST_MAX, search_cost
from gapless.filters.normal_form import CONJUNCTIONS_MAX, CONSTRAINTS_MAX, NORMALISING_MAX, PARTS_MAX
from gapless.filters.syntax import And, Condition, Like, Not, Or
from gapless.filters.work import Work

LINES_A_CHARACTER = 80
LINES_A_CALL = 30_000
LINES_A_STEP = 12


def lines_of(action: Callable[[], Any]) -> int:
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


patterns = st.text("ab%_", min_size=1, max_size=12)
long_patterns = st.builds(lambda part, times: part * times, st.text("ab%_", min_size=1, max_size=4), st.integers(1, 60))
names = st.sampled_from(("a", "b", "c"))
likes = st.builds(
    lambda name, negated, pattern: f"{name} {negated}LIKE '{pattern}'",
    names,
    st.sampled_from(("", "NOT ")),
    st.one_of(patterns, patterns, long_patterns),
)
lists = st.builds(
    lambda name, negated, word, count: f"{name} {negated}IN ({', '.join(f'{word}{i}{chr(39)}' for i in range(count))})",
    names,
    st.sampled_from(("", "NOT ")),
    st.sampled_from(("'a", "'ab", "'" + "ab" * 20)),
    st.integers(1, 400),
)
numbers = st.builds(
    lambda name, negated, first, step, count: (
        f"{name} {negated}IN ({', '.join(str(first + step * i) for i in range(count))})"
    ),
    names,
    st.sampled_from(("", "NOT ")),
    st.integers(-5, 5),
    st.integers(1, 3),
    st.integers(1, 400),
)
many_names = st.builds(
    lambda joint, count: joint.join(f"n{i} = {i}" for i in range(count)),
    st.sampled_from((" AND ", " OR ")),
    st.integers(1, 300),
)
leaves = st.one_of(likes, likes, likes, lists, numbers, many_names, st.just("a + b > c"))


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joints = st.sampled_from((" AND ", " OR "))
    rows = st.lists(inner, min_size=2, max_size=6)
    return st.one_of(
        st.builds(lambda joint, row: joint.join(f"({each})" for each in row), joints, rows),
        st.builds(
            lambda joint, row, times: joint.join(
                f"({each.replace('b', 'b' * (i % 3))})" for i in range(times) for each in row
            ),
            joints,
            rows,
            st.integers(2, 20),
        ),
        inner.map(lambda text: f"NOT ({text})"),
    )


hostile_texts = st.recursive(leaves, joined, max_leaves=12)
events = st.dictionaries(
    st.one_of(names, st.integers(0, 300).map("n{}".format)),
    st.one_of(
        st.integers(-5, 1000),
        st.builds(lambda part, times: part * times, st.text("ab", min_size=1, max_size=3), st.integers(0, 20_000)),
    ),
    max_size=5,
)


def parsed(text: str) -> Filter | None:
    try:
        return Filter(text)
    except FilterError:
        return None


def cost_of_searches(condition: Condition) -> int:
    match condition:
        case Like(_, pattern):
            return search_cost(pattern)
        case Not(inner):
            return cost_of_searches(inner)
        case And(conditions) | Or(conditions):
            return sum(map(cost_of_searches, conditions))
    return 0


def check_alone(text: str) -> Filter | None:
    once_through = LINES_A_CHARACTER * (len(text) + 10)
    assert lines_of(lambda: parsed(text)) <= once_through
    filter_ = parsed(text)
    if filter_ is None:
        return None
    assert cost_of_searches(filter_.condition) <= SEARCH_COST_MAX
    assert lines_of(lambda: filter_.disjunction) <= LINES_A_STEP * (NORMALISING_MAX + PARTS_MAX) + once_through
    assert len(filter_.disjunction) <= CONJUNCTIONS_MAX
    assert sum(len(conjunction.constraints) for conjunction in filter_.disjunction) <= CONSTRAINTS_MAX
    return filter_


def check_together(a: Filter, b: Filter) -> None:
    for filter_ in (a, b):
        _ = filter_.disjunction  # the normal form has its own bound
    steps = allowance(a.weight, b.weight)
    assert steps <= COMPARING_MAX
    assert lines_of(lambda: a.covers(b)) <= LINES_A_STEP * steps
    assert lines_of(lambda: a.overlaps(b)) <= LINES_A_STEP * steps


def check_matching(filter_: Filter, event: dict[str, Any]) -> None:
    filter_.evaluate({})
    assert lines_of(lambda: filter_.evaluate(event)) <= LINES_A_CHARACTER * (len(filter_.text) + 10)


@given(hostile_texts, hostile_texts, events)
@settings(max_examples=20)
def test_generated_filters_take_bounded_work(one: str, other: str, event: dict[str, Any]) -> None:
    a, b = check_alone(one), check_alone(other)
    for filter_ in (a, b):
        if filter_ is not None:
            check_matching(filter_, event)
    if a is not None and b is not None:
        check_together(a, b)
        check_together(b, a)


def groups(count: int, size: int) -> str:
    numbers = iter(range(10**6))
    return " OR ".join(
        "("
        + " AND ".join(f"(a LIKE 'x{next(numbers)}%_a%' OR a NOT LIKE '_{next(numbers)}%b')" for _ in range(size))
        + ")"
        for _ in range(count)
    )


HOSTILE = {
    "blanks before what cannot be read": " " * 60_000 + "#",
    "blanks and nothing else": " " * 60_000,
    "a string that never ends": "a = '" + "''" * 30_000,
    "a number that never ends": "a = " + "1" * 60_000,
    "a name that never ends": "a." * 30_000,
    "twenty groups of six": groups(20, 6),
    "six groups, joined the other way": groups(6, 4).replace(" OR (", " AND ("),
    "many conjunctions of one": " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(1000)),
    "many names": " AND ".join(f"a{i} = {i}" for i in range(2000)),
    "many names, multiplied": " AND ".join(
        [f"a{i} = {i}" for i in range(1900)] + [f"(b{i} OR c{i})" for i in range(6)]
    ),
    "a list through patterns": "a IN ("
    + ", ".join(f"'{'a' * 90}{i}'" for i in range(300))
    + ") AND "
    + " AND ".join(f"a NOT LIKE '%{'a' * 20}{i}b%'" for i in range(60)),
    "a long list": "a IN (" + ", ".join(f"'{i:010}'" for i in range(4000)) + ")",
    "a long list of numbers": "a NOT IN (" + ", ".join(str(i * 7) for i in range(4000)) + ")",
    "a long chain": " OR ".join(f"a = {i}" for i in range(2000)),
    "a long chain the other way": " AND ".join(f"a <> 'x{i}'" for i in range(2000)),
    "prefixes": " OR ".join(f"a LIKE '{i}/_%'" for i in range(2000)),
    "prefixes, all forbidden": " AND ".join(f"a NOT LIKE '{i}/_%'" for i in range(2000)),
    "long patterns": " AND ".join(f"a LIKE '{'_a' * 1500}{i}%'" for i in range(15)),
    "long patterns, multiplied": " AND ".join(
        f"(a LIKE '{'_a' * 700}{i}%' OR a LIKE '{'a_' * 700}{i}%')" for i in range(15)
    ),
    "wildcards in a row": "a LIKE '%" + "a_" * 60 + "b%'",
    "single wildcards": "a LIKE '" + "_" * 30_000 + "%'",
    "deep": "(" * 22 + "a = 1" + " AND b = 2 OR c = 3)" * 22,
    "deep, with an opaque part at the bottom": "(" * 20
    + " OR ".join(f"(a{i} AND b{i})" for i in range(400))
    + "".join(f" AND c{i} OR d{i})" for i in range(20)),
    "boxes that cut each other up": " OR ".join(f"(a > {i} AND b < {i} AND c <> {i} AND d <> {i})" for i in range(60)),
    "patterns that cut each other up": " OR ".join(f"(a LIKE '%{i}%' AND b NOT LIKE '%{i}%')" for i in range(60)),
}
EVENTS: list[dict[str, Any]] = [
    {"a": "a" * 60_000},
    {"a": "ab" * 30_000, "b": "/" * 60_000},
    {f"a{i}": i for i in range(3000)},
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_filter_made_to_hurt_takes_bounded_work(name: str) -> None:
    filter_ = check_alone(HOSTILE[name])
    if filter_ is not None:
        for event in EVENTS:
            check_matching(filter_, event)


@pytest.mark.slow
def test_filters_made_to_hurt_are_compared_within_bounds() -> None:
    filters = [filter_ for text in HOSTILE.values() if (filter_ := parsed(text)) is not None]
    assert len(filters) > 15
    everything = Filter("a IS NOT NULL OR b > 1 OR c < 1 OR d = 5")
    for filter_ in filters:
        for other in (filter_, everything, Filter(filter_.text + " "), *filters[::5]):
            check_together(filter_, other)
            check_together(other, filter_)


class CountedWork(Work):
    spent = 0

    def spend(self, steps: int) -> None:
        CountedWork.spent += min(steps, self.left + 1)
        super().spend(steps)


MANY = 65_000
SMALL_WEIGHT = 8


def small_filters() -> list[Filter]:
    kinds = (
        "a = 'x{}'", "a LIKE '{}/%'", "a > {} AND b < {}", "a IN ('{}', 'y') AND c", "topic = 't{}'",
        "a LIKE '%{}%' AND b = {}", "a <> '{}' AND a IS NOT NULL", "b BETWEEN {} AND 50 OR c = 'z'",
    )  # fmt: skip
    texts = [kind.replace("{}", str(n)) for kind in kinds for n in range(40)]
    return [Filter(text) for text in texts]


@pytest.mark.parametrize("name", [*HOSTILE, "one that people write"])
def test_a_new_filter_is_compared_with_very_many_others_within_bounds(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a comparison depends only on its two filters, so a sample represents all of them."""
    new = parsed(HOSTILE.get(name, "topic = 't7' AND a LIKE 'x%' AND b < 10"))
    if new is None:
        return
    others = small_filters()
    assert max(other.weight for other in others) <= SMALL_WEIGHT
    monkeypatch.setattr(covering, "Work", CountedWork)
    CountedWork.spent = 0
    for other in others:
        new.overlaps(other)
        new.covers(other)
        other.covers(new)
    spent = CountedWork.spent * MANY // len(others)
    assert spent <= 3 * MANY * (COMPARING_MIN + COMPARING_PART * SMALL_WEIGHT)
    if name not in HOSTILE:
        assert spent <= 3 * 15 * MANY, "a comparison of two that people write takes a dozen steps"


def test_filters_made_to_hurt_are_found_and_compared_by_what_is_left_of_them() -> None:
    hard = groups(20, 6)
    kept = Filter(f"topic = 'x' AND price < 10 AND ({hard})")
    (conjunction,) = kept.disjunction
    assert set(conjunction.constraints) == {"topic", "price"}
    assert len(conjunction.opaque) == 1
    assert not kept.overlaps(Filter("topic = 'y'"))
    assert Filter("price < 20").covers(kept)
    assert kept.covers(Filter(f"({hard}) AND topic = 'x' AND price < 5"))
    index: FilterIndex[int] = FilterIndex()
    for key in range(20):
        index.add(key, kept)
    assert index.match({"topic": "x", "price": 1, "a": "b"}) == list(range(20))
    assert index.match({"topic": "y", "price": 1, "a": "b"}) == []


def test_no_call_of_an_index_takes_long_while_filters_come_and_go() -> None:
    """Each call takes a small step of what has to be done for thousands of filters."""
    source = random.Random(5)
    index: FilterIndex[int] = FilterIndex()
    kept: dict[int, Filter] = {}
    worst = 0
    for key in range(3000):
        low, other = source.random() * 1000, source.random() * 1000
        text = f"a BETWEEN {low} AND {low + 50} AND b > {other} AND c < {other} AND s = 's{key % 9}'"
        # Normalising has its own bound, and a filter is normalised before it is added.
        filter_ = Filter(text)
        _ = filter_.disjunction
        worst = max(worst, lines_of(lambda key=key, filter_=filter_: index.add(key, filter_)))  # type: ignore[misc]
        kept[key] = filter_
    event: dict[str, Any] = {"a": 500, "b": 700, "c": 300, "s": "s1"}
    assert index.match(event) == [key for key, filter_ in kept.items() if filter_.matches(event)] != []
    for key in source.sample(list(kept), 2000):
        worst = max(worst, lines_of(lambda key=key: index.remove(key)))  # type: ignore[misc]
        del kept[key]
    assert index.match(event) == [key for key, filter_ in kept.items() if filter_.matches(event)]
    assert worst <= LINES_A_CALL


def test_no_filter_is_longer_than_the_bound() -> None:
    assert max(map(len, HOSTILE.values())) < TEXT_LENGTH_MAX
