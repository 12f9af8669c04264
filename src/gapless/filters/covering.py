"""Decides whether one filter covers another, and whether both can match the same event.

Both questions are answered on normal forms, and both err on the safe side:

- `covers` is true only if every conjunction of the narrower filter is included in the wider filter.
  One conjunction includes another if each of its constraints includes the other's constraint on the
  same attribute, and each of its opaque conditions occurs literally in the other.
  Among filters of a single conjunction without opaque conditions this is also necessary: a state
  outside the wider constraint, with any allowed states for the other attributes, is an event that
  only the narrower matches.
- Several conjunctions may also include one together: the part of it outside the first is cut into
  pieces, each outside the first in one attribute, and the others must include every piece. So
  `s = 'A' AND p < 10 OR s = 'B' AND p < 20` covers `s IN ('A', 'B') AND p < 5`: the first leaves `s
  = 'B' AND p < 5`.
- `overlaps` is false only if in every pair of conjunctions some attribute has no state that both
  allow.

A comparison takes at most as many steps as `allowance` permits; after that it returns the safe
answer. A broker compares a new filter with all filters that it knows, most of them small. So the
smaller of the two filters determines the allowance: a large malicious filter does not make
comparisons with small filters slow. The allowance depends only on the two filters, so every broker
gets the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from gapless.filters import constraints
from gapless.filters.constraints import ANYTHING, Constraint
from gapless.filters.normal_form import Conjunction, Disjunction
from gapless.filters.work import OutOfWork, Work

COMPARING_MAX = 20_000
"""The maximum number of steps of one comparison, some milliseconds. Typical pairs take ten, two long lists
thousands."""

COMPARING_MIN, COMPARING_PART = 500, 100
"""The number of steps allowed for the smallest filters, and the additional steps for each part of the smaller
filter."""


def weight(disjunction: Disjunction) -> int:
    """Return the number of parts of a normal form: conjunctions, constraints, and their components."""
    return sum(
        1 + len(conjunction.opaque) + sum(1 + c.weight for c in conjunction.constraints.values())
        for conjunction in disjunction
    )


def allowance(one: int, other: int) -> int:
    """Return the maximum number of steps for comparing two filters of these weights."""
    return min(COMPARING_MAX, COMPARING_MIN + COMPARING_PART * min(one, other))


def covers(wider: Disjunction, narrower: Disjunction, steps: int = COMPARING_MAX) -> bool:
    """Return True only if every event that matches `narrower` matches `wider`."""
    work = Work(steps)
    try:
        return wider == narrower or all(_covered(conjunction, wider, work) for conjunction in narrower)
    except OutOfWork:
        return False


def overlaps(a: Disjunction, b: Disjunction, steps: int = COMPARING_MAX) -> bool:
    """Return False only if no event matches both."""
    work = Work(steps)
    try:
        return any(_compatible(x, y, work) for x in a for y in b)
    except OutOfWork:
        return True


def _covered(narrower: Conjunction, wider: Sequence[Conjunction], work: Work) -> bool:
    """Return whether it is certain that the others include the conjunction, singly or together."""
    if any(_includes(each, narrower, work) for each in wider):
        return True
    if len(wider) < 2:
        return False
    touching = [each for each in wider if each.opaque <= narrower.opaque and _compatible(each, narrower, work)]
    return len(touching) > 1 and _left_over_is_covered(narrower, touching[0], touching[1:], work)


def _left_over_is_covered(narrower: Conjunction, first: Conjunction, others: Sequence[Conjunction], work: Work) -> bool:
    """Return whether it is certain that `others` cover the part of the conjunction that `first` does not cover."""
    for name, constraint in first.constraints.items():
        known = narrower.constraints.get(name, ANYTHING)
        for piece in constraints.difference(known, constraint, work):
            if not _covered(_with(narrower, name, piece, work), others, work):
                return False
        narrower = _with(narrower, name, constraints.intersection(known, constraint, work), work)
    return True


def _with(conjunction: Conjunction, name: str, constraint: Constraint, work: Work) -> Conjunction:
    work.spend(len(conjunction.constraints))
    return Conjunction({**conjunction.constraints, name: constraint}, conjunction.opaque)


def _includes(wider: Conjunction, narrower: Conjunction, work: Work) -> bool:
    known = narrower.constraints
    work.spend(1 + len(wider.opaque) + len(wider.constraints))
    # No constraint is trivial, so some event violates one on an attribute that the narrower filter does
    # not mention.
    if not (wider.constraints.keys() <= known.keys() and wider.opaque <= narrower.opaque):
        return False
    return all(constraints.includes(c, known[name], work) for name, c in wider.constraints.items())


def _compatible(a: Conjunction, b: Conjunction, work: Work) -> bool:
    if len(a.constraints) > len(b.constraints):
        a, b = b, a
    work.spend(1 + len(a.constraints))
    return not any(
        name in b.constraints and constraints.disjoint(c, b.constraints[name], work)
        for name, c in a.constraints.items()
    )
