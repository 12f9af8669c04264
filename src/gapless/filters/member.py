"""One conjunction of one filter in an index, and where it is kept."""

from __future__ import annotations

from gapless.filters.filter import Filter
from gapless.filters.normal_form import Conjunction

Key = str | int | float
Demand = tuple[str, tuple[Key, ...]]
"""An attribute and the values of which it must have one."""


class Member:
    """Kept either in a segment, under a number, or in the table of rare values, under a demand."""

    __slots__ = ("conjunction", "demand", "filter", "number", "order", "segment")

    def __init__(self, order: int, filter: Filter, conjunction: Conjunction) -> None:
        self.order = order
        self.filter = filter
        self.conjunction = conjunction
        self.segment: object | None = None
        """The segment that keeps it. Only segments look at it, so nothing is said here of what they are."""
        self.number = 0
        self.demand: Demand | None = None
