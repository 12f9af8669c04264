"""The normal form: which filters become one conjunction, what stays opaque, and that bounds hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from gapless.filters import Filter, parse
from gapless.filters.normal_form import CONJUNCTIONS_MAX
from tests.filters import generated, oracle


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("TRUE", 1),
        ("FALSE", 0),
        ("1 / 0 > 1", 0),
        ("a > 2 AND a < 1", 0),
        ("a = 1 AND a = 'x'", 0),
        ("a > 1 AND b", 1),
        ("a = 'x' OR a = 'y' OR a = 'z'", 1),
        ("a < 1 OR a > 5", 1),
        ("a AND b OR a AND c", 2),
        ("(a = 1 AND b = 2) OR (a = 1 AND b = 3)", 1),
        (" OR ".join(f"a = {i}" for i in range(1000)), 1),
        (" OR ".join(f"a{i}" for i in range(CONJUNCTIONS_MAX)), CONJUNCTIONS_MAX),
        (" OR ".join(f"a{i}" for i in range(CONJUNCTIONS_MAX + 1)), 1),
        (" AND ".join(f"(a{i} OR b{i})" for i in range(30)), CONJUNCTIONS_MAX),
    ],
)
def test_number_of_conjunctions(text: str, count: int) -> None:
    assert len(parse(text).disjunction) == count


def test_trivial_constraints_disappear() -> None:
    (conjunction,) = parse("(a IS NULL OR a IS NOT NULL) AND b = 1").disjunction
    assert list(conjunction.constraints) == ["b"]


def test_opaque_parts_of_filters() -> None:
    (conjunction,) = parse("a + 1 > b AND c = 1").disjunction
    assert conjunction.opaque == {"(a + 1) > b"}
    assert list(conjunction.constraints) == ["a", "b", "c"]
    (reversed_,) = parse("c = 1 AND a + 1 > b").disjunction
    assert reversed_.opaque == conjunction.opaque
    (negated,) = parse("NOT a + 1 <= b AND c = 1").disjunction
    assert negated == conjunction


@given(generated.filters, generated.events)
@settings(max_examples=250)
def test_an_event_matches_a_conjunction_exactly_if_it_matches_the_filter(f: Filter, event: dict[str, Any]) -> None:
    exact_event = parse(" AND ".join(pinned(name, event.get(name)) for name in generated.NAMES))
    possible = exact_event.overlaps(f)
    truth = oracle.truth(f.condition, event) is True
    nan = any(value != value for value in event.values())
    if truth and not nan:
        assert possible
    if all(not conjunction.opaque for conjunction in f.disjunction) and not nan:
        assert possible is truth


def pinned(name: str, value: Any) -> str:
    if value is None:
        return f"{name} IS NULL"
    if isinstance(value, float) and abs(value) == float("inf"):
        return f"{name} {'>' if value > 0 else '<'} {'' if value > 0 else '-'}1.7976931348623157e308"
    if isinstance(value, str):
        return f"{name} = '" + value.replace("'", "''") + "'"
    return f"{name} = {value!r}" if value == value else f"{name} IS NOT NULL"
