"""Converts filters to their normal form: a bounded disjunction of conjunctions, for covering and the index.

A conjunction maps attributes to constraints (see `constraints`) and has *opaque* conditions, those
that are not about one attribute and a constant. An event matches the filter exactly if it matches
one of the conjunctions, that is, every constraint and every opaque condition of it. Conjunctions
with an unsatisfiable constraint are dropped, so an empty disjunction is a filter that never
matches, and a conjunction without constraints matches everything.

As in evaluation, the tree is read with a question, true or false, that NOT swaps; unknown never
reaches the result. Disjuncts that differ in one attribute only are joined if their union is one
constraint, so `a = 'x' OR a = 'y'` is a single conjunction, as `a IN ('x', 'y')` is.

Multiplying out AND over OR can explode. A factor that would push the number of conjunctions over
the bound stays an opaque condition instead: still evaluated, but not analysed. A filter as a whole
may take NORMALISING_MAX steps. If it would take more, or become too large, it is processed again:
of its parts joined by AND, the shortest first, those that are a single conjunction are kept as far
as a second allowance suffices, and the others stay opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
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
from gapless.filters.work import OutOfWork, Work

CONJUNCTIONS_MAX = 64
"""Maximum number of conjunctions of one filter: covering compares them pairwise, and each takes a
place in the index.
"""

JOINED_MAX = 16
"""Maximum number of disjuncts among which joinable pairs are searched for, which takes quadratic time."""


CONSTRAINTS_MAX = 1024
"""Maximum number of constraints in all conjunctions of one filter: each takes a place in a column
of the index.
"""

NORMALISING_MAX, PARTS_MAX = 64_000, 16_000
"""The maximum number of steps for normalizing a filter as a whole, and then, if that is not enough, by its parts:
together less than 0.1 s. Typical filters take a few dozen, an IN list of 4,000 values as many, 2,000 values joined by
OR 54,000."""


SHARED_MAX, SHARED_LENGTH_MAX = 4096, 64
"""The number and the length of short strings whose comparisons share one constraint across filters."""


class Conjunction(msgspec.Struct, frozen=True, gc=False):
    """A conjunction: constraints by attribute, none of them trivial or empty, and the texts of opaque conditions."""

    constraints: dict[str, Constraint]
    opaque: frozenset[str] = frozenset()


Disjunction = tuple[Conjunction, ...]

NEVER: Disjunction = ()
ALWAYS: Disjunction = (Conjunction({}),)


def normalise(condition: Condition) -> Disjunction:
    """Return the normal form: a list of conjunctions. The condition is true for an event that matches one of them."""
    return normalise_and_count(condition)[0]


def normalise_and_count(condition: Condition) -> tuple[Disjunction, int]:
    """Return the normal form, and the number of steps that computing it took."""
    work, rest = Work(NORMALISING_MAX), Work(PARTS_MAX)
    try:
        disjunction = _read(condition, True, work)
        if sum(len(conjunction.constraints) for conjunction in disjunction) > CONSTRAINTS_MAX:
            disjunction = _by_parts(condition, rest)
    except OutOfWork:
        disjunction = _by_parts(condition, rest)
    return disjunction, NORMALISING_MAX - max(work.left, 0) + PARTS_MAX - max(rest.left, 0)


def _by_parts(condition: Condition, work: Work) -> Disjunction:
    """Return a conjunction of the parts of the condition that are single conjunctions and need few steps. The others
    stay opaque.
    """
    if not isinstance(condition, And):
        return (Conjunction({}, frozenset((render(condition),))),)
    kept, opaque = ALWAYS[0], set[str]()
    for text, part in sorted(((render(part), part) for part in condition.conditions), key=lambda item: len(item[0])):
        try:
            joined = [both for each in _read(part, True, work) if (both := _both(kept, each, work)) is not None]
        except OutOfWork:
            opaque.add(text)
            continue
        if not joined:
            return NEVER
        if len(joined) == 1 and len(joined[0].constraints) <= CONSTRAINTS_MAX:
            kept = joined[0]
        else:
            opaque.add(text)
    return (Conjunction(kept.constraints, kept.opaque | opaque),)


def _read(condition: Condition, wanted: bool, work: Work) -> Disjunction:
    work.spend(1)
    return _READERS[type(condition)](condition, wanted, work)


def _constant(condition: Constant, wanted: bool, _: Work) -> Disjunction:
    return ALWAYS if condition.value == wanted else NEVER


def _truth(condition: Truth, wanted: bool, work: Work) -> Disjunction:
    return _single(condition.attribute.name, constraints.boolean(wanted), work)


def _like(condition: Like, wanted: bool, work: Work) -> Disjunction:
    strings = string_sets.like(condition.pattern, wanted)
    return _single(condition.attribute.name, constraints.of_strings(strings), work)


def _is_null(condition: IsNull, wanted: bool, work: Work) -> Disjunction:
    return _single(condition.attribute.name, constraints.ABSENT if wanted else constraints.PRESENT, work)


def _not(condition: Not, wanted: bool, work: Work) -> Disjunction:
    return _read(condition.condition, not wanted, work)


def _and(condition: And, wanted: bool, work: Work) -> Disjunction:
    return _all(condition.conditions, True, work) if wanted else _some(condition.conditions, False, work)


def _or(condition: Or, wanted: bool, work: Work) -> Disjunction:
    return _some(condition.conditions, True, work) if wanted else _all(condition.conditions, False, work)


def _comparison(condition: Comparison, wanted: bool, work: Work) -> Disjunction:
    symbol = condition.operator if wanted else OPPOSITE[condition.operator]
    a, b = fold(condition.left), fold(condition.right)
    if a is None or b is None:
        return NEVER
    if isinstance(a, Literal):
        symbol, a, b = MIRRORED[symbol], b, a
    if isinstance(a, Literal):
        return ALWAYS if compile_test(Comparison(symbol, a, b), True)({}) else NEVER
    if isinstance(a, Attribute) and isinstance(b, Literal):
        return _single(a.name, _compared(symbol, b.value), work)
    needed = ANY_NUMBER
    if isinstance(a, Attribute) and isinstance(b, Attribute):
        needed = constraints.PRESENT if symbol in ("=", "<>") else constraints.ORDERED
    return _opaque(Comparison(symbol, a, b), (a, b), needed)


def _compared(symbol: str, constant: Value) -> Constraint:
    if isinstance(constant, bool):
        return constraints.boolean(constant if symbol == "=" else not constant)
    if isinstance(constant, str):
        return (_shared if len(constant) <= SHARED_LENGTH_MAX else _compared_string)(symbol, constant)
    return constraints.of_numbers(number_sets.compared(symbol, constant))


def _compared_string(symbol: str, constant: str) -> Constraint:
    return constraints.of_strings(string_sets.compared(symbol, constant))


_shared = lru_cache(SHARED_MAX)(_compared_string)


def _in(condition: In, wanted: bool, work: Work) -> Disjunction:
    a, values = fold(condition.operand), condition.values
    work.spend(len(values))
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
        return _single(a.name, constraints.of_strings(chosen), work)
    numbers = number_sets.of_values(frozenset(value for value in values if not isinstance(value, str)))
    return _single(a.name, constraints.of_numbers(numbers if wanted else number_sets.complement(numbers)), work)


def _single(name: str, constraint: Constraint, work: Work) -> Disjunction:
    return NEVER if constraints.is_empty(constraint, work) else (Conjunction({name: constraint}),)


def _opaque(condition: Condition, operands: tuple[Expression, ...], needed: Constraint) -> Disjunction:
    """Return the normal form of an opaque comparison, with its requirements on each attribute."""
    names = (name for operand in operands for name in attributes_of(operand))
    return (Conjunction(dict.fromkeys(names, needed), frozenset((render(condition),))),)


def _all(conditions: Sequence[Condition], wanted: bool, work: Work) -> Disjunction:
    factors = [_read(condition, wanted, work) for condition in conditions]
    joined = _balanced([factor[0] for factor in factors if len(factor) == 1], _both, ALWAYS[0], work)
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
        product = tuple(both for a in product for b in factor if (both := _both(a, b, work)) is not None)
    if large:
        texts = frozenset(_rendered(condition if wanted else Not(condition), work) for condition in large)
        work.spend(len(product) * len(texts))
        product = tuple(Conjunction(a.constraints, a.opaque | texts) for a in product)
    return product


def _rendered(condition: Condition, work: Work) -> str:
    """Return the text of an opaque condition. A condition can be rendered again at every level above it."""
    text = render(condition)
    work.spend(len(text) // 8)
    return text


def _balanced(
    items: list[Conjunction],
    join: Callable[[Conjunction, Conjunction, Work], Conjunction | None],
    empty: Conjunction,
    work: Work,
) -> Conjunction | None:
    """Join all items pairwise, neighbours first. So a long chain on one attribute takes n log n steps, not n²."""
    while len(items) > 1:
        pairs = [join(a, b, work) for a, b in zip(items[::2], items[1::2], strict=False)]
        joined = [pair for pair in pairs if pair is not None]
        if len(joined) < len(pairs):
            return None
        items = joined + items[len(pairs) * 2 :]
    return items[0] if items else empty


def _both(a: Conjunction, b: Conjunction, work: Work) -> Conjunction | None:
    """Return the conjunction of two conjunctions, or None if no state of some attribute satisfies both."""
    work.spend(1 + len(a.constraints) + len(a.opaque) + len(b.constraints) + len(b.opaque))
    if not a.constraints and not a.opaque:
        return b
    merged = dict(a.constraints)
    for name, constraint in b.constraints.items():
        known = merged.get(name)
        if known is not None:
            constraint = constraints.intersection(known, constraint, work)
            if constraints.is_empty(constraint, work):
                return None
        merged[name] = constraint
    return Conjunction(merged, a.opaque | b.opaque if a.opaque and b.opaque else a.opaque or b.opaque)


def _some(conditions: Sequence[Condition], wanted: bool, work: Work) -> Disjunction:
    parts = [_read(condition, wanted, work) for condition in conditions]
    disjuncts = [conjunction for part in parts for conjunction in part]
    join = _joined if len(disjuncts) <= JOINED_MAX else _joined_alike
    disjuncts = list(join(disjuncts, work))
    if len(disjuncts) <= CONJUNCTIONS_MAX:
        return tuple(disjuncts)
    whole = Or(tuple(condition if wanted else Not(condition) for condition in conditions))
    return (Conjunction({}, frozenset((_rendered(whole, work),))),)


def _joined(disjuncts: Sequence[Conjunction], work: Work) -> Iterator[Conjunction]:
    """Yield the disjuncts, with pairs joined until no pair can be joined."""
    waiting, kept = list(reversed(disjuncts)), list[Conjunction]()
    while waiting:
        candidate = waiting.pop()
        for i, other in enumerate(kept):
            union = _union(other, candidate, work)
            if union is not None:
                del kept[i]
                waiting.append(union)
                break
        else:
            kept.append(candidate)
    return iter(kept)


def _joined_alike(disjuncts: Sequence[Conjunction], work: Work) -> Iterator[Conjunction]:
    """Yield the disjuncts, with conditions on the same single attribute joined, as in long chains of `a = 1 OR a = 2 OR
    …`.
    """
    by_name: dict[str, list[Conjunction]] = {}
    for disjunct in disjuncts:
        if len(disjunct.constraints) == 1 and not disjunct.opaque:
            ((name, constraint),) = disjunct.constraints.items()
            if not constraint.strings.patterned:
                by_name.setdefault(name, []).append(disjunct)
                continue
        yield disjunct
    for alike in by_name.values():
        joined = _balanced(alike, _union, alike[0], work)
        assert joined is not None, "a union with patterns may not be possible"
        yield joined


def _union(a: Conjunction, b: Conjunction, work: Work) -> Conjunction | None:
    """Return the union of two conjunctions, or None if it is not a conjunction because they differ in several
    attributes.
    """
    work.spend(1 + len(a.opaque) + len(b.opaque) + _weight(a) + _weight(b))
    if a.opaque != b.opaque:
        return None
    names = [*a.constraints, *(name for name in b.constraints if name not in a.constraints)]
    differing = [name for name in names if a.constraints.get(name) != b.constraints.get(name)]
    if len(differing) > 1:
        return None
    if not differing:
        return a
    name = differing[0]
    union = constraints.union(a.constraints.get(name, ANYTHING), b.constraints.get(name, ANYTHING), work)
    if union is None:
        return None
    merged = {**a.constraints, name: union}
    if union == ANYTHING:
        del merged[name]
    return Conjunction(merged, a.opaque)


def _weight(conjunction: Conjunction) -> int:
    return sum(map(constraints.weight, conjunction.constraints.values()))


_READERS: dict[type[Condition], Callable[[Any, bool, Work], Disjunction]] = {
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
