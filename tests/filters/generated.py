"""Generated filters and events from a small world with many boundary cases.

There are few names, few strings, and a few numbers with their neighbours. So filters often match events, bounds often
meet values, and a sample of the values distinguishes any two constraints that can be written with these constants.
"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from gapless.filters import Filter, parse
from gapless.filters.syntax import render_value

NAMES = ("a", "b", "c.d")
QUOTED = ("order-id", "in", "1st", "it's", 'a"b', "a b", "x:y", "@t", "")
"""Names that need quotes in a filter."""
STRINGS = ("", "x", "xy", "yx", "xyx", "%", "it's")
NUMBERS: tuple[int | float, ...] = (-1, 0, 1, 2, 0.5, 1.5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 1e300)
PATTERNS = ("%", "", "x", "x%", "%x", "%y%", "_", "x_", "_%", "x%x", "__%", "%!%", "!_")

numbers = st.sampled_from(NUMBERS)
strings = st.sampled_from(STRINGS)
names = st.sampled_from(NAMES)


def neighbours(value: int | float) -> list[int | float]:
    """Return the value, the closest floats, and the closest integers that fit in 64 bits."""
    near: list[int | float] = [value, float(value), math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    if abs(value) < 2**64:
        near += [i for i in (math.floor(value), math.floor(value) + 1, math.ceil(value) - 1) if -(2**63) <= i < 2**63]
    return near


WORLD: tuple[Any, ...] = (
    None,
    True,
    False,
    math.nan,
    math.inf,
    -math.inf,
    *STRINGS,
    *("z", "zz", "xz", "zx", "yy", "_", "x%", "xzx", "zyz", "zzz", "xx"),
    *(text + "\0" for text in STRINGS),
    *("w", "x\U0010ffff", "y", "\U0010ffff"),
    *dict.fromkeys((type(near), near) for number in NUMBERS for near in neighbours(number)),
)
WORLD = tuple(item[1] if isinstance(item, tuple) else item for item in WORLD)
"""Every relevant state of one attribute; None stands for an absent attribute."""

frequent = st.sampled_from((0, 1, 2, 1.5, "x", "xy", True))
"""States that many generated filters mention, so that events often match."""
values = st.one_of(frequent, frequent, st.sampled_from([state for state in WORLD if state is not None]))
events = st.dictionaries(names, values)

BEYOND = (2**63, 2**63 + 1025, 2**63 + 1500, 2**64, -(2**63) - 1, -(2**64), 10**300, 10**300 + 1, 10**400, -(10**400))
"""Integers beyond 64 bits, which only an incorrect client can send."""
events_by_hand = st.dictionaries(names, st.one_of(frequent, st.sampled_from(BEYOND), values))


@st.composite
def simple_texts(draw: st.DrawFn, about: st.SearchStrategy[str] = names, patterns: bool = True) -> str:
    name = draw(about)
    kind = draw(st.integers(0, 9) if patterns else st.sampled_from((0, 1, 2, 3, 4, 5, 6, 8, 9)))
    maybe_not = draw(st.sampled_from(("", "NOT ")))
    if kind <= 2:
        operator = draw(st.sampled_from(("=", "<>", "<", "<=", ">", ">=")))
        text = f"{name} {operator} {render_value(draw(numbers))}"
    elif kind == 3:
        text = f"{name} {draw(st.sampled_from(('=', '<>', '<', '<=', '>', '>=')))} {render_value(draw(strings))}"
    elif kind == 4:
        text = f"{name} {draw(st.sampled_from(('=', '<>')))} {draw(st.sampled_from(('TRUE', 'FALSE')))}"
    elif kind == 5:
        listed = draw(st.lists(draw(st.sampled_from((numbers, strings))), min_size=1, max_size=3))
        return f"{name} {maybe_not}IN ({', '.join(map(render_value, listed))})"
    elif kind == 6:
        bounds = draw(st.sampled_from((numbers, numbers, strings)))
        low, high = draw(bounds), draw(bounds)
        return f"{name} {maybe_not}BETWEEN {render_value(low)} AND {render_value(high)}"
    elif kind == 7:
        pattern = draw(st.sampled_from(PATTERNS))
        return f"{name} {maybe_not}LIKE '{pattern}' ESCAPE '!'"
    elif kind == 8:
        return f"{name} IS {maybe_not}NULL"
    else:
        text = name
    return maybe_not + text


conjunctions = st.lists(simple_texts(), min_size=1, max_size=4).map(" AND ".join).map(parse)


@st.composite
def number_texts(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 5 if depth else 1))
    if kind == 0:
        return draw(names)
    if kind == 1:
        return render_value(draw(numbers))
    if kind == 2:
        return f"-({draw(number_texts(depth - 1))})"
    operator = draw(st.sampled_from("+-*/"))
    return f"({draw(number_texts(depth - 1))} {operator} {draw(number_texts(depth - 1))})"


@st.composite
def opaque_texts(draw: st.DrawFn) -> str:
    """Return comparisons of expressions: arithmetic, and attributes with attributes."""
    if draw(st.booleans()):
        return f"{draw(names)} {draw(st.sampled_from(('=', '<>', '<', '>=')))} {draw(names)}"
    left, right = draw(number_texts()), draw(number_texts())
    if draw(st.integers(0, 4)) == 0:
        return f"{left} IN ({render_value(draw(numbers))}, 3)"
    return f"{left} {draw(st.sampled_from(('=', '<>', '<', '<=', '>', '>=')))} {right}"


def any_texts() -> st.SearchStrategy[str]:
    leaves = st.one_of(simple_texts(), simple_texts(), opaque_texts(), st.sampled_from(("TRUE", "FALSE")))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            inner.map(lambda text: f"NOT ({text})"),
            st.lists(inner, min_size=2, max_size=3).map(lambda texts: " AND ".join(f"({text})" for text in texts)),
            st.lists(inner, min_size=2, max_size=3).map(lambda texts: " OR ".join(f"({text})" for text in texts)),
        ),
        max_leaves=8,
    )


filters: st.SearchStrategy[Filter] = any_texts().map(parse)
