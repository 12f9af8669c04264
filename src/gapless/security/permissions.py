"""What a user may: within which filters it publishes and subscribes, and which names it may give to subscriptions.

A filter lies within if the allowed filters surely cover it. If that is not certain, the filter counts as outside, and a
sentence says what is allowed. An event either matches the allowed filters or does not.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from gapless.errors import FilterError
from gapless.filters import Filter, parse
from gapless.filters.syntax import And, render

__all__ = ["Names", "Outside", "Within"]

Outside: TypeAlias = Literal["refuse", "narrow"]


class Within:
    """What one of these filters matches."""

    def __init__(self, filters: Sequence[str]) -> None:
        self.text = " OR ".join(f"({text})" for text in filters) if filters else "FALSE"
        self._filter = parse(self.text)
        self.test = self._filter.test
        """Whether an event with these attributes lies within."""

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Within) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_nothing(self) -> bool:
        """Whether nothing at all is allowed."""
        return self.text == "FALSE"

    def covers(self, text: str) -> bool:
        """Whether all that the filter matches surely lies within. A `FilterError` if it cannot be read."""
        asked = parse(text)
        return self._filter.covers(asked) or self._is_narrowed(asked)

    def _is_narrowed(self, asked: Filter) -> bool:
        """Whether it demands, word for word, what is allowed; `narrow` makes such filters, and some are too large to be
        compared in another way."""
        condition, own = asked.condition, self._filter.condition
        if not isinstance(condition, And):
            return False
        # Trees that are equal may differ all the same: to Python, TRUE equals 1. Their texts tell them apart.
        return any(each == own and render(each) == render(own) for each in condition.conditions)

    def narrow(self, text: str) -> str | None:
        """Of what the filter matches, what lies within; None if that is nothing, or too much for one filter."""
        narrowed = f"({text}) AND ({self.text})"
        try:
            parse(narrowed)
        except FilterError:
            return None
        return None if self.is_nothing else narrowed


class Names:
    """The names in the network that a user may hold subscriptions under: all, none, or those like one of these."""

    def __init__(self, allowed: bool | Sequence[str]) -> None:
        if isinstance(allowed, bool):
            self.text = "any name is" if allowed else "no name is"
            condition = "TRUE" if allowed else "FALSE"
        else:
            self.text = ", ".join(map(repr, allowed)) + " is" if allowed else "no name is"
            quoted = [text.replace("'", "''") for text in allowed]
            condition = " OR ".join(f"name LIKE '{text}'" for text in quoted) or "FALSE"
        self._test = parse(condition).test

    def has(self, name: str) -> bool:
        """Whether the user may hold this one."""
        return self._test({"name": name})
