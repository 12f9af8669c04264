"""The constraint of a filter on one attribute: the set of states in which it is satisfied.

An attribute is in exactly one state: absent, a boolean, a number, NaN, or a string. A `Constraint`
lists the allowed states by kind. Every condition on a single attribute is such a set, and so is its
negation in three-valued logic: `NOT price > 10` allows the numbers up to 10, and neither strings
nor absence, since there the comparison is unknown. NaN satisfies no comparison; only IS NOT NULL
allows it.

The algebra below is exact (for string patterns within the bounds of `string_sets`), so one
constraint covers another exactly if it includes it as a set. Every operation spends from the
caller's allowance.
"""

from __future__ import annotations

import msgspec

from gapless.filters import number_sets, string_sets
from gapless.filters.number_sets import EVERY_NUMBER, NO_NUMBER, NumberSet
from gapless.filters.string_sets import EVERY_STRING, NO_STRING, StringSet
from gapless.filters.work import Work

FALSE_ONLY, TRUE_ONLY, BOTH = 1, 2, 3


class Constraint(msgspec.Struct, frozen=True, gc=False):
    """The allowed states of one attribute. `booleans` has bit 1 for false and bit 2 for true."""

    absent: bool = False
    booleans: int = 0
    nan: bool = False
    numbers: NumberSet = NO_NUMBER
    strings: StringSet = NO_STRING

    @property
    def weight(self) -> int:
        """Return the number of intervals, strings and patterns in the constraint."""
        return len(self.numbers) + self.strings.weight


ANYTHING = Constraint(True, BOTH, True, EVERY_NUMBER, EVERY_STRING)
PRESENT = Constraint(False, BOTH, True, EVERY_NUMBER, EVERY_STRING)
ABSENT = Constraint(absent=True)
ANY_NUMBER = Constraint(numbers=EVERY_NUMBER)
ORDERED = Constraint(numbers=EVERY_NUMBER, strings=EVERY_STRING)


def boolean(value: bool) -> Constraint:
    return Constraint(booleans=TRUE_ONLY if value else FALSE_ONLY)


def of_numbers(numbers: NumberSet) -> Constraint:
    return Constraint(numbers=numbers)


def of_strings(strings: StringSet) -> Constraint:
    return Constraint(strings=strings)


def weight(constraint: Constraint) -> int:
    """Return the number of steps that examining the whole constraint takes."""
    return 1 + len(constraint.numbers) + constraint.strings.weight


def intersection(a: Constraint, b: Constraint, work: Work) -> Constraint:
    work.spend(1 + len(a.numbers) + len(b.numbers))
    return Constraint(
        a.absent and b.absent,
        a.booleans & b.booleans,
        a.nan and b.nan,
        number_sets.intersection(a.numbers, b.numbers),
        string_sets.intersection(a.strings, b.strings, work),
    )


def union(a: Constraint, b: Constraint, work: Work) -> Constraint | None:
    """Return the union, or None if it cannot be written as one constraint, as with some patterns."""
    work.spend(1 + len(a.numbers) + len(b.numbers))
    strings = string_sets.union(a.strings, b.strings, work)
    if strings is None:
        return None
    return Constraint(
        a.absent or b.absent,
        a.booleans | b.booleans,
        a.nan or b.nan,
        number_sets.union(a.numbers, b.numbers),
        strings,
    )


def difference(a: Constraint, b: Constraint, work: Work) -> list[Constraint]:
    """Return constraints that together allow the states that `a` allows and `b` does not."""
    work.spend(1 + len(a.numbers) + len(b.numbers))
    strings = string_sets.difference(a.strings, b.strings, work)
    others = Constraint(
        a.absent and not b.absent,
        a.booleans & ~b.booleans,
        a.nan and not b.nan,
        number_sets.intersection(a.numbers, number_sets.complement(b.numbers)),
    )
    parts = [Constraint(strings=part) for part in strings]
    return parts if is_empty(others, work) else [others, *parts]


def is_empty(constraint: Constraint, work: Work) -> bool:
    """Return whether it is certain that no state satisfies the constraint."""
    return not (
        constraint.absent
        or constraint.booleans
        or constraint.nan
        or constraint.numbers
        or not string_sets.is_empty(constraint.strings, work)
    )


def includes(a: Constraint, b: Constraint, work: Work) -> bool:
    """Return whether it is certain that every state that satisfies `b` satisfies `a`."""
    work.spend(1 + number_sets.steps(a.numbers, b.numbers))
    return (
        a.absent >= b.absent
        and a.booleans & b.booleans == b.booleans
        and a.nan >= b.nan
        and number_sets.includes(a.numbers, b.numbers)
        and string_sets.includes(a.strings, b.strings, work)
    )


def disjoint(a: Constraint, b: Constraint, work: Work) -> bool:
    """Return whether it is certain that no state satisfies both."""
    work.spend(1 + number_sets.steps(a.numbers, b.numbers))
    return not (
        (a.absent and b.absent)
        or a.booleans & b.booleans
        or (a.nan and b.nan)
        or not number_sets.disjoint(a.numbers, b.numbers)
        or not string_sets.disjoint(a.strings, b.strings, work)
    )
