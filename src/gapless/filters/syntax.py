"""The syntax tree of filters, used for evaluation, covering, the index and Spark columns.

There are two families of frozen nodes. An *expression* has a value (a string, a number, a boolean, or null); a
*condition* is true, false or unknown. The parser expands the shorthands that SQL defines, exactly, in three-valued
logic:

    x BETWEEN a AND b      x >= a AND x <= b
    x NOT IN (…)           NOT x IN (…)               likewise NOT BETWEEN, NOT LIKE, IS NOT NULL
    a != b                 a <> b
    flag                   Truth(flag)                a boolean attribute as a condition

So there are nine kinds of condition and four of expression. `render` writes a tree back as filter text; equal trees
give equal text, and parsing that text gives the tree again.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import msgspec

from gapless.filters.like import Pattern
from gapless.filters.names import render_name

Value = str | int | float | bool


class Node(msgspec.Struct, frozen=True, gc=False):
    """Base class of all nodes of a syntax tree."""


class Literal(Node, frozen=True, gc=False):
    """A constant: a string, a 64-bit integer, a finite float or a boolean."""

    value: Value


class Attribute(Node, frozen=True, gc=False):
    """The value of the event's attribute of this name; null if the event has none."""

    name: str


class Negate(Node, frozen=True, gc=False):
    """The negation of a number."""

    operand: Expression


class Arithmetic(Node, frozen=True, gc=False):
    """`left operator right`, where operator is one of + - * /."""

    operator: str
    left: Expression
    right: Expression


class Constant(Node, frozen=True, gc=False):
    """TRUE or FALSE as a condition."""

    value: bool


class Truth(Node, frozen=True, gc=False):
    """A boolean attribute as a condition, which is equivalent to `attribute = TRUE`."""

    attribute: Attribute


class Comparison(Node, frozen=True, gc=False):
    """`left operator right`, where operator is one of = <> < <= > >=."""

    operator: str
    left: Expression
    right: Expression


class In(Node, frozen=True, gc=False):
    """The condition that the operand equals one of the values, which are all strings or all numbers."""

    operand: Expression
    values: tuple[Value, ...]


class Like(Node, frozen=True, gc=False):
    """The condition that the attribute is a string which matches the pattern as a whole."""

    attribute: Attribute
    pattern: Pattern


class IsNull(Node, frozen=True, gc=False):
    """The condition that the event has no such attribute. It is never unknown."""

    attribute: Attribute


class Not(Node, frozen=True, gc=False):
    """The negation of a condition: swaps true and false, and leaves unknown."""

    condition: Condition


class And(Node, frozen=True, gc=False):
    """A conjunction: false if one condition is false, else unknown if one is unknown, else true."""

    conditions: tuple[Condition, ...]


class Or(Node, frozen=True, gc=False):
    """A disjunction: true if one condition is true, else unknown if one is unknown, else false."""

    conditions: tuple[Condition, ...]


Expression = Literal | Attribute | Negate | Arithmetic
Condition = Constant | Truth | Comparison | In | Like | IsNull | Not | And | Or

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""The opposite of each operator: NOT (a op b) is equivalent to a OPPOSITE[op] b, because both are unknown in the same
cases."""

MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The operator with its sides swapped: a op b is equivalent to b MIRRORED[op] a."""


def attributes_of(node: Expression | Condition) -> Iterator[str]:
    """Yield the names of the attributes in an expression or condition, from left to right, with repetitions."""
    match node:
        case Attribute(name):
            yield name
        case Negate(operand):
            yield from attributes_of(operand)
        case Arithmetic(_, left, right):
            yield from attributes_of(left)
            yield from attributes_of(right)
        case Comparison(_, left, right):
            yield from attributes_of(left)
            yield from attributes_of(right)
        case Truth(attribute) | Like(attribute, _) | IsNull(attribute):
            yield attribute.name
        case In(operand, _):
            yield from attributes_of(operand)
        case Not(condition):
            yield from attributes_of(condition)
        case And(conditions) | Or(conditions):
            for each in conditions:
                yield from attributes_of(each)


def render(node: Expression | Condition) -> str:
    """Return the node as filter text, with every parenthesis that could matter."""
    match node:
        case Literal(value):
            return render_value(value)
        case Attribute(name):
            return render_name(name)
        case Negate(operand):
            return f"(- {render(operand)})"
        case Arithmetic(operator, left, right):
            return f"({render(left)} {operator} {render(right)})"
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Truth(attribute):
            return render(attribute)
        case Comparison(operator, left, right):
            return f"{render(left)} {operator} {render(right)}"
        case In(operand, values):
            return f"{render(operand)} IN ({', '.join(map(render_value, values))})"
        case Like(attribute, pattern):
            return f"{render(attribute)} LIKE {_like(pattern)}"
        case IsNull(attribute):
            return f"{render(attribute)} IS NULL"
        case Not(condition):
            return f"NOT ({render(condition)})"
        case And(conditions):
            return " AND ".join(f"({render(condition)})" for condition in conditions)
        case Or(conditions):
            return " OR ".join(f"({render(condition)})" for condition in conditions)


def render_value(value: Value) -> str:
    """Return a literal as filter text."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if value in (inf, -inf):
        # No literal is infinite, but folded arithmetic can be; a bare `inf` would read as an attribute.
        return "(1e308 * 10)" if value > 0 else "(-1e308 * 10)"
    return repr(value)


def _like(pattern: Pattern) -> str:
    text, escaped = pattern.to_text("!")
    return render_value(text) + (" ESCAPE '!'" if escaped else "")
