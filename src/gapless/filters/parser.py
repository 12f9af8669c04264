"""Parses the text of a filter into a tree, by recursive descent with SQL's precedence.

From loosest to tightest: OR, AND, NOT, the comparisons (= <> < <= > >= BETWEEN IN LIKE IS), + and -, * and /, unary
plus and minus. Parentheses can contain a condition or an expression, so one grammar reads both and each operator checks
its operands. Type errors that hold for every event (`price < 'x' + 1`, `TRUE < 3`) are reported here, with their place;
an attribute can have any type.

Depth, number of terms and search costs of patterns are bounded, so that no later stage, all of which are recursive over
the tree, can run out of stack or time on a malicious filter. The parser examines each token a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, NoReturn

from gapless.errors import FilterError
from gapless.events import INTEGER_MIN
from gapless.filters.lexer import INTEGER_MIN_DIGITS, Token, tokens_of
from gapless.filters.like import Pattern, PatternError
from gapless.filters.like_matcher import SEARCH_COST_MAX, search_cost
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
    Value,
)

DEPTH_MAX = 50
"""Maximum depth of parentheses, NOTs and arithmetic: people write fewer than ten; each level costs
every stage stack.
"""

TERMS_MAX = 4096
"""Maximum number of names and constants in one filter: an IN list of thousands fits, and one
evaluation stays below a millisecond.
"""

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
_TERMS = frozenset(("name", "number", "string"))
_ARITHMETIC = frozenset(("+", "-", "*", "/"))
_AFTER_COMPARISONS = frozenset(("AND", "OR", ")", "end"))
_EXPECTED = "expected a comparison such as price > 10"


class _Part(NamedTuple):
    """A part of the tree, with its position, its depth, and the type of its value."""

    node: Expression | Condition
    position: int
    depth: int
    type: str
    """The type: number, string or boolean, any for an attribute, or condition."""


def parse_condition(text: str) -> Condition:
    """Return the tree of a filter. Raise a `FilterError` if the text is invalid."""
    return _Parser(text).parse()


def parse_with_names(text: str) -> tuple[Condition, frozenset[str]]:
    """Return the tree of a filter, and the names of its attributes."""
    parser = _Parser(text)
    return parser.parse(), frozenset(parser.names)


_Rule = Callable[[], _Part]


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._next = 0
        self._token = self._tokens[0]
        self.names = set[str]()
        self._nesting = 0
        self._terms = 0
        self._search_cost = 0

    def parse(self) -> Condition:
        if self._token.kind == "end":
            self._fail("the filter is empty: write TRUE to match everything", self._token.position)
        part = self._or()
        if self._token.kind != "end":
            self._unexpected("the end, AND or OR")
        return self._condition(part)

    # ---- conditions ---------------------------------------------------------------------------------------

    def _or(self) -> _Part:
        return self._joined("OR", self._and, Or)

    def _and(self) -> _Part:
        return self._joined("AND", self._not, And)

    def _joined(self, keyword: str, operand: _Rule, node: type[And] | type[Or]) -> _Part:
        first = operand()
        if self._token.kind != keyword:
            return first
        conditions, depth = [self._condition(first)], first.depth
        while self._accept(keyword):
            part = operand()
            conditions.append(self._condition(part))
            depth = max(depth, part.depth)
        return self._part(node(tuple(conditions)), first.position, depth + 1, "condition")

    def _not(self) -> _Part:
        position = self._token.position
        if not self._accept("NOT"):
            return self._comparison()
        with self._deeper(position):
            part = self._not()
        return self._part(Not(self._condition(part)), position, part.depth + 1, "condition")

    def _comparison(self) -> _Part:
        plain = self._plain_comparison()
        if plain is not None:
            return plain
        left = self._sum()
        token = self._token
        if token.kind in _COMPARISONS:
            part = self._compared(left, self._advance())
        elif token.kind == "IS":
            self._advance()
            part = self._is_null(left)
        elif token.kind in ("NOT", "BETWEEN", "IN", "LIKE"):
            negated = self._accept("NOT")
            part = self._special(left)
            if negated:
                part = self._part(Not(self._condition(part)), left.position, part.depth + 1, "condition")
        else:
            return left
        if self._token.kind in _COMPARISONS or self._token.kind in ("IS", "NOT", "BETWEEN", "IN", "LIKE"):
            self._fail("comparisons cannot be chained: join two of them with AND", self._token.position)
        return part

    def _plain_comparison(self) -> _Part | None:
        """Return the next comparison if it is of a name with a constant, and AND, OR, a parenthesis or the end follows.
        Most are, and these need no descent. Return None for all others.
        """
        tokens, first = self._tokens, self._next
        name = tokens[first]
        if name.kind != "name" or first + 3 >= len(tokens):
            return None
        _, operator, constant, after = tokens[first : first + 4]
        type_ = constant.kind
        if (
            operator.kind not in _COMPARISONS
            or after.kind not in _AFTER_COMPARISONS
            or not (type_ == "string" or (type_ == "number" and not _is_minimum(constant)))
        ):
            return None
        self._terms += 2
        if self._terms > TERMS_MAX:
            self._count_term(name.position)
        self._next = first + 3
        self._token = after
        node = Comparison(operator.kind, self._named(name), Literal(constant.value))
        return _Part(node, name.position, 2, "condition")

    def _compared(self, left: _Part, operator: Token) -> _Part:
        if operator.kind == "=" and self._token.kind == "=" and self._token.position == operator.position + 1:
            self._fail("equality is written with a single =", self._token.position)
        right = self._sum()
        for side in (left, right):
            if side.type == "condition":
                self._fail("a condition cannot be compared: join conditions with AND, OR, NOT", side.position)
            if operator.kind not in ("=", "<>") and side.type == "boolean":
                self._fail(f"a boolean can be compared only by = and <>, not by {operator.kind}", side.position)
        self._comparable(left, right)
        depth = max(left.depth, right.depth) + 1
        node = Comparison(operator.kind, _expression(left), _expression(right))
        return self._part(node, left.position, depth, "condition")

    def _comparable(self, left: _Part, right: _Part) -> None:
        if "any" not in (left.type, right.type) and left.type != right.type:
            self._fail(f"a {left.type} cannot be compared with a {right.type}", right.position)

    def _is_null(self, left: _Part) -> _Part:
        negated = self._accept("NOT")
        self._expect("NULL")
        node: Condition = IsNull(self._attribute(left, "IS NULL"))
        return self._part(Not(node) if negated else node, left.position, 2, "condition")

    def _special(self, left: _Part) -> _Part:
        if self._accept("BETWEEN"):
            return self._between(left)
        if self._accept("IN"):
            return self._in(left)
        if self._accept("LIKE"):
            return self._like(left)
        return self._unexpected("BETWEEN, IN or LIKE")

    def _between(self, operand: _Part) -> _Part:
        low = self._sum()
        self._expect("AND")
        high = self._sum()
        for part in (operand, low, high):
            if part.type in ("boolean", "condition"):
                self._fail(f"BETWEEN takes numbers or strings, not a {part.type}", part.position)
        for left, right in ((operand, low), (operand, high), (low, high)):
            self._comparable(left, right)
        depth = max(operand.depth, low.depth, high.depth) + 2
        at_least = Comparison(">=", _expression(operand), _expression(low))
        at_most = Comparison("<=", _expression(operand), _expression(high))
        return self._part(And((at_least, at_most)), operand.position, depth, "condition")

    def _in(self, operand: _Part) -> _Part:
        if operand.type in ("boolean", "condition"):
            self._fail("IN takes an attribute or a number on its left", operand.position)
        self._expect("(")
        first = self._constant(operand.type)
        values, type_ = [_value(first)], first.type
        while self._accept(","):
            values.append(_value(self._constant(type_)))
        self._expect(")")
        return self._part(In(_expression(operand), tuple(values)), operand.position, operand.depth + 1, "condition")

    def _constant(self, wanted: str) -> _Part:
        part = self._unary()
        if not isinstance(part.node, Literal) or part.type == "boolean":
            self._fail("IN takes a list of strings or of numbers" + self._quotes_hint(part.position), part.position)
        if wanted not in ("any", part.type):
            self._fail(f"IN expects a {wanted} here, not a {part.type}", part.position)
        return part

    def _like(self, operand: _Part) -> _Part:
        attribute = self._attribute(operand, "LIKE")
        pattern = self._string("LIKE takes a pattern in single quotes")
        escape: str | None = None
        if self._accept("ESCAPE"):
            token = self._string("ESCAPE takes one character in single quotes")
            escape = str(token.value)
            if len(escape) != 1:
                self._fail("ESCAPE takes exactly one character", token.position)
        try:
            node = Like(attribute, Pattern.parse(str(pattern.value), escape))
        except PatternError as error:
            # A quote takes two characters of the text but one of the pattern.
            quotes = str(pattern.value)[: error.offset].count("'")
            self._fail(error.message, pattern.position + 1 + error.offset + quotes)
        self._search_cost += search_cost(node.pattern)
        if self._search_cost > SEARCH_COST_MAX:
            message = "the LIKE patterns of this filter cost too much: split the filter into several"
            self._fail(message, pattern.position)
        return self._part(node, operand.position, 1, "condition")

    # ---- expressions --------------------------------------------------------------------------------------

    def _sum(self) -> _Part:
        if self._token.kind in _TERMS and self._tokens[self._next + 1].kind not in _ARITHMETIC:
            # The most frequent expression by far, a name or constant alone, needs no descent.
            return self._primary()
        return self._arithmetic(("+", "-"), self._product)

    def _product(self) -> _Part:
        return self._arithmetic(("*", "/"), self._unary)

    def _arithmetic(self, operators: tuple[str, str], operand: _Rule) -> _Part:
        left = operand()
        while self._token.kind in operators:
            symbol = self._advance().kind
            right = operand()
            for part in (left, right):
                self._number(part, f"{symbol} takes numbers")
            node = Arithmetic(symbol, _expression(left), _expression(right))
            left = self._part(node, left.position, max(left.depth, right.depth) + 1, "number")
        return left

    def _unary(self) -> _Part:
        token = self._token
        if token.kind not in ("+", "-"):
            return self._primary()
        self._advance()
        if token.kind == "-" and _is_minimum(self._token):
            self._advance()
            return self._term(Literal(INTEGER_MIN), token.position, "number")
        with self._deeper(token.position):
            part = self._unary()
        self._number(part, f"{token.kind} takes a number")
        if token.kind == "+":
            return part._replace(position=token.position)
        if isinstance(part.node, Literal) and part.node.value != INTEGER_MIN:
            return part._replace(node=Literal(-part.node.value), position=token.position)  # type: ignore[operator]
        return self._part(Negate(_expression(part)), token.position, part.depth + 1, "number")

    def _primary(self) -> _Part:
        token = self._token
        if token.kind == "name":
            self._advance()
            return self._term(self._named(token), token.position, "any")
        if token.kind == "number":
            if _is_minimum(token):
                self._fail("this integer does not fit in 64 bits: write it as a float, such as 1e19", token.position)
            self._advance()
            return self._term(Literal(token.value), token.position, "number")
        if token.kind == "string":
            self._advance()
            return self._term(Literal(token.value), token.position, "string")
        if token.kind in ("TRUE", "FALSE"):
            self._advance()
            return self._term(Literal(token.kind == "TRUE"), token.position, "boolean")
        if token.kind == "(":
            self._advance()
            with self._deeper(token.position):
                part = self._or()
            self._expect(")")
            return part._replace(position=token.position)
        if token.kind == "NULL":
            self._fail("nothing equals NULL: write IS NULL or IS NOT NULL", token.position)
        return self._unexpected("a name, a constant or a parenthesis")

    def _named(self, token: Token) -> Attribute:
        name = str(token.value)
        self.names.add(name)
        return Attribute(name)

    # ---- checks of parts ----------------------------------------------------------------------------------

    def _condition(self, part: _Part) -> Condition:
        node = part.node
        if isinstance(node, Attribute):
            return Truth(node)
        if isinstance(node, Literal):
            if isinstance(node.value, bool):
                return Constant(node.value)
            self._fail(f"{_EXPECTED}, not a {part.type} alone", part.position)
        if isinstance(node, Negate | Arithmetic):
            self._fail(f"{_EXPECTED}, not a number alone", part.position)
        return node

    def _number(self, part: _Part, message: str) -> None:
        if part.type not in ("number", "any"):
            self._fail(f"{message}, not a {part.type}", part.position)

    def _attribute(self, part: _Part, operator: str) -> Attribute:
        if not isinstance(part.node, Attribute):
            self._fail(f"{operator} takes the name of an attribute on its left", part.position)
        return part.node

    def _string(self, message: str) -> Token:
        if self._token.kind != "string":
            self._fail(message + self._quotes_hint(self._token.position), self._token.position)
        self._count_term(self._token.position)
        return self._advance()

    def _quotes_hint(self, position: int) -> str:
        return "; double quotes are for names" if self._text.startswith('"', position) else ""

    # ---- bounds -------------------------------------------------------------------------------------------

    def _part(self, node: Expression | Condition, position: int, depth: int, type_: str) -> _Part:
        if depth > DEPTH_MAX:
            self._too_deep(position)
        return _Part(node, position, depth, type_)

    def _term(self, node: Attribute | Literal, position: int, type_: str) -> _Part:
        self._count_term(position)
        return _Part(node, position, 1, type_)

    def _count_term(self, position: int) -> None:
        self._terms += 1
        if self._terms > TERMS_MAX:
            self._fail(f"the filter has more than {TERMS_MAX} names and constants: split it into several", position)

    def _deeper(self, position: int) -> _Nesting:
        return _Nesting(self, position)

    def _too_deep(self, position: int) -> NoReturn:
        self._fail(f"the filter is nested deeper than {DEPTH_MAX} levels: simplify it", position)

    # ---- tokens -------------------------------------------------------------------------------------------

    def _advance(self) -> Token:
        token = self._token
        self._next += 1
        if token.kind != "end":
            self._token = self._tokens[self._next]
        return token

    def _accept(self, kind: str) -> bool:
        if self._token.kind != kind:
            return False
        self._advance()
        return True

    def _expect(self, kind: str) -> None:
        if not self._accept(kind):
            self._unexpected(kind)

    def _unexpected(self, expected: str) -> NoReturn:
        token = self._token
        found = "the end" if token.kind == "end" else self._shown(token)
        self._fail(f"expected {expected}, found {found}", token.position)

    def _shown(self, token: Token) -> str:
        following = self._tokens[self._next + 1].position
        shown = self._text[token.position : following].strip()
        return shown if len(shown) <= 30 else shown[:29] + "…"

    def _fail(self, message: str, position: int) -> NoReturn:
        raise FilterError(message, self._text, position)


class _Nesting:
    """Counts the depth of the recursive descent, and limits it."""

    def __init__(self, parser: _Parser, position: int) -> None:
        self._parser = parser
        self._position = position

    def __enter__(self) -> None:
        self._parser._nesting += 1
        if self._parser._nesting > DEPTH_MAX:
            self._parser._too_deep(self._position)

    def __exit__(self, *_: object) -> None:
        self._parser._nesting -= 1


def _is_minimum(token: Token) -> bool:
    return token.value == INTEGER_MIN_DIGITS and isinstance(token.value, int)


def _expression(part: _Part) -> Expression:
    assert isinstance(part.node, Literal | Attribute | Negate | Arithmetic), "the type of the part was checked"
    return part.node


def _value(part: _Part) -> Value:
    assert isinstance(part.node, Literal)
    return part.node.value
