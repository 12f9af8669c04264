"""Sets of strings: finite ones, or ranges restricted by patterns, without finitely many strings.

    values, complement=False       exactly these
    values, complement=True        every string from `low` up to, but without, `high` that matches each of `likes`, none
                                   of `unlikes`, and is not in `values`

Strings are ordered by code point. The least string above s is s followed by the character 0, so every bound can be
written as one of these two: `a <= 'x'` ends before 'x' followed by that character.

A finite set absorbs patterns at once (each member is tested), a pattern without wildcards is a finite set, and `LIKE
'%'` is not a restriction. So patterns remain only in infinite sets, and questions about them go to `some_string`, which
is exact within its bounds. Beyond them the answers err on the safe side: `includes` and `is_empty` return False.
Omitting a pattern from a question only makes the set larger, so a set that is empty without it is empty.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile
from sys import maxunicode

import msgspec

from gapless.filters.like import ANY_ONE, ANY_RUN, Pattern
from gapless.filters.like_matcher import matcher
from gapless.filters.some_string import some_string
from gapless.filters.work import Work

PATTERNS_MAX = 12
"""Maximum number of patterns and excluded strings in one question; further ones are ignored."""


_WILDCARDS = {ANY_RUN, ANY_ONE}
NEXT = "\0"
"""The character that turns a string into the least string above it."""
Bounds = tuple[str, str | None]


class StringSet(msgspec.Struct, frozen=True, gc=False):
    """A set of strings in the form described above."""

    values: frozenset[str] = frozenset()
    complement: bool = False
    likes: tuple[Pattern, ...] = ()
    unlikes: tuple[Pattern, ...] = ()
    low: str = ""
    high: str | None = None
    """The end of the range (exclusive), or None if it has none."""

    @property
    def patterned(self) -> bool:
        """Return whether testing membership takes more than a lookup, because there are patterns or bounds."""
        return bool(self.likes or self.unlikes or self.low) or self.high is not None

    @property
    def bounds(self) -> Bounds:
        """Return bounds of the strings in an infinite set: its range, narrowed by the prefixes of its patterns.

        A forbidden prefix moves a bound that begins with it.
        """
        low, high = self.low, self.high
        if not self.likes and not self.unlikes:
            return low, high
        for pattern in self.likes:
            head = "".join(takewhile(lambda token: token not in _WILDCARDS, pattern.tokens))
            low, high = max(low, head), _least(high, _after_all(head))
        heads = ["".join(prefix) for pattern in self.unlikes if (prefix := _prefix(pattern)) is not None]
        for head in heads:
            if low.startswith(head):
                after = _after_all(head)
                low, high = (low, low) if after is None else (after, high)
        for head in reversed(heads):
            if high is not None and high.startswith(head):
                high = head
        return low, high

    @property
    def weight(self) -> int:
        """Return the number of steps that examining the whole set takes."""
        weight = len(self.values) + (len(self.low) + len(self.high or "")) // 32
        for pattern in self.likes + self.unlikes:
            weight += 4 + len(pattern.tokens) // 32
        return weight


NO_STRING = StringSet()
EVERY_STRING = StringSet(complement=True)


def of_values(values: frozenset[str]) -> StringSet:
    return StringSet(values)


def all_but(values: frozenset[str]) -> StringSet:
    return StringSet(values, complement=True)


def compared(symbol: str, constant: str) -> StringSet:
    """Return the set of strings x for which `x symbol constant` is true."""
    one = frozenset((constant,))
    match symbol:
        case "=":
            return of_values(one)
        case "<>":
            return all_but(one)
        case ">=" | ">":
            return _between(constant if symbol == ">=" else constant + NEXT, None)
        case _:
            assert symbol in ("<", "<=")
            return _between("", constant if symbol == "<" else constant + NEXT)


def _between(low: str, high: str | None) -> StringSet:
    """Return the set of all strings in a range."""
    if high is None:
        return StringSet(complement=True, low=low) if low else EVERY_STRING
    if not high.startswith(low) or high[len(low) :].strip(NEXT):
        return StringSet(complement=True, low=low, high=high) if low < high else NO_STRING
    return _finite(frozenset(low + NEXT * more for more in range(len(high) - len(low))))


def _after_all(head: str) -> str | None:
    """Return the least string above all strings with this prefix, or None if there is none."""
    kept = head.rstrip(chr(maxunicode))
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None


def _least(a: str | None, b: str | None) -> str | None:
    return b if a is None else a if b is None else min(a, b)


def _ends_later(a: str | None, b: str | None) -> bool:
    """Return whether a range that ends at `a` extends at least as far as one that ends at `b`."""
    return a is None or (b is not None and a >= b)


def like(pattern: Pattern, wanted: bool) -> StringSet:
    """Return the set of strings that match the pattern, or, if not `wanted`, of the other strings."""
    literal = pattern.literal
    if literal is not None:
        return StringSet(frozenset((literal,)), complement=not wanted)
    if pattern.matches_everything:
        return EVERY_STRING if wanted else NO_STRING
    return StringSet(complement=True, likes=(pattern,)) if wanted else StringSet(complement=True, unlikes=(pattern,))


def members(texts: Collection[str], strings: StringSet, work: Work) -> frozenset[str]:
    """Return the texts that are in the set."""
    work.spend(len(texts))
    if not strings.complement:
        return strings.values.intersection(texts)
    return _matching(frozenset(texts) - strings.values, strings, work)


def intersection(a: StringSet, b: StringSet, work: Work) -> StringSet:
    if not a.complement:
        return _finite(members(a.values, b, work))
    if not b.complement:
        return _finite(members(b.values, a, work))
    work.spend(a.weight + b.weight)
    within = _between(max(a.low, b.low), _least(a.high, b.high))
    likes, unlikes = _merged(a.likes, b.likes), _merged(a.unlikes, b.unlikes)
    both = StringSet(frozenset(), True, likes, unlikes, within.low, within.high)
    if not within.complement:
        rest = within.values - a.values - b.values
        return _finite(_matching(rest, StringSet(complement=True, likes=likes, unlikes=unlikes), work))
    excluded = _matching(a.values | b.values, both, work)
    return StringSet(excluded, True, likes, unlikes, within.low, within.high)


def _finite(values: frozenset[str]) -> StringSet:
    return StringSet(values) if values else NO_STRING


def union(a: StringSet, b: StringSet, work: Work) -> StringSet | None:
    """Return the union, or None if it cannot be written in this form."""
    work.spend(a.weight + b.weight)
    if a.patterned or b.patterned:
        for wide, narrow in ((a, b), (b, a)):
            if wide == narrow or (not narrow.complement and includes(wide, narrow, work)):
                return wide
        return _joined_ranges(a, b)
    if a.complement and b.complement:
        return StringSet(a.values & b.values, complement=True)
    if a.complement:
        return StringSet(a.values - b.values, complement=True)
    if b.complement:
        return StringSet(b.values - a.values, complement=True)
    return StringSet(a.values | b.values)


def _joined_ranges(a: StringSet, b: StringSet) -> StringSet | None:
    """Return the union of two ranges that overlap, touch, or have finitely many strings between them; else None."""
    if not (a.complement and b.complement) or a.values or b.values or a.likes + a.unlikes + b.likes + b.unlikes:
        return None
    first, second = (a, b) if a.low <= b.low else (b, a)
    joined = _between(first.low, first.high if _ends_later(first.high, second.high) else second.high)
    if first.high is None or second.low <= first.high:
        return joined
    gap = _between(first.high, second.low)
    return None if gap.complement else StringSet(gap.values, True, low=joined.low, high=joined.high)


def difference(a: StringSet, b: StringSet, work: Work) -> list[StringSet]:
    """Return sets that together contain the strings of `a` that are not in `b`. Each violates one rule of `b`."""
    if not b.complement:
        parts = [intersection(a, all_but(b.values), work)]
    else:
        parts = [StringSet(members(b.values, a, work))]
        parts += [intersection(a, like(pattern, False), work) for pattern in b.likes]
        parts += [intersection(a, like(pattern, True), work) for pattern in b.unlikes]
        parts += [intersection(a, _between("", b.low), work)] if b.low else []
        parts += [intersection(a, _between(b.high, None), work)] if b.high is not None else []
    return [part for part in parts if not is_empty(part, work)]


def is_empty(strings: StringSet, work: Work) -> bool:
    """Return whether it is certain that the set is empty."""
    if not strings.complement:
        return not strings.values
    low, high = strings.bounds
    if high is not None and low >= high:
        return True
    likes, has_range = strings.likes, strings.low or strings.high is not None
    if not strings.unlikes and not likes:
        return False
    if not strings.unlikes and not strings.values and len(likes) == 1 and (not has_range or _prefix(likes[0])):
        return False
    return _none(likes, strings.unlikes, strings, work)


def includes(a: StringSet, b: StringSet, work: Work) -> bool:
    """Return whether it is certain that every string of `b` is in `a`."""
    if not a.patterned and not b.patterned:
        return _plainly_includes(a, b, work)
    if not b.complement:
        return len(members(b.values, a, work)) == len(b.values)
    if not a.complement:
        # Patterns can leave finitely many strings, as in LIKE '%x' AND NOT LIKE '_%x'. Ranges alone never do.
        return b.patterned and _none(b.likes, b.unlikes, msgspec.structs.replace(b, values=a.values | b.values), work)
    if members(a.values, b, work):
        return False
    low, high = b.bounds
    if low < a.low and not is_empty(intersection(b, _between("", a.low), work), work):
        return False
    if not _ends_later(a.high, high) and not is_empty(intersection(b, _between(a.high or "", None), work), work):
        return False
    work.spend(len(a.likes) * len(b.likes))
    return all(
        p in b.likes
        or _is_prefix_of_one(p, b.likes)
        or _matches_range(p, low, high)
        or _none(b.likes, (p, *b.unlikes), b, work)
        for p in a.likes
    ) and all(
        p in b.unlikes or _misses_range(p, low, high) or _none((p, *b.likes), b.unlikes, b, work) for p in a.unlikes
    )


def _plainly_includes(a: StringSet, b: StringSet, work: Work) -> bool:
    """Return `includes` for sets without patterns, examining only the smaller set of values."""
    work.spend(1 + min(len(a.values), len(b.values)))
    if a.complement and b.complement:
        return a.values <= b.values
    if a.complement:
        return a.values.isdisjoint(b.values)
    return not b.complement and b.values <= a.values


def disjoint(a: StringSet, b: StringSet, work: Work) -> bool:
    """Return whether it is certain that no string is in both sets."""
    if not a.patterned and not b.patterned:
        return _plainly_includes(StringSet(b.values, not b.complement), a, work)
    return is_empty(intersection(a, b, work), work)


def _none(required: tuple[Pattern, ...], forbidden: tuple[Pattern, ...], within: StringSet, work: Work) -> bool:
    """Return whether it is certain that no string in the range and outside the values of a set matches all required
    patterns and no forbidden one. The set's own patterns are ignored.
    """
    required = required[: PATTERNS_MAX - min(len(forbidden), PATTERNS_MAX // 2)]
    forbidden = forbidden[: PATTERNS_MAX - len(required)]
    for pattern in required + forbidden:
        work.spend(1 + len(pattern.tokens) // 8)
    has_range = within.low or within.high is not None
    if len(forbidden) == len(required) == 1 and (prefix := _prefix(forbidden[0])) is not None:
        # By far the most frequent case: a wildcard before the end of the prefix allows too many strings for any to be
        # excluded individually.
        is_covered = required[0].tokens[: len(prefix)] == prefix
        if is_covered or not has_range:
            return is_covered
    if not required and not has_range and all(set(pattern.tokens) - _WILDCARDS for pattern in forbidden):
        # A long string of a character that occurs in none of the patterns.
        return False
    if any(pattern in required for pattern in forbidden) or (required and _clash(required, work)):
        return True
    found = some_string(required, forbidden, work, within.low, within.high)
    if found and 0 < len(within.values) <= PATTERNS_MAX - len(required) - len(forbidden):
        found = some_string(required, (*forbidden, *_literals(within.values)), work, within.low, within.high)
    return found is False


def _is_prefix_of_one(pattern: Pattern, required: tuple[Pattern, ...]) -> bool:
    """Return whether the pattern is a prefix with which a required one begins, so that it always matches."""
    prefix = _prefix(pattern)
    return prefix is not None and any(other.tokens[: len(prefix)] == prefix for other in required)


def _matches_range(pattern: Pattern, low: str, high: str | None) -> bool:
    """Return whether all strings between the bounds have the pattern's prefix."""
    prefix = _prefix(pattern)
    if prefix is None:
        return False
    head = "".join(prefix)
    return low >= head and _ends_later(_after_all(head), high)


def _misses_range(pattern: Pattern, low: str, high: str | None) -> bool:
    """Return whether all strings with the pattern's prefix are outside the bounds."""
    begin, end = StringSet(complement=True, likes=(pattern,)).bounds
    return (end is not None and end <= low) or (high is not None and high <= begin)


def _prefix(pattern: Pattern) -> tuple[str, ...] | None:
    """Return the characters before the only wildcard if that is a `%` at the end. Return None for any other pattern."""
    *head, last = pattern.tokens
    return tuple(head) if last == ANY_RUN and ANY_RUN not in head and ANY_ONE not in head else None


def _clash(required: tuple[Pattern, ...], work: Work) -> bool:
    """Return whether two patterns require different characters at the same position from the start."""
    *heads, longest = sorted((pattern.pieces[0] for pattern in required), key=len)
    for head in heads:
        work.spend(len(head))
        if any(one != other and ANY_ONE not in (one, other) for one, other in zip(head, longest, strict=False)):
            return True
    return False


def _matching(texts: frozenset[str], strings: StringSet, work: Work) -> frozenset[str]:
    """Return the texts that are in the range and match the patterns."""
    if strings.low or strings.high is not None:
        work.spend(strings.weight + len(texts))
        texts = frozenset(text for text in texts if text >= strings.low and not _ends_before(strings.high, text))
    for pattern in strings.likes:
        texts &= _matched(texts, pattern, work)
    for pattern in strings.unlikes:
        texts -= _matched(texts, pattern, work)
    return texts


def _ends_before(high: str | None, text: str) -> bool:
    return high is not None and text >= high


def _matched(texts: frozenset[str], pattern: Pattern, work: Work) -> frozenset[str]:
    if not texts:
        return texts
    work.spend(len(pattern.tokens))
    for text in texts:
        work.spend(1 + len(text) * len(pattern.tokens) // 128)
    return frozenset(filter(matcher(pattern), texts))


def _merged(a: tuple[Pattern, ...], b: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    return tuple(sorted({*a, *b}, key=lambda pattern: pattern.tokens)) if a and b else a or b


def _literals(values: frozenset[str]) -> tuple[Pattern, ...]:
    return tuple(Pattern(tuple(text)) for text in sorted(values))
