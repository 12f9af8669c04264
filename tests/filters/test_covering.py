"""Covering and overlap: exact for conjunctions of simple conditions, safe for everything."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gapless.filters import Filter, parse
from tests.filters import generated, oracle

STATES: tuple[Any, ...] = (
    *generated.WORLD,
    *dict.fromkeys(
        "".join(letters)
        for alphabet, longest in (("xyz", 5), ("xyz%_", 4), ("\0 %i!xy", 3))
        for length in range(longest + 1)
        for letters in product(alphabet, repeat=length)
    ),
)


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ("a > 1", "a > 2"),
        ("a >= 1", "a > 1"),
        ("a > 1", "a > 1 AND b = 'x'"),
        ("a <> 5", "a > 5"),
        ("a IS NOT NULL", "a = 'x'"),
        ("a IS NOT NULL", "NOT a"),
        ("a IN (1, 2, 3)", "a IN (1.0, 3)"),
        ("a IN ('x', 'y')", "a = 'x' OR a = 'y'"),
        ("a = 'x' OR a = 'y'", "a IN ('x', 'y')"),
        ("NOT a > 10", "a <= 10"),
        ("a <= 10", "NOT a > 10"),
        ("a < 2 * 5", "a < 10"),
        ("5 < a", "a > 6"),
        ("a LIKE 'x%'", "a LIKE 'xy%'"),
        ("a LIKE 'x%'", "a = 'xyz'"),
        ("a LIKE 'x%y'", "a LIKE 'x%' AND a LIKE '%y'"),
        ("a LIKE '%'", "a LIKE '_'"),
        ("a NOT LIKE 'x%'", "a LIKE 'y%'"),
        ("a <> 'x'", "a LIKE 'y%'"),
        ("a IN ('x')", "a LIKE '%x' AND a NOT LIKE '_%x'"),
        ("a > 1", "b = 1 AND b = 2"),
        ("a > 1", "b LIKE 'x%' AND b LIKE 'y%'"),
        ("a > 1", "FALSE"),
        ("TRUE", "a + b > c"),
        ("a < 1 OR a >= 1", "a = 5"),
        ("a IS NULL OR a IS NOT NULL", "TRUE"),
        ("a + b > 3", "a + b > 3 AND c"),
        ("a + b > 3", "NOT a + b <= 3"),
        ("a + b > 1 + 2", "a + b > 3"),
        ("a = 1", "a > 9007199254740992 AND a < 9007199254740993"),
        ("a >= 9007199254740993", "a > 9007199254740992.0"),
        ("a OR b", "a"),
        ("a >= 'x'", "a > 'x'"),
        ("a >= 'x'", "a = 'x'"),
        ("a BETWEEN 'x' AND 'z'", "a BETWEEN 'xa' AND 'y' AND a <> 'xb'"),
        ("a BETWEEN 'x' AND 'x'", "a = 'x'"),
        ("a = 'x'", "a BETWEEN 'x' AND 'x'"),
        ("a >= '2026' AND a < '2027'", "a LIKE '2026-11-%'"),
        ("a LIKE '2026-%'", "a BETWEEN '2026-01' AND '2026-11'"),
        ("a NOT LIKE '2026%'", "a > '2027'"),
        ("a < 'm' OR a >= 'm'", "a LIKE '%'"),
        ("a < 'n' OR a > 'm'", "a IN ('a', 'z')"),
        ("a <= b", "a <= b AND a < 'x'"),
        ("a OR b", "b AND c"),
        ("(a OR b) AND c", "a AND c"),
        ("a > b", "a > b AND a = 3"),
        ("a BETWEEN 1 AND 9", "a = 2 OR a BETWEEN 3 AND 4 OR a IN (5, 6)"),
        ("(s = 'A' AND p < 10) OR (s = 'B' AND p < 20)", "s IN ('A', 'B') AND p < 5"),
        ("(s = 'A' AND p < 10) OR (s = 'B' AND p < 20)", "s = 'A' AND p < 5 OR s = 'B' AND p < 15"),
        ("a LIKE 'a%' OR a LIKE 'b%'", "a IN ('ax', 'by')"),
        ("a LIKE 'a%' OR a LIKE 'b%' OR a LIKE 'c%'", "a IN ('ax', 'by', 'cz') AND p < 5"),
        ("a LIKE 'x%'", "a LIKE 'xy%' AND a NOT IN (" + ", ".join(f"'xy{i}'" for i in range(12)) + ")"),
        ("a LIKE 'x%'", "a LIKE 'xy%' AND " + " AND ".join(f"a NOT LIKE 'xy{i}%'" for i in range(20))),
        ("a < 5 AND b OR a >= 5 AND b", "a = 3 AND b OR a > 7 AND b"),
        ("a < 5 OR b > 5 OR a >= 5 AND b <= 5", "a > 0 AND b > 0"),
        ("p < 10 AND q OR p >= 10 AND NOT q OR p >= 10 AND q", "p > 0 AND q"),
        ("a LIKE 'x%' OR a NOT LIKE 'x%'", "a LIKE '%y' OR a = 'x'"),
        ("(a OR b OR c) AND p", "a AND p OR b AND p AND q"),
        ("a > b AND p < 5 OR p >= 5", "a > b AND p > 0"),
    ],
)
def test_covers(wider: str, narrower: str) -> None:
    assert parse(wider).covers(parse(narrower))


@pytest.mark.parametrize(
    ("wider", "narrower"),
    [
        ("a > 2", "a > 1"),
        ("a > 1", "a >= 1"),
        ("a <> 5", "a IS NOT NULL"),
        ("a OR NOT a OR a <= 1 OR a > 1 OR a = 'x' OR a <> 'x'", "a IS NOT NULL"),  # NaN satisfies none of these
        ("c = 1 AND a > b", "c = 1 AND a > 0 AND b > 0"),
        ("a <= 10 OR a > 10", "TRUE"),
        ("a = 1", "a = TRUE"),
        ("a > 1 OR a <= 1", "a IS NOT NULL"),
        ("a < 10", "NOT a < 10"),
        ("a > 'x'", "a >= 'x'"),
        ("a < 'x'", "a < 3"),
        ("a LIKE '2026-%'", "a BETWEEN '2026-01' AND '2027'"),
        ("a NOT LIKE '2026%'", "a > '2025'"),
        ("a > 3 AND a < 4", "a >= 3 AND a < 4"),
        ("a = 4", "a > 3 AND a < 5"),
        ("a LIKE 'x_%'", "a LIKE 'x%'"),
        ("a + b > 3", "b + a > 3"),
        ("a + 1 > 3", "a + 1.0 > 3"),
        ("a + 1 < inf", "a + 1 < 1e308 * 10"),
        ("a > b", "a = 3 AND b = 2"),
        ("a = 'x' AND b", "a = 'x'"),
        ("a = 1", "TRUE"),
        ("FALSE", "a = 1"),
        ("(s = 'A' AND p < 10) OR (s = 'B' AND p < 20)", "s IN ('A', 'B') AND p < 15"),
        ("(s = 'A' AND p < 10) OR (s = 'B' AND p < 20)", "s IN ('A', 'C') AND p < 5"),
        ("a LIKE 'a%' OR a LIKE 'b%'", "a IN ('ax', 'cy')"),
        ("a < 5 AND b OR a > 5 AND b", "a > 0 AND b"),
        ("a > b AND p < 5 OR p >= 5", "p > 0"),
    ],
)
def test_covers_not(wider: str, narrower: str) -> None:
    assert not parse(wider).covers(parse(narrower))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("a > 1", "a < 2", True),
        ("a > 1", "a <= 1", False),
        ("a > 3", "a < 4", True),
        ("a > 9007199254740992", "a < 9007199254740993", False),
        ("a = 'x'", "a = 'y'", False),
        ("a = 'x'", "a <> 'x'", False),
        ("a = 'x'", "a > 1", False),
        ("a = 'x'", "b = 'y'", True),
        ("a LIKE 'x%'", "a LIKE '%y'", True),
        ("a LIKE 'x%'", "a LIKE 'y%'", False),
        ("a IS NULL", "a = 1", False),
        ("a IS NULL", "b", True),
        ("a + b > 1", "a + b < 1", True),
        ("a > b", "a = 'x'", True),
        ("a > b", "a = TRUE", False),
        ("a > b + 0", "a = 'x'", False),
        ("a > 'x'", "a < 'y'", True),
        ("a > 'x'", "a <= 'x'", False),
        ("a >= 'x'", "a <= 'x'", True),
        ("a BETWEEN 'x' AND 'y'", "a LIKE 'z%'", False),
        ("a BETWEEN 'x' AND 'y'", "a LIKE 'xz%'", True),
        ("a > 'x'", "a > 3", False),
        ("a = 1 OR b = 1", "a = 2 AND b = 2", False),
        ("FALSE", "TRUE", False),
        ("TRUE", "TRUE", True),
        ("1 / 0 = 1", "TRUE", False),
    ],
)
def test_overlaps(a: str, b: str, expected: bool) -> None:
    assert parse(a).overlaps(parse(b)) is expected
    assert parse(b).overlaps(parse(a)) is expected


@cache
def allowed(text: str) -> tuple[str, frozenset[int]]:
    name = next(name for name in generated.NAMES if name in text)
    condition = parse(text).condition
    return name, frozenset(i for i, state in enumerate(STATES) if oracle.truth(condition, {name: state}) is True)


def allowed_by_all(texts: list[str]) -> dict[str, frozenset[int]]:
    result = dict.fromkeys(generated.NAMES, frozenset(range(len(STATES))))
    for text in texts:
        name, states = allowed(text)
        result[name] &= states
    return result


SIMPLE_CONJUNCTIONS = st.lists(generated.simple_texts(), min_size=1, max_size=4)


@given(SIMPLE_CONJUNCTIONS, SIMPLE_CONJUNCTIONS)
@example(["c.d < 'x'"], ["c.d NOT LIKE '_%' ESCAPE '!'"])
@settings(max_examples=160)
def test_conjunctions_are_decided_exactly(a: list[str], b: list[str]) -> None:
    check_exact(a, b)


@pytest.mark.slow
@given(SIMPLE_CONJUNCTIONS, SIMPLE_CONJUNCTIONS)
@settings(max_examples=80)
def test_conjunctions_with_common_parts_are_decided_exactly(a: list[str], b: list[str]) -> None:
    check_exact(a, a + b)
    check_exact(a[1:] or a, a + b)


@given(st.lists(generated.simple_texts(st.just("a")), min_size=2, max_size=6))
@example(["a NOT LIKE 'x%' ESCAPE '!'", "a BETWEEN 'x' AND 'xy'"])
@example(["a <> 'x'", "a NOT BETWEEN 'x' AND 'x'"])
@example(["a NOT LIKE 'x%'", "a NOT BETWEEN 'x' AND 'xy'"])
@example(["a NOT LIKE '_%'", "NOT a < 'x'"])
@example(["a LIKE '_%'", "NOT a < 'x'"])
@settings(max_examples=80)
def test_conjunctions_on_one_attribute_are_decided_exactly(texts: list[str]) -> None:
    check_exact(texts[:1], texts[1:])


def check_exact(a: list[str], b: list[str]) -> None:
    f, g = parse(" AND ".join(a)), parse(" AND ".join(b))
    states_f, states_g = allowed_by_all(a), allowed_by_all(b)
    for wide, narrow, states_wide, states_narrow in ((f, g, states_f, states_g), (g, f, states_g, states_f)):
        impossible = not all(states_narrow.values())
        included = all(states_narrow[name] <= states_wide[name] for name in generated.NAMES)
        assert wide.covers(narrow) is (impossible or included)
    assert f.overlaps(g) is all(states_f[name] & states_g[name] for name in generated.NAMES)


PLAIN = generated.simple_texts(patterns=False)
SMALL_DISJUNCTIONS = st.lists(st.lists(PLAIN, min_size=1, max_size=3), min_size=1, max_size=4)


@given(SMALL_DISJUNCTIONS, SMALL_DISJUNCTIONS)
@settings(max_examples=80)
def test_disjunctions_are_decided_exactly(wide: list[list[str]], narrow: list[list[str]]) -> None:
    """States that no conjunction distinguishes are merged; so few remain that every combination can be tried.

    There is no pattern here, so one string that no filter names represents all others.
    """
    boxes = [allowed_by_all(texts) for texts in wide + narrow]
    kinds = [{tuple(i in box[name] for box in boxes) for i in range(len(generated.WORLD))} for name in generated.NAMES]
    inside = [[all(bits) for bits in zip(*event, strict=True)] for event in product(*kinds)]
    expected = all(any(bits[: len(wide)]) or not any(bits[len(wide) :]) for bits in inside)
    f, g = (parse(" OR ".join(f"({' AND '.join(texts)})" for texts in filter_)) for filter_ in (wide, narrow))
    assert f.covers(g) is expected
    assert f.overlaps(g) is any(any(bits[: len(wide)]) and any(bits[len(wide) :]) for bits in inside)


MANY_EVENTS = st.lists(generated.events, min_size=5, max_size=30)


@pytest.mark.slow
@given(generated.filters, generated.filters, MANY_EVENTS)
@settings(max_examples=80)
def test_answers_are_safe(f: Filter, g: Filter, events: list[dict[str, Any]]) -> None:
    both = parse(f"({f.text}) AND ({g.text})")
    either = parse(f"({f.text}) OR ({g.text})")
    neither = parse(f"NOT ({either.text})")
    holds = {each.text: _holds(each, events) for each in (f, g, both, either, neither)}
    for wide, narrow in ((f, g), (g, f), (f, both), (both, f), (either, f), (f, either), (neither, f), (f, neither)):
        covers, overlaps = wide.covers(narrow), wide.overlaps(narrow)
        for event, in_wide, in_narrow in zip(events, holds[wide.text], holds[narrow.text], strict=True):
            assert not (covers and in_narrow and not in_wide), event
            assert overlaps or not (in_narrow and in_wide), event


def _holds(filter_: Filter, events: list[dict[str, Any]]) -> list[bool]:
    condition = filter_.condition
    return [oracle.truth(condition, event) is True for event in events]
