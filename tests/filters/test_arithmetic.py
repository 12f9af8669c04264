"""Folding constants leaves no arithmetic without attributes, and gives null where there is no value."""

from __future__ import annotations

import pytest

from gapless.filters.arithmetic import fold
from gapless.filters.parser import parse_condition
from gapless.filters.syntax import Comparison, render


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("1 + 2 * 3", "7"),
        ("1 / 4", "0.25"),
        ("-(1 + 2)", "-3"),
        ("a + 1 + 2", "((a + 1) + 2)"),
        ("a + (1 + 2)", "(a + 3)"),
        ("9223372036854775807 + 1", None),
        ("-(-9223372036854775808)", None),
        ("a + 1 / 0", None),
        ("1e308 * 10", "(1e308 * 10)"),
        ("1e308 * 10 - 1e308 * 10", None),
        ("9223372036854775807 + 1.0", "9.223372036854776e+18"),
    ],
)
def test_fold(text: str, folded: str | None) -> None:
    condition = parse_condition(f"{text} = 1")
    assert isinstance(condition, Comparison)
    result = fold(condition.left)
    assert (None if result is None else render(result)) == folded
