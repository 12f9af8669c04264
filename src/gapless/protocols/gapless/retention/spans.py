"""Numbers as spans: ascending, apart from each other. What comes in runs costs as much as one number."""

from bisect import bisect_right

__all__ = ["Span", "Spans"]

Span = tuple[int, int]
"""The first and the last of some numbers."""
BEYOND = 1 << 62


class Spans:
    """A set of numbers, most of which come and go in order."""

    def __init__(self) -> None:
        self._spans: list[Span] = []

    def __contains__(self, number: int) -> bool:
        return self.end_of(number) > 0

    def end_of(self, number: int) -> int:
        """The last of the numbers that follow on this one, itself included, without a gap; 0 if it is not there."""
        place = bisect_right(self._spans, (number, BEYOND)) - 1
        return self._spans[place][1] if place >= 0 and self._spans[place][1] >= number else 0

    def add(self, first: int, last: int) -> None:
        """Add the numbers from the first to the last."""
        spans = self._spans
        if not spans or first > spans[-1][1] + 1:
            spans.append((first, last))
            return
        if first == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], last)
            return
        begin = end = bisect_right(spans, first - 2, key=lambda span: span[1])
        while end < len(spans) and spans[end][0] <= last + 1:
            first, last = min(first, spans[end][0]), max(last, spans[end][1])
            end += 1
        spans[begin:end] = [(first, last)]

    def remove(self, first: int, last: int) -> None:
        """Take out the numbers from the first to the last, as far as they are there."""
        spans = self._spans
        begin = end = bisect_right(spans, first - 1, key=lambda span: span[1])
        rest: list[Span] = []
        while end < len(spans) and spans[end][0] <= last:
            if spans[end][0] < first:
                rest.append((spans[end][0], first - 1))
            if spans[end][1] > last:
                rest.append((last + 1, spans[end][1]))
            end += 1
        spans[begin:end] = rest
