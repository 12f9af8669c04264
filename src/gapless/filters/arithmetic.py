"""Arithmetic on the numbers of events: 64-bit integers and floats, with null for undefined results.

The rules are those of Spark SQL's try_add, try_subtract, try_multiply and try_divide:

- an integer with an integer gives an integer, or null on overflow of 64 bits;
- if one side is a float, both are converted to floats;
- `/` always divides floats (7 / 2 is 3.5); division by zero gives null;
- not-a-number is null, so it is never an operand or a result of arithmetic. Infinity is a number.

An event from the network contains no other integers. An event created locally can: an integer beyond 64 bits counts as
the nearest float, everywhere, and beyond the range of floats as infinity.

`fold` replaces constant parts by their values, so later stages see `price > 2 * 5` as `price > 10`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import inf

from gapless.events import INTEGER_MAX, INTEGER_MIN
from gapless.filters.syntax import Arithmetic, Attribute, Expression, Literal, Negate

Number = int | float
_FOLDED = (Attribute, Literal)


def number_of(value: Number) -> Number:
    """Return the 64-bit integer or float that represents a number in an event."""
    if isinstance(value, float) or INTEGER_MIN <= value <= INTEGER_MAX:
        return value
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def negate(value: Number) -> Number | None:
    return _checked(-value)


def apply(symbol: str, left: Number, right: Number) -> Number | None:
    """Return the value of `left symbol right`, or None for null."""
    return OPERATIONS[symbol](left, right)


def _divide(left: Number, right: Number) -> Number | None:
    return _checked(float(left) / float(right)) if right != 0 else None


def _checking(operation: Callable[[Number, Number], Number]) -> Callable[[Number, Number], Number | None]:
    return lambda left, right: _checked(operation(left, right))


def _checked(value: Number) -> Number | None:
    if isinstance(value, int):
        return value if INTEGER_MIN <= value <= INTEGER_MAX else None
    return value if value == value else None


OPERATIONS: dict[str, Callable[[Number, Number], Number | None]] = {
    "+": _checking(operator.add),
    "-": _checking(operator.sub),
    "*": _checking(operator.mul),
    "/": _divide,
}


def fold(expression: Expression) -> Expression | None:
    """Return the expression with constant arithmetic evaluated; None if its value is always null."""
    if isinstance(expression, _FOLDED):
        return expression
    if isinstance(expression, Negate):
        inner = fold(expression.operand)
        if inner is None:
            return None
        return _literal(negate(_number(inner))) if isinstance(inner, Literal) else Negate(inner)
    a, b = fold(expression.left), fold(expression.right)
    if a is None or b is None:
        return None
    if isinstance(a, Literal) and isinstance(b, Literal):
        return _literal(apply(expression.operator, _number(a), _number(b)))
    return Arithmetic(expression.operator, a, b)


def _literal(value: Number | None) -> Literal | None:
    return None if value is None else Literal(value)


def _number(literal: Literal) -> Number:
    assert isinstance(literal.value, int | float), "the parser admits only numbers to arithmetic"
    return literal.value
