"""What a user may: within which filters it publishes and subscribes.

A filter lies within if what is allowed covers it. That errs on the safe side: where it is not certain, the filter is
outside, and a sentence says what is allowed. With an event there is no doubt: its attributes are there to be looked at.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from gapless.filters import Filter, parse
from gapless.filters.syntax import And

__all__ = ["Outside", "Within"]

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
        condition = asked.condition
        return isinstance(condition, And) and self._filter.condition in condition.conditions

    def narrow(self, text: str) -> str:
        """Of what the filter matches, what lies within."""
        return f"({text}) AND ({self.text})"
