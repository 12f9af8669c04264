"""A filter as a bounded disjunction of conjunctions: the form that covering and the index work on.

A conjunction maps attributes to constraints (see `constraints`) and adds *opaque* conditions, those that are not about
one attribute and a constant. An event matches the filter exactly if it matches one of the conjunctions, that is, every
constraint and every opaque condition of it. No conjunction is kept of which one constraint allows nothing, so an empty
disjunction is a filter that never matches, and a conjunction that asks nothing matches everything.

As in evaluation, the tree is read with a question, true or false, that NOT swaps; unknown never reaches the result.
Disjuncts that differ in one attribute only are joined where their union is one constraint, so that
`a = 'x' OR a = 'y'` is a single conjunction, as `a IN ('x', 'y')` is.

Multiplying out AND over OR can explode. A factor that would push the number of conjunctions over the bound stays an
opaque condition instead: still evaluated, no longer understood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from gapless.filters import constraints, number_sets, string_sets
from gapless.filters.arithmetic import fold
from gapless.filters.constraints import ANY_NUMBER, ANYTHING, Constraint
from gapless.filters.evaluation import compile_test
from gapless.filters.syntax import (
    MIRRORED,
    OPPOSITE,
    And,
    Attribute,
    Comparison,
    Condition,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Truth,
    Value,
    attributes_of,
    render,
)

CONJUNCTIONS_MAX = 64
"""Conjunctions of one filter: covering compares them pairwise, and each takes a place in the index."""

JOINED_MAX = 16
"""Disjuncts among which pairs that can be joined are looked for: it takes their square."""


class Conjunction(msgspec.Struct, frozen=True, gc=False):
    """Constraints by attribute, none of them trivial or empty, and the texts of the opaque conditions."""

    constraints: dict[str, Constraint]
    opaque: frozenset[str] = frozenset()


Disjunction = tuple[Conjunction, ...]

NEVER: Disjunction = ()
ALWAYS: Disjunction = (Conjunction({}),)


def normalise(condition: Condition) -> Disjunction:
    """The conjunctions of which an event must match one for the condition to be true."""
    return _read(condition, True)


def _read(condition: Condition, wanted: bool) -> Disjunction:
    return _READERS[type(condition)](condition, wanted)


def _constant(condition: Constant, wanted: bool) -> Disjunction:
    return ALWAYS if condition.value == wanted else NEVER


def _truth(condition: Truth, wanted: bool) -> Disjunction:
    return _single(condition.attribute.name, constraints.boolean(wanted))


def _like(condition: Like, wanted: bool) -> Disjunction:
    return _single(condition.attribute.name, constraints.of_strings(string_sets.like(condition.pattern, wanted)))


def _is_null(condition: IsNull, wanted: bool) -> Disjunction:
    return _single(condition.attribute.name, constraints.ABSENT if wanted else constraints.PRESENT)


def _not(condition: Not, wanted: bool) -> Disjunction:
    return _read(condition.condition, not wanted)


def _and(condition: And, wanted: bool) -> Disjunction:
    return _all(condition.conditions, True) if wanted else _some(condition.conditions, False)


def _or(condition: Or, wanted: bool) -> Disjunction:
    return _some(condition.conditions, True) if wanted else _all(condition.conditions, False)


def _comparison(condition: Comparison, wanted: bool) -> Disjunction:
    symbol = condition.operator if wanted else OPPOSITE[condition.operator]
    a, b = fold(condition.left), fold(condition.right)
    if a is None or b is None:
        return NEVER
    if isinstance(a, Literal):
        symbol, a, b = MIRRORED[symbol], b, a
    if isinstance(a, Literal):
        return ALWAYS if compile_test(Comparison(symbol, a, b), True)({}) else NEVER
    if isinstance(a, Attribute) and isinstance(b, Literal):
        return _single(a.name, _compared(symbol, b.value))
    numeric = symbol not in ("=", "<>") or not (isinstance(a, Attribute) and isinstance(b, Attribute))
    return _opaque(Comparison(symbol, a, b), (a, b), ANY_NUMBER if numeric else constraints.PRESENT)


def _compared(symbol: str, constant: Value) -> Constraint:
    if isinstance(constant, bool):
        return constraints.boolean(constant if symbol == "=" else not constant)
    if isinstance(constant, str):
        one = frozenset((constant,))
        return constraints.of_strings(string_sets.of_values(one) if symbol == "=" else string_sets.all_but(one))
    return constraints.of_numbers(number_sets.compared(symbol, constant))


def _in(condition: In, wanted: bool) -> Disjunction:
    a, values = fold(condition.operand), condition.values
    if a is None:
        return NEVER
    if isinstance(a, Literal):
        return ALWAYS if (a.value in values) is wanted else NEVER
    if not isinstance(a, Attribute):
        member = In(a, values)
        return _opaque(member if wanted else Not(member), (a,), ANY_NUMBER)
    strings = frozenset(value for value in values if isinstance(value, str))
    if strings:
        chosen = string_sets.of_values(strings) if wanted else string_sets.all_but(strings)
        return _single(a.name, constraints.of_strings(chosen))
    numbers = number_sets.of_values(frozenset(value for value in values if not isinstance(value, str)))
    return _single(a.name, constraints.of_numbers(numbers if wanted else number_sets.complement(numbers)))


def _single(name: str, constraint: Constraint) -> Disjunction:
    return NEVER if constraints.is_empty(constraint) else (Conjunction({name: constraint}),)


def _opaque(condition: Condition, operands: tuple[Expression, ...], needed: Constraint) -> Disjunction:
    """An opaque comparison, with what it needs of each attribute to be known at all."""
    names = (name for operand in operands for name in attributes_of(operand))
    return (Conjunction(dict.fromkeys(names, needed), frozenset((render(condition),))),)


def _all(conditions: Sequence[Condition], wanted: bool) -> Disjunction:
    factors = [_read(condition, wanted) for condition in conditions]
    joined = _balanced([factor[0] for factor in factors if len(factor) == 1], _both, ALWAYS[0])
    if joined is None or NEVER in factors:
        return NEVER
    product: Disjunction = (joined,)
    large: list[Condition] = []
    for condition, factor in zip(conditions, factors, strict=True):
        if len(factor) == 1:
            continue
        if len(product) * len(factor) > CONJUNCTIONS_MAX:
            large.append(condition)
            continue
        product = tuple(both for a in product for b in factor if (both := _both(a, b)) is not None)
    if large:
        texts = frozenset(render(condition if wanted else Not(condition)) for condition in large)
        product = tuple(Conjunction(a.constraints, a.opaque | texts) for a in product)
    return product


def _balanced(
    items: list[Conjunction], join: Callable[[Conjunction, Conjunction], Conjunction | None], empty: Conjunction
) -> Conjunction | None:
    """All items joined, neighbours first: a long chain on one attribute takes n log n steps, not their square."""
    while len(items) > 1:
        pairs = [join(a, b) for a, b in zip(items[::2], items[1::2], strict=False)]
        joined = [pair for pair in pairs if pair is not None]
        if len(joined) < len(pairs):
            return None
        items = joined + items[len(pairs) * 2 :]
    return items[0] if items else empty


def _both(a: Conjunction, b: Conjunction) -> Conjunction | None:
    """The conjunction of two, or None if one attribute is left no state."""
    if not a.constraints and not a.opaque:
        return b
    merged = dict(a.constraints)
    for name, constraint in b.constraints.items():
        known = merged.get(name)
        if known is not None:
            constraint = constraints.intersection(known, constraint)
            if constraints.is_empty(constraint):
                return None
        merged[name] = constraint
    return Conjunction(merged, a.opaque | b.opaque)


def _some(conditions: Sequence[Condition], wanted: bool) -> Disjunction:
    parts = [_read(condition, wanted) for condition in conditions]
    disjuncts = [conjunction for part in parts for conjunction in part]
    join = _joined if len(disjuncts) <= JOINED_MAX else _joined_alike
    disjuncts = list(join(disjuncts))
    if len(disjuncts) <= CONJUNCTIONS_MAX:
        return tuple(disjuncts)
    whole = Or(tuple(condition if wanted else Not(condition) for condition in conditions))
    return (Conjunction({}, frozenset((render(whole),))),)


def _joined(disjuncts: Sequence[Conjunction]) -> Iterator[Conjunction]:
    """The same disjunction with pairs joined until no pair can be."""
    waiting, kept = list(reversed(disjuncts)), list[Conjunction]()
    while waiting:
        candidate = waiting.pop()
        for i, other in enumerate(kept):
            union = _union(other, candidate)
            if union is not None:
                del kept[i]
                waiting.append(union)
                break
        else:
            kept.append(candidate)
    return iter(kept)


def _joined_alike(disjuncts: Sequence[Conjunction]) -> Iterator[Conjunction]:
    """Joins the conditions on the same single attribute: long chains of `a = 1 OR a = 2 OR …`."""
    by_name: dict[str, list[Conjunction]] = {}
    for disjunct in disjuncts:
        if len(disjunct.constraints) == 1 and not disjunct.opaque:
            ((name, constraint),) = disjunct.constraints.items()
            if not constraint.strings.patterned:
                by_name.setdefault(name, []).append(disjunct)
                continue
        yield disjunct
    for alike in by_name.values():
        joined = _balanced(alike, _union, alike[0])
        assert joined is not None, "only patterns need not join"
        yield joined


def _union(a: Conjunction, b: Conjunction) -> Conjunction | None:
    """The union of two conjunctions if it is one, that is, if they differ in at most one attribute."""
    if a.opaque != b.opaque:
        return None
    names = [*a.constraints, *(name for name in b.constraints if name not in a.constraints)]
    differing = [name for name in names if a.constraints.get(name) != b.constraints.get(name)]
    if len(differing) > 1:
        return None
    if not differing:
        return a
    name = differing[0]
    union = constraints.union(a.constraints.get(name, ANYTHING), b.constraints.get(name, ANYTHING))
    if union is None:
        return None
    merged = {**a.constraints, name: union}
    if union == ANYTHING:
        del merged[name]
    return Conjunction(merged, a.opaque)


_READERS: dict[type[Condition], Callable[[Any, bool], Disjunction]] = {
    Constant: _constant,
    Truth: _truth,
    Comparison: _comparison,
    In: _in,
    Like: _like,
    IsNull: _is_null,
    Not: _not,
    And: _and,
    Or: _or,
}
