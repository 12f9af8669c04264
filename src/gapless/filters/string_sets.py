"""Sets of strings: finitely many, or all but finitely many, of those that match some patterns and not others.

    values, complement=False       exactly these
    values, complement=True        every string that matches each of `likes`, none of `unlikes`, and is not in `values`

A finite set absorbs patterns at once (each member is tested), a pattern without wildcards is a finite set, and
`LIKE '%'` is no restriction. So patterns remain only where a set is infinite, and questions about them go to
`some_string`, which is exact within its bound. Beyond it the answers err on the safe side: `includes` says no,
`is_empty` says no.
"""

from __future__ import annotations

import msgspec

from gapless.filters.like import Pattern, some_string

PATTERNS_MAX = 12
"""Patterns and excluded strings in one question: with more, only equal patterns are recognised."""


class StringSet(msgspec.Struct, frozen=True, gc=False):
    """See above. Order never matters: values are only looked up, patterns are kept sorted."""

    values: frozenset[str] = frozenset()
    complement: bool = False
    likes: tuple[Pattern, ...] = ()
    unlikes: tuple[Pattern, ...] = ()

    @property
    def patterned(self) -> bool:
        return bool(self.likes or self.unlikes)


NO_STRING = StringSet()
EVERY_STRING = StringSet(complement=True)


def of_values(values: frozenset[str]) -> StringSet:
    return StringSet(values)


def all_but(values: frozenset[str]) -> StringSet:
    return StringSet(values, complement=True)


def like(pattern: Pattern, wanted: bool) -> StringSet:
    """The strings that the pattern matches, or those that it does not match."""
    literal = pattern.literal
    if literal is not None:
        return StringSet(frozenset((literal,)), complement=not wanted)
    if pattern.matches_everything:
        return EVERY_STRING if wanted else NO_STRING
    return StringSet(complement=True, likes=(pattern,)) if wanted else StringSet(complement=True, unlikes=(pattern,))


def contains(strings: StringSet, text: str) -> bool:
    if not strings.complement:
        return text in strings.values
    return text not in strings.values and _matches(strings, text)


def intersection(a: StringSet, b: StringSet) -> StringSet:
    if not a.complement:
        return StringSet(frozenset(text for text in a.values if contains(b, text)))
    if not b.complement:
        return intersection(b, a)
    likes, unlikes = _merged(a.likes, b.likes), _merged(a.unlikes, b.unlikes)
    both = StringSet(frozenset(), True, likes, unlikes)
    excluded = a.values | b.values
    if both.patterned:
        excluded = frozenset(text for text in excluded if _matches(both, text))
    return StringSet(excluded, True, likes, unlikes)


def union(a: StringSet, b: StringSet) -> StringSet | None:
    """The union if it has this form, else None."""
    if a.patterned or b.patterned:
        for wide, narrow in ((a, b), (b, a)):
            if wide == narrow or (not narrow.complement and includes(wide, narrow)):
                return wide
        return None
    if a.complement and b.complement:
        return StringSet(a.values & b.values, complement=True)
    if a.complement:
        return StringSet(a.values - b.values, complement=True)
    if b.complement:
        return StringSet(b.values - a.values, complement=True)
    return StringSet(a.values | b.values)


def is_empty(strings: StringSet) -> bool:
    """Whether there is surely no such string."""
    if not strings.complement:
        return not strings.values
    if not strings.patterned or (len(strings.likes) == 1 and not strings.unlikes and not strings.values):
        return False
    return _none(strings.likes, strings.unlikes + _literals(strings.values))


def includes(a: StringSet, b: StringSet) -> bool:
    """Whether every string of b is surely in a."""
    if not b.complement:
        return all(contains(a, text) for text in b.values)
    if not a.complement:
        # Patterns can leave finitely many strings, as in LIKE '%x' AND NOT LIKE '_%x'.
        return b.patterned and _none(b.likes, b.unlikes + _literals(a.values | b.values))
    if not a.patterned:
        return not any(contains(b, text) for text in a.values)
    if any(contains(b, text) for text in a.values):
        return False
    forbidden = b.unlikes + _literals(b.values)
    return all(pattern in b.likes or _none(b.likes, (*forbidden, pattern)) for pattern in a.likes) and all(
        pattern in b.unlikes or _none((*b.likes, pattern), forbidden) for pattern in a.unlikes
    )


def disjoint(a: StringSet, b: StringSet) -> bool:
    """Whether there is surely no string in both."""
    return is_empty(intersection(a, b))


def _none(required: tuple[Pattern, ...], forbidden: tuple[Pattern, ...]) -> bool:
    """Whether there is surely no string that matches all of the one and none of the other."""
    if len(required) + len(forbidden) > PATTERNS_MAX:
        return False
    return some_string(required, forbidden) is False


def _matches(strings: StringSet, text: str) -> bool:
    return all(p.matches(text) for p in strings.likes) and not any(p.matches(text) for p in strings.unlikes)


def _merged(a: tuple[Pattern, ...], b: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return tuple(sorted({*a, *b}, key=lambda pattern: pattern.tokens)) if a and b else a or b


def _literals(values: frozenset[str]) -> tuple[Pattern, ...]:
    return tuple(Pattern(tuple(text)) for text in sorted(values))
