"""What a user may: within which filters it publishes and subscribes, and which names it may give to subscriptions.

A filter lies within if the allowed filters surely cover it, and the denied ones surely do not overlap it. If that is
not certain, the filter counts as outside, and a sentence says what is allowed. An event lies within if it matches an
allowed filter and no denied one.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from gapless.errors import FilterError
from gapless.filters import Filter, parse
from gapless.filters.evaluation import Test
from gapless.filters.syntax import And, render
from gapless.security.placeholders import filled

__all__ = ["Names", "Outside", "Within"]

Outside: TypeAlias = Literal["refuse", "narrow"]


class Within:
    """What one of the allowed filters matches, and none of the denied."""

    def __init__(self, filters: Sequence[str], denied: Sequence[str] = ()) -> None:
        self.text = _any_of(filters)
        self.denied = _any_of(denied) if denied else ""
        self._filter = parse(self.text)
        self._denied = parse(self.denied) if denied else None
        self._not_denied = parse(f"NOT ({self.denied})") if denied else None
        self.test = self._filter.test if self._denied is None else _both(self._filter.test, self._denied.test)
        """Whether an event with these attributes lies within."""

    def __eq__(self, other: object) -> bool:
        return (self.text, self.denied) == (other.text, other.denied) if isinstance(other, Within) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_nothing(self) -> bool:
        """Whether nothing at all is allowed."""
        return self.text == "FALSE"

    def covers(self, text: str) -> bool:
        """Whether all that the filter matches surely lies within. A `FilterError` if it cannot be read."""
        asked = parse(text)
        is_allowed = self._filter.covers(asked) or _demands(asked, self._filter)
        if not is_allowed or self._denied is None or self._not_denied is None:
            return is_allowed
        return not self._denied.overlaps(asked) or _demands(asked, self._not_denied)

    def narrow(self, text: str) -> str | None:
        """Of what the filter matches, what lies within; None if that is nothing, or too much for one filter.

        Events of which a denied filter cannot tell whether they match, because they lack an attribute, are left out.
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
    """Whether the filter demands the other, word for word; `narrow` makes such filters, and some are too large to be
    compared in another way."""
    condition, own = asked.condition, other.condition
    if not isinstance(condition, And):
        return False
    # Trees that are equal may differ all the same: to Python, TRUE equals 1. Their texts tell them apart.
    return any(each == own and render(each) == render(own) for each in condition.conditions)


class Names:
    """The names in the network that a user may hold subscriptions under: all, none, or those like one of these."""

    def __init__(self, allowed: bool | Sequence[str], user: str = "") -> None:
        if isinstance(allowed, bool):
            self.text = "any name is" if allowed else "no name is"
            condition = "TRUE" if allowed else "FALSE"
        else:
            self.text = ", ".join(map(repr, allowed)) + " is" if allowed else "no name is"
            quoted = [text.replace("'", "''") for text in allowed]
            condition = " OR ".join(f"name LIKE '{text}'" for text in quoted) or "FALSE"
        self._test = parse(filled(condition, user)).test

    def has(self, name: str) -> bool:
        """Whether the user may hold this one."""
        return self._test({"name": name})
