"""One conjunction of one filter in an index, and where it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapless.filters.filter import Filter
from gapless.filters.normal_form import Conjunction

if TYPE_CHECKING:
    from gapless.filters.segment import Segment

Key = str | int | float
Demand = tuple[str, tuple[Key, ...]]
"""An attribute and the values of which it must have one."""


class Member:
    """Kept either in a segment, under a number, or in the table of rare values, under a demand."""

    __slots__ = ("conjunction", "demand", "filter", "number", "order", "segment")

    def __init__(self, order: int, filter: Filter, conjunction: Conjunction) -> None:  # noqa: A002
        self.order = order
        self.filter = filter
        self.conjunction = conjunction
        self.segment: Segment | None = None
        self.number = 0
        self.demand: Demand | None = None
