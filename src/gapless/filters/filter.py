"""A parsed filter, with the operations on it.

The closures that evaluate it and the normal form for covering and the index are created on first
use, and cached. The syntax tree is as large as the normal form: it is dropped once that exists, and
parsed again on demand. A filter is immutable. Two filters are equal if their texts are, and a
filter is pickled as its text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal
from weakref import WeakValueDictionary

from gapless.filters import covering
from gapless.filters.evaluation import Attributes, Test, compile_test
from gapless.filters.normal_form import Disjunction, normalise_and_count
from gapless.filters.parser import parse_condition, parse_with_names
from gapless.filters.syntax import Condition
from gapless.filters.witness import find_witness

PARSED_MAX = 1024
"""The number of recently parsed texts that are cached, besides those in use: neighbours often send the same
subscription."""

LONG, LONG_PARSED_MAX = 4096, 64
"""The length above which texts count as long, and the number of long texts that are cached: a thousand would fill the
memory."""

NAMES_MAX = 10_000
"""The maximum number of sets of names that filters share."""


class Filter:
    """A filter: the SQL condition after WHERE. `parse` creates it."""

    __slots__ = (
        "__weakref__", "_disjunction", "_effort", "_is_false", "_is_true", "_tree", "_weight", "_witness",
        "names", "text",
    )  # fmt: skip

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree: Condition | None
        self._tree, names = parse_with_names(text)
        self.names = _known_names.setdefault(names, names) if len(_known_names) < NAMES_MAX else names
        """The names of the attributes in the filter."""
        self._is_true: Test | None = None
        self._is_false: Test | None = None
        self._disjunction: Disjunction | None = None
        self._witness: Attributes | Literal["unknown"] | None = "unknown"
        self._weight: int | None = None
        self._effort = 0

    def matches(self, attributes: Attributes) -> bool:
        """Return whether an event with these attributes matches the filter."""
        return self.test(attributes)

    def evaluate(self, attributes: Attributes) -> bool | None:
        """Return the truth value of the filter for an event: True, False, or None for unknown."""
        if self.test(attributes):
            return True
        if self._is_false is None:
            self._is_false = compile_test(self.condition, False)
        return False if self._is_false(attributes) else None

    def covers(self, other: Filter) -> bool:
        """Return True only if every event that matches the other filter matches this one.

        The answer is complete for conjunctions of conditions on single attributes, and False where it is not certain.
        """
        if self.text == other.text:
            return True
        return covering.covers(self.disjunction, other.disjunction, covering.allowance(self.weight, other.weight))

    def overlaps(self, other: Filter) -> bool:
        """Return False only if no event matches both filters, and True where that is not certain."""
        return covering.overlaps(self.disjunction, other.disjunction, covering.allowance(self.weight, other.weight))

    @property
    def condition(self) -> Condition:
        """Return the syntax tree of the filter."""
        return parse_condition(self.text) if self._tree is None else self._tree

    @property
    def test(self) -> Test:
        """Return the closure behind `matches`, for repeated calls."""
        if self._is_true is None:
            self._is_true = compile_test(self.condition, True)
        return self._is_true

    @property
    def disjunction(self) -> Disjunction:
        """Return the normal form of the filter."""
        if self._disjunction is None:
            self._disjunction, self._effort = normalise_and_count(self.condition)
            self._tree = None
        return self._disjunction

    @property
    def has_searches(self) -> bool:
        """Return whether the filter may search in strings, which is True if only the parser can decide it."""
        return "%" in self.text and "LIKE" in self.text.upper()

    @property
    def witness(self) -> Attributes | None:
        """Return an event that matches, or None if none was found. All filters that cover this one match that event as
        well.
        """
        if self._witness == "unknown":
            self._witness = find_witness(self.disjunction, self.test)
        return self._witness

    @property
    def effort(self) -> int:
        """Return the number of steps that computing the normal form took; a few dozen for typical filters."""
        _ = self.disjunction
        return self._effort

    @property
    def weight(self) -> int:
        """Return the number of parts of the normal form, which bounds the steps of comparisons."""
        if self._weight is None:
            self._weight = covering.weight(self.disjunction)
        return self._weight

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Filter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"parse({self.text!r})"

    def __reduce__(self) -> tuple[Callable[[str], Filter], tuple[str]]:
        return parse, (self.text,)


def parse(text: str) -> Filter:
    """Return the filter that the text denotes. Raise a `FilterError` with the place of a mistake."""
    return _parsed(text) if len(text) <= LONG else _parsed_long(text)


_known_names: dict[frozenset[str], frozenset[str]] = {}
_in_use: WeakValueDictionary[str, Filter] = WeakValueDictionary()


def _find_or_make(text: str) -> Filter:
    found = _in_use.get(text)
    if found is None:
        found = _in_use[text] = Filter(text)
    return found


_parsed = lru_cache(maxsize=PARSED_MAX)(_find_or_make)
_parsed_long = lru_cache(maxsize=LONG_PARSED_MAX)(_find_or_make)
