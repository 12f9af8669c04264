"""Numbers of events, by publisher, as ranges: ascending, apart from each other."""

from typing import TypeAlias

__all__ = ["Ranges", "add_range", "add_ranges", "count", "take_away", "without"]

Ranges: TypeAlias = dict[str, list[tuple[int, int]]]
"""By publisher: first and last."""


def add_range(ranges: Ranges, publisher: str, first: int, last: int) -> None:
    """Add the numbers from the first to the last."""
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


def add_ranges(ranges: Ranges, others: Ranges) -> None:
    """Add all numbers of others."""
    for publisher, known in others.items():
        for first, last in known:
            add_range(ranges, publisher, first, last)


def without(ranges: Ranges, other: Ranges) -> Ranges:
    """The numbers that the other has not."""
    found = {publisher: take_away(known, other.get(publisher, [])) for publisher, known in ranges.items()}
    return {publisher: rest for publisher, rest in found.items() if rest}


def take_away(known: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The numbers of one publisher that are not among the others."""
    rest = []
    for first, last in known:
        for begin, end in others:
            if end < first or begin > last:
                continue
            if begin > first:
                rest.append((first, begin - 1))
            first = end + 1
        if first <= last:
            rest.append((first, last))
    return rest


def count(ranges: Ranges) -> int:
    """How many numbers there are."""
    return sum(last - first + 1 for known in ranges.values() for first, last in known)
