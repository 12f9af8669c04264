"""The permissions of a user: filters for publishing and subscribing, and names of durable
subscriptions.

A filter is allowed if the allowed filters certainly cover it, and the denied ones certainly do not
overlap it. In doubt it is refused, with a sentence that says what is allowed. An event is allowed
if it matches an allowed filter and no denied one.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from gapless.errors import FilterError
from gapless.event_runs import EventTable
from gapless.filters import Filter, parse
from gapless.filters.evaluation import Test
from gapless.filters.syntax import And, render
from gapless.filters.tables import is_covered
from gapless.security.placeholders import filled

__all__ = ["Names", "Outside", "Within"]

Outside: TypeAlias = Literal["refuse", "narrow"]


class Within:
    """The set of events that a user may publish or receive: those that match an allowed filter and no denied one."""

    def __init__(self, filters: Sequence[str], denied: Sequence[str] = ()) -> None:
        self.text = _any_of(filters)
        self.denied = _any_of(denied) if denied else ""
        self._filter = parse(self.text)
        self._denied = parse(self.denied) if denied else None
        self._not_denied = parse(f"NOT ({self.denied})") if denied else None
        self.test = self._filter.test if self._denied is None else _both(self._filter.test, self._denied.test)
        """A test of whether an event with these attributes is allowed."""
        self.names = self._filter.names | (self._denied.names if self._denied is not None else frozenset())
        """The attributes that the test reads."""

    def __eq__(self, other: object) -> bool:
        return (self.text, self.denied) == (other.text, other.denied) if isinstance(other, Within) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_nothing(self) -> bool:
        """Return whether nothing is allowed."""
        return self.text == "FALSE"

    def allows(self, table: EventTable) -> bool:
        """Return whether all events in the table are allowed."""
        return is_covered(table, [self])

    def covers(self, text: str) -> bool:
        """Return whether all events that the filter matches are certainly allowed. Raise a `FilterError` if it is
        invalid.
        """
        asked = parse(text)
        is_allowed = self._filter.covers(asked) or _demands(asked, self._filter)
        if not is_allowed or self._denied is None or self._not_denied is None:
            return is_allowed
        return not self._denied.overlaps(asked) or _demands(asked, self._not_denied)

    def narrow(self, text: str) -> str | None:
        """Return the filter restricted to the allowed events. Return None if no events remain, or the result is too
        large.

        Events for which a denied filter is undecided, because they lack an attribute, are excluded.
        """
        narrowed = f"({text}) AND ({self.text})" + (f" AND (NOT ({self.denied}))" if self.denied else "")
        try:
            parse(narrowed)
        except FilterError:
            return None
        return None if self.is_nothing else narrowed


def _any_of(filters: Sequence[str]) -> str:
    return " OR ".join(f"({text})" for text in filters) if filters else "FALSE"


def _both(allowed: Test, denied: Test) -> Test:
    return lambda attributes: allowed(attributes) and not denied(attributes)


def _demands(asked: Filter, other: Filter) -> bool:
    """Return whether the filter contains the other one literally as a conjunct. `narrow` creates such filters, and some
    are too large for another comparison.
    """
    condition, own = asked.condition, other.condition
    if not isinstance(condition, And):
        return False
    # Equal trees can differ: in Python, TRUE equals 1. Their texts distinguish them.
    return any(each == own and render(each) == render(own) for each in condition.conditions)


class Names:
    """The names that a user may give to durable subscriptions: all, none, or those that match a pattern."""

    def __init__(self, allowed: bool | Sequence[str], user: str = "") -> None:
        if isinstance(allowed, bool):
            self.text = "any name is allowed" if allowed else "no name is allowed"
            condition = "TRUE" if allowed else "FALSE"
        else:
            self.text = f"only {' or '.join(map(repr, allowed))} is allowed" if allowed else "no name is allowed"
            quoted = [text.replace("'", "''") for text in allowed]
            condition = " OR ".join(f"name LIKE '{text}'" for text in quoted) or "FALSE"
        self._test = parse(filled(condition, user)).test

    def has(self, name: str) -> bool:
        """Return whether the user may use this name."""
        return self._test({"name": name})
