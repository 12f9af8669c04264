"""An index that finds the earliest of many filters that covers a given one, without examining all.

A filter of one conjunction covers another only if it constrains no attribute that the other leaves
open, and each of its constraints includes the other's. So conjunctions are stored in a tree of
their attributes, in the order of names, with the kind of constraint:

    a value            one string or number. Only the same value is included.
    numbers, strings   a set of one of the two, with its least and its greatest element: a side of a box (`box_tree`).
    mixed              anything else, such as IS NULL or IS NOT NULL

A search for covers descends only along the attributes of the filter, and queries the boxes there.
The results are candidates; `Filter.covers` decides, so answers equal those of comparing with all
filters one after the other.

Filters of several conjunctions, or with opaque conditions, are found like those that match an
event: with a witness of the narrower one, in an index of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import inf
from typing import Any, Generic, NamedTuple, TypeVar

from gapless.filters import string_sets
from gapless.filters.box_tree import BoxTree, Sides
from gapless.filters.constraints import Constraint
from gapless.filters.filter import Filter
from gapless.filters.index import FilterIndex
from gapless.filters.like import ANY_ONE, ANY_RUN
from gapless.filters.number_sets import NumberSet
from gapless.filters.string_sets import NO_STRING, StringSet
from gapless.filters.work import OutOfWork, Work

K = TypeVar("K", bound=Hashable)

NUMBERS, STRINGS, MIXED = ("numbers",), ("strings",), ("mixed",)
"""The kinds of constraints, besides single values."""

LEAST, GREATEST = (0, ""), (2, "")
"""The sides of sets of strings without a least or a greatest string. A string s is stored as (1, s)."""

SAMPLING = 1_000
"""The maximum number of steps for testing whether a pattern's text without wildcards satisfies the constraint."""

Kind = Any
Side = tuple[Any, Any]


class _Asked(NamedTuple):
    """For one attribute: the branches of the index that can hold covers of the narrower filter's constraint, each with
    the bounds to search for."""

    kinds: dict[Kind, Side | None]
    any_value: bool
    """Whether a cover can have any value, because the strings of the patterns are unknown."""


class _Branch:
    """A node of the tree: the conjunctions whose attributes up to here have the same kinds of constraints."""

    __slots__ = ("below", "boxes")

    def __init__(self) -> None:
        self.boxes: BoxTree | None = None
        """The conjunctions without further constraints."""
        self.below: dict[str, dict[Kind, _Branch]] = {}


class _Place(NamedTuple):
    """The location of a conjunction in the tree."""

    path: list[tuple[str, Kind]]
    lows: Sides
    highs: Sides


class CoverIndex(Generic[K]):
    """A set of filters by key, ordered by when they were added, that is searched for covers."""

    def __init__(self) -> None:
        self._numbers: dict[K, int] = {}
        self._entries: dict[int, tuple[K, Filter]] = {}
        self._equal: dict[str, dict[K, None]] = {}
        self._last = 0
        self._root = _Branch()
        self._others: FilterIndex[K] = FilterIndex()

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_filters, (list(self._entries.values()),)

    def __contains__(self, key: object) -> bool:
        return key in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, key: K, wider: Filter) -> None:
        """Add a filter under an unused key."""
        assert key not in self._numbers, f"{key!r} is already in the index"
        self._last += 1
        self._numbers[key] = self._last
        self._entries[self._last] = key, wider
        self._equal.setdefault(wider.text, {})[key] = None
        place = _place(wider)
        if place is None:
            self._others.add(key, wider)
        else:
            self._enter(place, self._last)

    def remove(self, key: K) -> None:
        """Remove the filter with this key."""
        number = self._numbers.pop(key)
        _, wider = self._entries.pop(number)
        equal = self._equal[wider.text]
        del equal[key]
        if not equal:
            del self._equal[wider.text]
        place = _place(wider)
        if place is None:
            self._others.remove(key)
        else:
            self._leave(place, number)

    def find(self, narrower: Filter) -> K | None:
        """Return the key of the earliest equal filter, or of the earliest that covers the given one, or None."""
        equal = self._equal.get(narrower.text)
        if equal:
            return next(iter(equal))
        if not narrower.disjunction:
            return next(iter(self._numbers), None)
        best = none = self._last + 1

        def covers(number: int) -> bool:
            return self._entries[number][1].covers(narrower)

        for boxes, lows, highs in self._ways(narrower):
            best = boxes.first(lows, highs, best, covers)
        for key in self._others.may_cover(narrower) if self._others else ():
            number = self._numbers[key]
            if number >= best:
                break
            if covers(number):
                best = number
        return None if best == none else self._entries[best][0]

    def _ways(self, narrower: Filter) -> Iterator[tuple[BoxTree, Sides, Sides]]:
        """Yield the trees of boxes that can contain covers, each with the box that a cover contains."""
        # A cover includes every conjunction of the narrower filter, so searching for the first one is enough.
        asked = {name: _asked(constraint) for name, constraint in narrower.disjunction[0].constraints.items()}
        ahead: list[tuple[_Branch, Sides, Sides]] = [(self._root, (), ())]
        while ahead:
            branch, lows, highs = ahead.pop()
            if branch.boxes:
                yield branch.boxes, lows, highs
            for name in branch.below if len(branch.below) < len(asked) else asked:
                kinds, question = branch.below.get(name), asked.get(name)
                if kinds is None or question is None:
                    continue
                for kind, side in question.kinds.items():
                    below = kinds.get(kind)
                    if below is not None and side is None:
                        ahead.append((below, lows, highs))
                    elif below is not None and side is not None:
                        ahead.append((below, (*lows, side[0]), (*highs, side[1])))
                if question.any_value:
                    ahead += [(below, lows, highs) for kind, below in kinds.items() if kind not in question.kinds]

    def _enter(self, place: _Place, number: int) -> None:
        branch = self._root
        for name, kind in place.path:
            kinds = branch.below.setdefault(name, {})
            below = kinds.get(kind)
            if below is None:
                below = kinds[kind] = _Branch()
            branch = below
        if branch.boxes is None:
            branch.boxes = BoxTree(place.lows, place.highs, number)
        else:
            branch.boxes.add(place.lows, place.highs, number)

    def _leave(self, place: _Place, number: int) -> None:
        branch, way = self._root, list[_Branch]()
        for name, kind in place.path:
            way.append(branch)
            branch = branch.below[name][kind]
        assert branch.boxes is not None
        branch.boxes.remove(place.lows, place.highs, number)
        if not branch.boxes:
            branch.boxes = None
        for above, (name, kind) in zip(reversed(way), reversed(place.path), strict=True):
            if branch.boxes or branch.below:
                break
            del above.below[name][kind]
            if not above.below[name]:
                del above.below[name]
            branch = above


def _place(wider: Filter) -> _Place | None:
    """Return the location of the filter in the tree, or None if it is not a plain conjunction."""
    if len(wider.disjunction) != 1 or wider.disjunction[0].opaque:
        return None
    path: list[tuple[str, Kind]] = []
    lows: list[Any] = []
    highs: list[Any] = []
    for name, constraint in sorted(wider.disjunction[0].constraints.items()):
        kind, side = _stands(constraint)
        path.append((name, kind))
        if side is not None:
            lows.append(side[0])
            highs.append(side[1])
    return _Place(path, tuple(lows), tuple(highs))


def _stands(constraint: Constraint) -> tuple[Kind, Side | None]:
    """Return the kind of a constraint, and the least and greatest element of a set, or bounds of them."""
    numbers, strings = constraint.numbers, constraint.strings
    if constraint.absent or constraint.booleans or constraint.nan or (numbers and strings != NO_STRING):
        return MIXED, None
    if numbers:
        low, high = _ends(numbers)
        return (low, None) if low == high else (NUMBERS, (low, high))
    if strings.complement:
        return STRINGS, _ends_of_strings(strings)
    if len(strings.values) == 1:
        return next(iter(strings.values)), None
    return STRINGS, ((1, min(strings.values)), (1, max(strings.values)))


def _asked(constraint: Constraint) -> _Asked:
    """Return where constraints that include the given one can be stored."""
    numbers, strings = constraint.numbers, constraint.strings
    sample = _sample(strings) if strings.patterned else None
    if strings.patterned and sample is None:
        ends = _ends(numbers) if numbers else (inf, -inf)
        return _Asked({NUMBERS: ends, STRINGS: (GREATEST, LEAST), MIXED: None}, any_value=True)
    kind, side = _stands(constraint)
    if kind is MIXED:
        return _Asked({MIXED: None}, any_value=False)
    if sample is not None:
        kind, side = sample, None
    if kind is NUMBERS or kind is STRINGS:
        return _Asked({kind: side, MIXED: None}, any_value=False)
    if isinstance(kind, str):
        return _Asked({kind: None, STRINGS: ((1, kind), (1, kind)), MIXED: None}, any_value=False)
    return _Asked({kind: None, NUMBERS: (kind, kind), MIXED: None}, any_value=False)


def _ends(numbers: NumberSet) -> Side:
    return numbers[0][0], numbers[-1][1]


def _ends_of_strings(strings: StringSet) -> Side:
    """Return two strings between which all strings of the set lie."""
    low, high = strings.bounds
    return (1, low) if low else LEAST, (1, high) if high is not None else GREATEST


def _sample(strings: StringSet) -> str | None:
    """Return a string that the patterns and bounds allow, or None if none of the simplest strings is allowed."""
    tokens = strings.likes[0].tokens if strings.likes else ()
    text = "".join("~" if token == ANY_ONE else token for token in tokens if token != ANY_RUN)
    try:
        return min(string_sets.members((text, strings.low, strings.low + "~"), strings, Work(SAMPLING)), default=None)
    except OutOfWork:
        return None


def _of_filters(filters: list[tuple[K, Filter]]) -> CoverIndex[K]:
    """Return an index with these filters, for unpickling."""
    index: CoverIndex[K] = CoverIndex()
    for key, wider in filters:
        index.add(key, wider)
    return index
