"""Translates a filter into a Spark column with the same results as `Filter.evaluate`: true, false, or null for unknown.

    frame.where(column_over_json(parse("price < 10"), F.col("attributes")))    # JSON text, as in `events.attributes`
    frame.where(column_over_frame(parse("price < 10"), frame))                 # ordinary typed columns

Filters have four types and never convert between them, except that integers and floats are both numbers. A Spark column
has one type. So an attribute becomes up to four columns, of which at most one is not null: a string, an integer, a
float, a boolean. Each node of the filter then has a counterpart whose nulls are the filter's unknowns:

- AND, OR and NOT are Spark's, which has the same three values.
- Integers and floats compare by their exact values; Spark would convert the integer to a float first.
- Arithmetic that overflows 64 bits, divides by zero or gives not-a-number is null, and so is not-a-number itself. Each
  intermediate result is named once (`_let`), so a column grows with the filter's length, not with its depth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from gapless.errors import FilterError
from gapless.events import INTEGER_MAX, INTEGER_MIN
from gapless.filters import Filter
from gapless.filters.arithmetic import fold
from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern
from gapless.filters.syntax import (
    MIRRORED,
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

__all__ = ["column_over_frame", "column_over_json"]


def column_over_json(filter: Filter, attributes: Column) -> Column:
    """Return the filter over attributes in a column of JSON text."""
    names = list(dict.fromkeys(_names(filter.condition)))
    if not names:
        return _condition(filter.condition, lambda _: _Typed())

    def typed(parsed: Column) -> Column:
        return F.struct(*(_from_json(parsed, name).alias(f"a{place}") for place, name in enumerate(names)))

    def answer(values: Column) -> Column:
        return _condition(filter.condition, lambda name: _of_struct(values[f"a{names.index(name)}"]))

    # The text is parsed once, and each attribute's type is determined once.
    return _let(_let(F.from_json(attributes, "variant"), typed), answer)


def column_over_frame(filter: Filter, frame: DataFrame) -> Column:
    """Return the filter over the columns of a frame. A column that does not exist is a missing attribute."""
    types = {field.name: field.dataType for field in frame.schema.fields}

    def read(name: str) -> _Typed:
        return _from_column(filter, name, types[name]) if name in types else _Typed()

    return _condition(filter.condition, read)


# ---- attributes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Typed:
    """A value, by type: at most one of the columns is not null in a row. None: null in every row."""

    string: Column | None = None
    integer: Column | None = None
    float: Column | None = None
    boolean: Column | None = None

    @property
    def number(self) -> _Typed:
        """Return the value as a number; null if it is not one."""
        return _Typed(integer=self.integer, float=_no_nan(self.float))

    @property
    def is_there(self) -> Column:
        columns = [c for c in (self.string, self.integer, self.float, self.boolean) if c is not None]
        return _balanced([column.isNotNull() for column in columns], Column.__or__) if columns else F.lit(False)


_Reader = Callable[[str], _Typed]


def _from_json(attributes: Column, name: str) -> Column:
    """Return the attribute as one column, a struct with one field for each type."""
    path = f"$['{name}']"
    if "'" in name:
        # A JSON path cannot express such a name; a map accepts any, but copies all attributes.
        attributes, path = F.try_element_at(attributes.cast("map<string, variant>"), F.lit(name)), "$"

    def of(wanted: Column, spark_type: str) -> Column:
        return F.when(wanted, F.try_variant_get(attributes, path, spark_type)).alias(spark_type)

    kind = F.schema_of_variant(F.try_variant_get(attributes, path, "variant"))
    return F.struct(
        of(kind == "STRING", "string"),
        of(kind == "BIGINT", "bigint"),
        # Spark reads a JSON number with a decimal point as a decimal unless it is cast to a float.
        of(kind.startswith("D"), "double"),
        of(kind == "BOOLEAN", "boolean"),
    )


def _of_struct(column: Column) -> _Typed:
    return _Typed(column["string"], column["bigint"], column["double"], column["boolean"])


def _names(node: Condition | Expression) -> Iterator[str]:
    """Return the attributes that a filter reads, with repetitions."""
    match node:
        case Attribute(name):
            yield name
        case Truth(inner) | Not(inner) | IsNull(inner) | Negate(inner) | Like(inner) | In(inner):
            yield from _names(inner)
        case Comparison(_, left, right) | Arithmetic(_, left, right):
            yield from _names(left)
            yield from _names(right)
        case And(conditions) | Or(conditions):
            for condition in conditions:
                yield from _names(condition)


def _from_column(filter: Filter, name: str, kind: T.DataType) -> _Typed:
    column = F.col("`" + name.replace("`", "``") + "`")
    match kind:
        case T.StringType():
            return _Typed(string=column)
        case T.BooleanType():
            return _Typed(boolean=column)
        case T.ByteType() | T.ShortType() | T.IntegerType() | T.LongType():
            return _Typed(integer=column.cast("bigint"))
        case T.FloatType() | T.DoubleType() | T.DecimalType():
            return _Typed(float=column.cast("double"))
    message = f"column {name} is of type {kind.simpleString()}, but filters support only strings, numbers and booleans"
    raise FilterError(message, filter.text, max(0, filter.text.find(name)))


# ---- conditions -----------------------------------------------------------------------------------------------


def _condition(condition: Condition, read: _Reader) -> Column:
    match condition:
        case Constant(value):
            return F.lit(value)
        case Truth(attribute):
            return _or_unknown(read(attribute.name).boolean)
        case Comparison(symbol, left, right):
            return _comparison(symbol, left, right, read)
        case In(operand, values):
            return _in(operand, values, read)
        case Like(attribute, pattern):
            string = read(attribute.name).string
            return _or_unknown(None if string is None else F.like(string, F.lit(_like_text(pattern)), F.lit("\\")))
        case IsNull(attribute):
            return ~read(attribute.name).is_there
        case Not(inner):
            return ~_condition(inner, read)
        case And(conditions):
            return _balanced([_condition(each, read) for each in conditions], Column.__and__)
        case Or(conditions):
            return _balanced([_condition(each, read) for each in conditions], Column.__or__)


def _or_unknown(*choices: Column | None) -> Column:
    """Return the first one that is not null."""
    known = [choice for choice in choices if choice is not None]
    if not known:
        return F.lit(None).cast("boolean")
    return known[0] if len(known) == 1 else F.coalesce(*known)


def _balanced(columns: Sequence[Column], join: Callable[[Column, Column], Column]) -> Column:
    """Combine many columns without building a deep tree of them."""
    if len(columns) == 1:
        return columns[0]
    middle = len(columns) // 2
    return join(_balanced(columns[:middle], join), _balanced(columns[middle:], join))


def _like_text(pattern: Pattern) -> str:
    wildcards = {ANY_RUN: "%", ANY_ONE: "_", "%": "\\%", "_": "\\_", "\\": "\\\\"}
    return "".join(wildcards.get(token, token) for token in pattern.tokens)


def _comparison(symbol: str, left: Expression, right: Expression, read: _Reader) -> Column:
    a, b = _simple(left, read), _simple(right, read)
    if a is None or b is None:
        both = F.struct(_number(left, read).alias("a"), _number(right, read).alias("b"))
        return _let(both, lambda v: _or_unknown(_compared(symbol, _of_number(v["a"]), _of_number(v["b"]))))
    choices = [_compared(symbol, a.number, b.number)]
    for one, other in ((a.string, b.string), (a.boolean if symbol in ("=", "<>") else None, b.boolean)):
        if one is not None and other is not None:
            choices.append(_OPERATORS[symbol](one, other))
    return _or_unknown(*choices)


def _in(operand: Expression, values: tuple[Value, ...], read: _Reader) -> Column:
    value = _simple(operand, read)
    if value is None:
        return _let(_number(operand, read), lambda v: _number_in(_of_number(v), values))
    if isinstance(values[0], str):
        return _or_unknown(None if value.string is None else value.string.isin(list(values)))
    return _number_in(value.number, values)


def _number_in(number: _Typed, values: tuple[Value, ...]) -> Column:
    integers = sorted({int(v) for v in values if _is_exact(v) and INTEGER_MIN <= v <= INTEGER_MAX})  # type: ignore[operator]
    floats = sorted({float(v) + 0.0 for v in values if float(v) == v})
    return _or_unknown(
        None if number.integer is None else _among(number.integer, integers),
        # Adding 0.0 turns -0.0 into 0.0.
        None if number.float is None else _among(number.float + F.lit(0.0), floats),
    )


def _is_exact(value: Value) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _among(column: Column, values: Sequence[int | float]) -> Column:
    return column.isin(list(values)) if values else F.when(column.isNotNull(), F.lit(False))


# ---- numbers --------------------------------------------------------------------------------------------------

_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def _compared(symbol: str, a: _Typed, b: _Typed) -> Column | None:
    """Compare two numbers; each is an integer or a float, so one of four comparisons is not null."""
    compare = _OPERATORS[symbol]
    choices = [
        None if a.integer is None or b.integer is None else compare(a.integer, b.integer),
        None if a.float is None or b.float is None else compare(a.float, b.float),
        None if a.integer is None or b.float is None else _mixed(symbol, a.integer, b.float),
        None if a.float is None or b.integer is None else _mixed(MIRRORED[symbol], b.integer, a.float),
    ]
    return _or_unknown(*choices) if any(choice is not None for choice in choices) else None


def _mixed(symbol: str, integer: Column, real: Column) -> Column:
    """Compare an integer with a float exactly: i < x is i < ⌈x⌉, i <= x is i <= ⌊x⌋, if ⌈x⌉ and ⌊x⌋ fit into
    64 bits."""
    whole = F.floor(real) if symbol in ("<=", ">", "=", "<>") else F.ceil(real)
    within = _OPERATORS[symbol](integer, whole)
    if symbol == "=":
        within = within & (real == F.floor(real).cast("double"))
    elif symbol == "<>":
        within = within | (real != F.floor(real).cast("double"))
    known = integer.isNotNull() & real.isNotNull()
    above = F.lit(symbol in ("<", "<=", "<>"))
    below = F.lit(symbol in (">", ">=", "<>"))
    return F.when(known, F.when(real >= F.lit(2.0**63), above).when(real < F.lit(-(2.0**63)), below).otherwise(within))


def _simple(expression: Expression, read: _Reader) -> _Typed | None:
    """Return the value of an attribute or a constant; None for an expression."""
    match fold(expression):
        case None:
            return _Typed()
        case Literal(value):
            return _literal(value)
        case Attribute(name):
            return read(name)
        case _:
            return None


def _literal(value: Value) -> _Typed:
    if isinstance(value, bool):
        return _Typed(boolean=F.lit(value))
    if isinstance(value, str):
        return _Typed(string=F.lit(value))
    if isinstance(value, int):
        return _Typed(integer=F.lit(value).cast("bigint"))
    return _Typed(float=F.lit(value))


def _number(expression: Expression, read: _Reader) -> Column:
    """Return a number as one column, a struct of the integer and the float."""
    match fold(expression):
        case Negate(operand):
            return _let(_number(operand, read), lambda v: _to_struct(_negated(_of_number(v))))
        case Arithmetic(symbol, left, right):
            both = F.struct(_number(left, read).alias("a"), _number(right, read).alias("b"))
            return _let(both, lambda v: _to_struct(_computed(symbol, _of_number(v["a"]), _of_number(v["b"]))))
    value = _simple(expression, read)
    assert value is not None
    return _to_struct(value.number)


def _let(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use(value)`, with the value computed once however often it is used."""
    return F.get(F.transform(F.array(value), use), F.lit(0))


def _to_struct(number: _Typed) -> Column:
    nothing = F.lit(None)
    integer = nothing if number.integer is None else number.integer
    real = nothing if number.float is None else number.float
    return F.struct(integer.cast("bigint").alias("integer"), real.cast("double").alias("float"))


def _of_number(column: Column) -> _Typed:
    return _Typed(integer=column["integer"], float=column["float"])


def _negated(number: _Typed) -> _Typed:
    assert number.integer is not None
    assert number.float is not None
    return _Typed(integer=F.try_subtract(F.lit(0).cast("bigint"), number.integer), float=-number.float)


_INTEGERS: dict[str, Callable[[Column, Column], Column]] = {
    "+": F.try_add,
    "-": F.try_subtract,
    "*": F.try_multiply,
}
_FLOATS: dict[str, Callable[[Column, Column], Column]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: F.when(b != F.lit(0.0), F.try_divide(a, b)),
}


def _computed(symbol: str, a: _Typed, b: _Typed) -> _Typed:
    assert a.integer is not None
    assert b.integer is not None
    x, y = (F.coalesce(n.float, n.integer.cast("double")) for n in (a, b))  # type: ignore[arg-type,union-attr]
    result = _FLOATS[symbol](x, y)
    if symbol == "/":
        return _Typed(float=_no_nan(result))
    # Two integers give an integer, if it fits; the float result is only used with a float operand.
    integers = a.integer.isNotNull() & b.integer.isNotNull()
    return _Typed(integer=_INTEGERS[symbol](a.integer, b.integer), float=_no_nan(F.when(~integers, result)))


def _no_nan(column: Column | None) -> Column | None:
    return None if column is None else F.when(~F.isnan(column), column)
