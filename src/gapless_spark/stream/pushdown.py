"""Pushes conditions of a query down to brokers, as filters and as ends of the range to read.

Spark passes conditions that must all hold. A condition that is pushed down as a filter must accept at least all events
for which it is true. If it accepts no others, Spark need not check it again. In Spark, an attribute whose type differs
from its column's is null, and no comparison holds for null; in a filter, such a comparison is unknown, which is
equivalent. The two differ in these cases:

- An integer column is null for a float, but `n > 5` is true of 5.5: Spark checks again.
- A double column rounds integers. Beyond 2^53 that matters, so such bounds are left to Spark.
- A float column rounds everything, so it is left to Spark.
- Values read from a text or another number (TIMESTAMP, DATE, DECIMAL) are left to Spark.
- `IS NULL` would have to accept attributes of another type: it is left to Spark.
"""

from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any

from pyspark.sql import datasource as ds
from pyspark.sql.types import FloatType, StructType

from gapless.errors import FilterError
from gapless.filters import parse
from gapless.filters.names import render_name
from gapless_spark.stream.columns import ATTRIBUTES, STANDARD
from gapless_spark.stream.conversions import CONVERTED

__all__ = ["Pushdown"]

_EXACT = 2**53


@dataclass(frozen=True)
class _Translation:
    text: str
    is_exact: bool


class Pushdown:
    """The conditions of a query that are pushed down."""

    def __init__(self, schema: StructType) -> None:
        self.since = 0
        self.until: int | None = None
        """Only events with timestamps after `since` and up to `until` can match."""
        self._texts: list[str] = []
        self._kinds = {
            field.name: ATTRIBUTES[type(field.dataType)]
            for field in schema.fields
            if field.name not in STANDARD and not isinstance(field.dataType, (FloatType, *CONVERTED))
        }

    def take(self, condition: ds.Filter) -> bool:
        """Push the condition down as far as possible; return whether Spark need not check it again."""
        column = _column(condition)
        if column == "published_at":
            return self._narrow(condition)
        found = _translated(condition, column, self._kinds[column]) if column in self._kinds else None
        if found is None or not _is_good(found.text):
            return False
        self._texts.append(found.text)
        return found.is_exact

    def filter(self, text: str) -> str:
        """Return the filter that brokers evaluate, given the query's own filter and these conditions."""
        return " AND ".join(f"({part})" for part in (text, *self._texts)) if self._texts else text

    def _narrow(self, condition: ds.Filter) -> bool:
        """Apply a condition on timestamps to the range; return whether it is one."""
        if isinstance(condition, ds.IsNotNull):
            return True
        if not isinstance(
            condition, ds.EqualTo | ds.GreaterThan | ds.GreaterThanOrEqual | ds.LessThan | ds.LessThanOrEqual
        ):
            return False
        stamp = _stamp(condition.value)
        if stamp is None:
            return False
        if not isinstance(condition, ds.LessThan | ds.LessThanOrEqual):
            self.since = max(self.since, stamp - (not isinstance(condition, ds.GreaterThan)))
        if not isinstance(condition, ds.GreaterThan | ds.GreaterThanOrEqual):
            last = stamp - isinstance(condition, ds.LessThan)
            self.until = last if self.until is None else min(self.until, last)
        return True


def _column(condition: ds.Filter) -> str:
    inner = condition.child if isinstance(condition, ds.Not) else condition
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _stamp(value: Any) -> int | None:
    if not isinstance(value, datetime):
        return None
    return int(value.timestamp() // 1) * 1_000_000 + value.microsecond


def _is_good(text: str) -> bool:
    """Return whether brokers accept the filter; they refuse one that is too long."""
    try:
        parse(text)
    except FilterError:
        return False
    return True


def _translated(condition: ds.Filter, column: str, kind: type) -> _Translation | None:
    name = render_name(column)
    match condition:
        case ds.Not(inner):
            # The negation of a condition that accepts too much would accept too little.
            if isinstance(inner, ds.EqualTo | ds.In | ds.StringStartsWith | ds.StringEndsWith | ds.StringContains):
                found = _translated(inner, column, kind)
                if found is not None and found.is_exact:
                    return _Translation(f"NOT ({found.text})", is_exact=True)
        case ds.IsNotNull():
            return _not_null(name, kind)
        case ds.EqualTo(_, value):
            return _compared(name, "=", value, kind)
        case ds.In(_, values):
            options = [_literal(value, kind) for value in values]
            if options and None not in options and kind is not bool:
                return _Translation(f"{name} IN ({', '.join(map(str, options))})", kind is not int)
        case ds.LessThan(_, value):
            return _compared(name, "<", value, kind)
        case ds.LessThanOrEqual(_, value):
            return _compared(name, "<=", value, kind)
        case ds.GreaterThan(_, value):
            return _compared(name, ">", value, kind)
        case ds.GreaterThanOrEqual(_, value):
            return _compared(name, ">=", value, kind)
        case ds.StringStartsWith(_, value) if kind is str:
            return _like(name, f"{_escaped(value)}%")
        case ds.StringEndsWith(_, value) if kind is str:
            return _like(name, f"%{_escaped(value)}")
        case ds.StringContains(_, value) if kind is str:
            return _like(name, f"%{_escaped(value)}%")
    return None


def _not_null(name: str, kind: type) -> _Translation:
    """Return a filter that is true if there is a value of the column's type."""
    if kind is str:
        return _Translation(f"{name} LIKE '%'", is_exact=True)
    if kind is bool:
        return _Translation(f"{name} = TRUE OR {name} = FALSE", is_exact=True)
    if kind is float:
        return _Translation(f"{name} < 0 OR {name} >= 0", is_exact=True)
    return _Translation(f"{name} IS NOT NULL", is_exact=False)


def _compared(name: str, operator: str, value: Any, kind: type) -> _Translation | None:
    literal = _literal(value, kind)
    if literal is None or (operator != "=" and kind is bool):
        return None
    return _Translation(f"{name} {operator} {literal}", kind is not int)


def _literal(value: Any, kind: type) -> str | None:
    """Return the value as a literal of a filter; None if that is not possible, or would mean something else."""
    if kind is str:
        return "'" + value.replace("'", "''") + "'" if type(value) is str else None
    if kind is bool:
        return ("TRUE" if value else "FALSE") if type(value) is bool else None
    if type(value) is int and -_EXACT < value < _EXACT:
        return str(value)
    if type(value) is float and isfinite(value) and abs(value) < _EXACT and kind is float:
        return repr(value)
    return None


def _like(name: str, pattern: str) -> _Translation:
    quoted = pattern.replace("'", "''")
    return _Translation(f"{name} LIKE '{quoted}' ESCAPE '!'", is_exact=True)


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
