"""A second, simple evaluation of filters: directly from the syntax tree, with three-valued logic.

It shares only the syntax tree with the code under test. Arithmetic uses exact fractions where possible, and LIKE tries
every split.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from gapless.filters.like import ANY_ONE, ANY_RUN
from gapless.filters.syntax import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Truth,
)

Attributes = Mapping[str, Any]


def truth(condition: Condition, attributes: Attributes) -> bool | None:
    match condition:
        case Constant(value):
            return value
        case Truth(attribute):
            flag = attributes.get(attribute.name)
            return flag if isinstance(flag, bool) else None
        case Comparison(operator, left, right):
            return compared(operator, value_of(left, attributes), value_of(right, attributes))
        case In(operand, values):
            left_value = value_of(operand, attributes)
            return any_of([compared("=", left_value, value) for value in values])
        case Like(attribute, pattern):
            text = attributes.get(attribute.name)
            return like(pattern.tokens, text) if isinstance(text, str) else None
        case IsNull(attribute):
            return attributes.get(attribute.name) is None
        case Not(inner):
            result = truth(inner, attributes)
            return None if result is None else not result
        case And(conditions):
            results = [truth(each, attributes) for each in conditions]
            return False if False in results else None if None in results else True
        case Or(conditions):
            return any_of([truth(each, attributes) for each in conditions])


def any_of(results: list[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False


FAMILIES = {bool: "boolean", str: "string", int: "number", float: "number"}
ORDERS: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}


def family(value: object) -> str | None:
    return FAMILIES.get(type(value)) if value == value else None  # only NaN differs from itself


def compared(operator: str, left: Any, right: Any) -> bool | None:
    kind = family(left)
    if kind is None or kind != family(right):
        return None
    if operator in ("=", "<>"):
        return bool(left == right) == (operator == "=")
    return None if kind == "boolean" else bool(ORDERS[operator](left, right))


def value_of(expression: Expression, attributes: Attributes) -> Any:
    match expression:
        case Literal(value):
            return value
        case Attribute(name):
            return plain(attributes.get(name))
        case Negate(operand):
            return number(0 - inner) if family(inner := value_of(operand, attributes)) == "number" else None
        case Arithmetic(operator, left, right):
            a, b = value_of(left, attributes), value_of(right, attributes)
            if family(a) != "number" or family(b) != "number":
                return None
            if operator == "/":
                return None if b == 0 else number(float(a) / float(b))
            return number(a + b if operator == "+" else a - b if operator == "-" else a * b)


def plain(value: Any) -> Any:
    """Return the nearest float for an integer beyond 64 bits."""
    if type(value) is not int or -(2**63) <= value < 2**63:
        return value
    return float(value) if abs(value) < 2**1023 else math.inf if value > 0 else -math.inf


def number(value: int | float) -> int | float | None:
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return value if -(2**63) <= value < 2**63 else None


def like(tokens: tuple[str, ...], text: str) -> bool:
    if not tokens:
        return text == ""
    first, rest = tokens[0], tokens[1:]
    if first == ANY_RUN:
        return any(like(rest, text[i:]) for i in range(len(text) + 1))
    return text != "" and first in (ANY_ONE, text[0]) and like(rest, text[1:])
