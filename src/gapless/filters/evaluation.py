"""Evaluates a filter against one event, as a tree of closures.

Three-valued logic is split into two questions with boolean answers: is the condition *true*, and is it *false*? Unknown
is neither. Each question compiles to its own closures, and NOT just swaps the questions:

    true(a AND b) = true(a) and true(b)        false(a AND b) = false(a) or false(b)
    true(a OR b)  = true(a) or true(b)         false(a OR b)  = false(a) and false(b)
    true(NOT a)   = false(a)                   false(NOT a)   = true(a)

A comparison is false exactly if the opposite comparison is true, since both are unknown together. Matching asks only
the first question, and stops at the first part that decides it.

Values of events are exactly str, int, float and bool. Any other value counts as missing. A bool is not a number. A
float that is not a number (NaN) exists (IS NOT NULL) but makes every comparison unknown. Integers and floats compare by
their exact values; an integer beyond 64 bits counts as a float (see `arithmetic`), which matters only for constants of
that size, so only their comparisons check for it. Strings compare by code point, character by character, as Python,
SQLite and Spark do by default.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from gapless.events import INTEGER_MAX, INTEGER_MIN
from gapless.filters.arithmetic import OPERATIONS, Number, fold, negate, number_of
from gapless.filters.like import ANY_RUN, Pattern
from gapless.filters.like_matcher import matcher
from gapless.filters.syntax import (
    MIRRORED,
    OPPOSITE,
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
    Value,
)

Attributes = Mapping[str, Value]
Test = Callable[[Attributes], bool]
Reader = Callable[[Attributes], Any]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_test(condition: Condition, wanted: bool) -> Test:
    """Return a closure that tests whether the condition is `wanted`, true or false. Unknown is neither."""
    match condition:
        case Constant(value):
            return _always if value == wanted else _never
        case Truth(attribute):
            return _boolean_is(attribute.name, wanted)
        case Comparison(symbol, left, right):
            return _comparison(symbol if wanted else OPPOSITE[symbol], left, right)
        case In(operand, values):
            return _in(operand, values, wanted)
        case Like(attribute, pattern):
            return _like(attribute.name, pattern, wanted)
        case IsNull(attribute):
            return _absent(attribute.name, wanted)
        case Not(inner):
            return compile_test(inner, not wanted)
        case And(conditions):
            return _every(conditions, wanted) if wanted else _any(conditions, wanted)
        case Or(conditions):
            return _any(conditions, wanted) if wanted else _every(conditions, wanted)


def _always(_: Attributes) -> bool:
    return True


def _never(_: Attributes) -> bool:
    return False


def _every(conditions: tuple[Condition, ...], wanted: bool) -> Test:
    if wanted and (between := _between(conditions)):
        return between
    tests = [compile_test(condition, wanted) for condition in conditions]
    # Unrolled for the most frequent lengths: a loop takes twice as long.
    if len(tests) == 2:
        a, b = tests
        return lambda attributes: a(attributes) and b(attributes)
    if len(tests) == 3:
        a, b, c = tests
        return lambda attributes: a(attributes) and b(attributes) and c(attributes)
    if len(tests) == 4:
        a, b, c, d = tests
        return lambda attributes: a(attributes) and b(attributes) and c(attributes) and d(attributes)

    def every(attributes: Attributes) -> bool:
        for test in tests:  # noqa: SIM110 - a generator would cost a frame for each event
            if not test(attributes):
                return False
        return True

    return every


def _between(conditions: tuple[Condition, ...]) -> Test | None:
    """Return one closure for `name BETWEEN constant AND constant`."""
    match conditions:
        case (
            Comparison(">=", Attribute(name), Literal(low)),
            Comparison("<=", Attribute(other), Literal(high)),
        ) if name == other and isinstance(low, str) and isinstance(high, str):
            return _string_between(name, low, high)
        case (
            Comparison(">=", Attribute(name), Literal(low)),
            Comparison("<=", Attribute(other), Literal(high)),
        ) if name == other and _is_exact(low) and _is_exact(high):

            def between(attributes: Attributes) -> bool:
                value: Any = attributes.get(name)
                kind = type(value)
                return (kind is int or kind is float) and low <= value <= high

            return between
    return None


def _string_between(name: str, low: str, high: str) -> Test:
    def between(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        return type(value) is str and low <= value <= high

    return between


def _any(conditions: tuple[Condition, ...], wanted: bool) -> Test:
    tests = [compile_test(condition, wanted) for condition in conditions]

    def some(attributes: Attributes) -> bool:
        for test in tests:  # noqa: SIM110 - a generator would cost a frame for each event
            if test(attributes):
                return True
        return False

    return some


def _boolean_is(name: str, wanted: bool) -> Test:
    return lambda attributes: attributes.get(name) is wanted


def _absent(name: str, wanted: bool) -> Test:
    def absent(attributes: Attributes) -> bool:
        return (type(attributes.get(name)) not in VALUE_TYPES) is wanted

    return absent


VALUE_TYPES = frozenset((str, int, float, bool))


def _like(name: str, pattern: Pattern, wanted: bool) -> Test:
    *head, last = pattern.tokens or ("",)
    if last == ANY_RUN and all(len(token) == 1 for token in head):
        prefix = "".join(head)

        def starts(attributes: Attributes) -> bool:
            value: Any = attributes.get(name)
            return type(value) is str and value.startswith(prefix) is wanted

        return starts
    matches = matcher(pattern)

    def like(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        return type(value) is str and matches(value) is wanted

    return like


def _in(operand: Expression, values: tuple[Value, ...], wanted: bool) -> Test:
    members = frozenset(values)
    if isinstance(values[0], str):
        if isinstance(operand, Literal):
            return _always if (operand.value in members) is wanted else _never
        assert isinstance(operand, Attribute), "the parser allows no arithmetic with strings"
        name = operand.name

        def string_in(attributes: Attributes) -> bool:
            value: Any = attributes.get(name)
            return type(value) is str and (value in members) is wanted

        return string_in
    read = _number_reader(operand)

    def number_in(attributes: Attributes) -> bool:
        value = read(attributes)
        return value is not None and (value in members) is wanted

    return number_in


def _comparison(symbol: str, left: Expression, right: Expression) -> Test:
    a, b = fold(left), fold(right)
    if a is None or b is None:
        return _never
    if isinstance(a, Literal) and isinstance(b, Literal):
        return _always if _COMPARE[symbol](a.value, b.value) else _never
    if isinstance(a, Literal):
        symbol, a, b = MIRRORED[symbol], b, a
    if isinstance(a, Attribute) and isinstance(b, Literal):
        return _attribute_with_constant(symbol, a.name, b.value)
    if isinstance(a, Attribute) and isinstance(b, Attribute):
        return _same_type(symbol, a.name, b.name)
    return _numbers(symbol, _number_reader(a), _number_reader(b))


def _attribute_with_constant(symbol: str, name: str, constant: Value) -> Test:
    if isinstance(constant, bool):
        return _boolean_is(name, constant if symbol == "=" else not constant)
    if isinstance(constant, str):
        if symbol in ("=", "<>"):
            return _string_is(name, constant, wanted=symbol == "=")
        compare = _COMPARE[symbol]

        def string(attributes: Attributes) -> bool:
            value: Any = attributes.get(name)
            return type(value) is str and compare(value, constant)

        return string
    if not _is_exact(constant):
        return _numbers(symbol, _number_attribute(name), lambda _: constant)
    if symbol == "<>":

        def differs(attributes: Attributes) -> bool:
            value: Any = attributes.get(name)
            kind = type(value)
            return (kind is int or kind is float) and value != constant and value == value

        return differs
    # One closure for each operator: a call of operator.gt would double the cost of the most frequent
    # tests.
    return _NUMBER_TESTS[symbol](name, constant)


def _string_is(name: str, constant: str, *, wanted: bool) -> Test:
    """Return a closure that tests equality with a string. It avoids a call of operator.eq, because this is the most
    frequent test.
    """

    def string_is(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        return type(value) is str and (value == constant) is wanted

    return string_is


def _greater(name: str, constant: Number) -> Test:
    def greater(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        kind = type(value)
        return (kind is int or kind is float) and value > constant

    return greater


def _at_least(name: str, constant: Number) -> Test:
    def at_least(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        kind = type(value)
        return (kind is int or kind is float) and value >= constant

    return at_least


def _less(name: str, constant: Number) -> Test:
    def less(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        kind = type(value)
        return (kind is int or kind is float) and value < constant

    return less


def _at_most(name: str, constant: Number) -> Test:
    def at_most(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        kind = type(value)
        return (kind is int or kind is float) and value <= constant

    return at_most


def _equal(name: str, constant: Number) -> Test:
    def equal(attributes: Attributes) -> bool:
        value: Any = attributes.get(name)
        kind = type(value)
        return (kind is int or kind is float) and value == constant

    return equal


_NUMBER_TESTS: dict[str, Callable[[str, Number], Test]] = {
    ">": _greater,
    ">=": _at_least,
    "<": _less,
    "<=": _at_most,
    "=": _equal,
}


def _same_type(symbol: str, left: str, right: str) -> Test:
    """Return a closure that compares two attributes: numbers, strings, or for = and <> booleans. Attributes of
    different types compare as unknown.
    """
    compare, is_ordered = _COMPARE[symbol], symbol not in ("=", "<>")

    def same(attributes: Attributes) -> bool:
        a: Any = attributes.get(left)
        b: Any = attributes.get(right)
        kind = _FAMILY.get(type(a))
        if kind is None or kind != _FAMILY.get(type(b)) or (is_ordered and kind == "boolean"):
            return False
        if kind == "number":
            a, b = number_of(a), number_of(b)
        return a == a and b == b and compare(a, b)

    return same


_FAMILY: dict[type, str] = {str: "string", int: "number", float: "number", bool: "boolean"}


def _numbers(symbol: str, left: Reader, right: Reader) -> Test:
    compare = _COMPARE[symbol]

    def test(attributes: Attributes) -> bool:
        a = left(attributes)
        if a is None:
            return False
        b = right(attributes)
        return b is not None and compare(a, b)

    return test


def _number_reader(expression: Expression) -> Reader:
    """Return a closure that evaluates a numeric expression, to None for null."""
    folded = fold(expression)
    match folded:
        case None:
            return lambda _: None
        case Literal(value):
            return lambda _: value
        case Attribute(name):
            return _number_attribute(name)
        case Negate(operand):
            inner = _number_reader(operand)

            def negated(attributes: Attributes) -> Number | None:
                value = inner(attributes)
                return None if value is None else negate(value)

            return negated
        case Arithmetic(symbol, left, right):
            return _operation(OPERATIONS[symbol], _number_reader(left), _number_reader(right))


def _number_attribute(name: str) -> Reader:
    def read(attributes: Attributes) -> Number | None:
        value: Any = attributes.get(name)
        kind = type(value)
        return number_of(value) if (kind is int or kind is float) and value == value else None

    return read


def _is_exact(constant: Value) -> bool:
    """Return whether comparing integers beyond 64 bits with the constant gives the same results as comparing the floats
    that they count as.
    """
    return isinstance(constant, int | float) and INTEGER_MIN < constant < INTEGER_MAX


def _operation(operation: Callable[[Number, Number], Number | None], left: Reader, right: Reader) -> Reader:
    def read(attributes: Attributes) -> Number | None:
        a = left(attributes)
        if a is None:
            return None
        b = right(attributes)
        return None if b is None else operation(a, b)

    return read
