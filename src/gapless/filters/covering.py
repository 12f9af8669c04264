"""Does one filter cover another, and can both match the same event?

Both questions are answered on normal forms, and both err on the safe side:

- `covers` is true only if every conjunction of the narrower filter is included in one of the wider. A conjunction is
  included if each constraint of the wider includes that of the narrower on the same attribute, and each opaque
  condition of the wider stands, word for word, in the narrower as well. Among filters of a single conjunction without
  opaque conditions this is also necessary: a state outside the wider constraint, with any allowed states for the other
  attributes, is an event that only the narrower matches.
- `overlaps` is false only if in every pair of conjunctions some attribute has no state that both allow.
"""

from __future__ import annotations

from gapless.filters import constraints
from gapless.filters.constraints import ANYTHING
from gapless.filters.normal_form import Conjunction, Disjunction


def covers(wider: Disjunction, narrower: Disjunction) -> bool:
    """True only if every event that matches `narrower` matches `wider`."""
    return all(any(_includes(a, b) for a in wider) for b in narrower)


def overlaps(a: Disjunction, b: Disjunction) -> bool:
    """False only if no event matches both."""
    return any(_compatible(x, y) for x in a for y in b)


def _includes(wider: Conjunction, narrower: Conjunction) -> bool:
    if not wider.opaque <= narrower.opaque:
        return False
    known = narrower.constraints
    return all(constraints.includes(c, known.get(name, ANYTHING)) for name, c in wider.constraints.items())


def _compatible(a: Conjunction, b: Conjunction) -> bool:
    if len(a.constraints) > len(b.constraints):
        a, b = b, a
    return not any(
        name in b.constraints and constraints.disjoint(c, b.constraints[name]) for name, c in a.constraints.items()
    )
