"""Sets of event numbers by publisher, as ascending ranges that are not adjacent."""

from typing import TypeAlias

__all__ = ["Ranges", "add_range", "add_ranges", "without"]

Ranges: TypeAlias = dict[str, list[tuple[int, int]]]
"""For each publisher, the first and last number of each range."""


def add_range(ranges: Ranges, publisher: str, first: int, last: int) -> None:
    """Add the numbers from `first` to `last` of a publisher to the ranges."""
    known = ranges.setdefault(publisher, [])
    if not known or first > known[-1][1] + 1:
        known.append((first, last))
        return
    if first >= known[-1][0]:
        known[-1] = (known[-1][0], max(known[-1][1], last))
        return
    apart = [item for item in known if item[1] < first - 1 or item[0] > last + 1]
    met = [item for item in known if not (item[1] < first - 1 or item[0] > last + 1)]
    apart.append((min([first, *(item[0] for item in met)]), max([last, *(item[1] for item in met)])))
    known[:] = sorted(apart)


def add_ranges(ranges: Ranges, more: Ranges) -> None:
    """Add all numbers in `more` to the ranges."""
    for publisher, pairs in more.items():
        for first, last in pairs:
            add_range(ranges, publisher, first, last)


def without(known: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """Return the parts of a range that the known ranges do not contain."""
    found = []
    for begin, end in known:
        if first < begin and first <= last:
            found.append((first, min(last, begin - 1)))
        first = max(first, end + 1)
    return [*found, (first, last)] if first <= last else found
