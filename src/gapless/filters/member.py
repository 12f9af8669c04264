"""A conjunction of a filter in an index, with its location."""

from __future__ import annotations

from gapless.filters.filter import Filter
from gapless.filters.normal_form import Conjunction

Key = str | int | float
Demand = tuple[str, tuple[Key, ...]]
"""An attribute, and the values of which the attribute must have one."""


class Member:
    """A conjunction, stored in a segment under a number or in the table of rare values under its required values."""

    __slots__ = ("conjunction", "demand", "filter", "number", "order", "segment")

    def __init__(self, order: int, filter: Filter, conjunction: Conjunction) -> None:
        self.order = order
        self.filter = filter
        self.conjunction = conjunction
        self.segment: object | None = None
        """The segment that contains the conjunction. Only segments use it, so its type is left open."""
        self.number = 0
        self.demand: Demand | None = None
