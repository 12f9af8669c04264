"""Constructs an event that matches a filter from its normal form. All filters that cover this one match the event, too.

So the candidates for covering a filter are found like the filters that match an event, without
comparing pairs. Each constraint of the first conjunction gets one of its allowed states. Opaque
conditions, and patterns that exclude each other's simplest strings, are not analysed; so the result
is tested, and there may be none.
"""

from __future__ import annotations

from math import inf

from gapless.filters.constraints import TRUE_ONLY, Constraint
from gapless.filters.evaluation import Attributes, Test
from gapless.filters.like import ANY_ONE, ANY_RUN
from gapless.filters.normal_form import Disjunction
from gapless.filters.number_sets import NumberSet
from gapless.filters.string_sets import StringSet
from gapless.filters.syntax import Value

SPARE = ("", "~", "~~")
"""Strings that few filters contain, to be tried as values."""


def find_witness(disjunction: Disjunction, test: Test) -> Attributes | None:
    """Return the attributes of an event that passes the filter's test, or None if none was found."""
    if not disjunction:
        return None
    found: dict[str, Value] = {}
    for name, constraint in disjunction[0].constraints.items():
        if not constraint.absent:
            found[name] = _some_value(constraint)
    return found if test(found) else None


def _some_value(constraint: Constraint) -> Value:
    if constraint.numbers:
        return _some_number(constraint.numbers)
    if constraint.booleans:
        return bool(constraint.booleans & TRUE_ONLY)
    return _some_string(constraint.strings)


def _some_number(numbers: NumberSet) -> int | float:
    low, high = numbers[0]
    if low != -inf:
        return low
    return high if high != inf else 0


def _some_string(strings: StringSet) -> str:
    if not strings.complement:
        return min(strings.values, default="")
    if not strings.likes:
        return next((text for text in (strings.low + spare for spare in SPARE) if text not in strings.values), "")
    tokens = strings.likes[0].tokens
    return "".join("~" if token == ANY_ONE else token for token in tokens if token != ANY_RUN)
