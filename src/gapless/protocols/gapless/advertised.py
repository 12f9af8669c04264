"""The filters that lost events of a publisher may have matched, as far as this broker can tell from its table.

Each event matched an advertisement that was stable when it was admitted. Above the number that the publisher had when
its first present advertisement began, or when one of them ended later (`advertised_after`), all matched one of those
that are there now. Smaller numbers may have matched anything.
"""

from gapless.filters import Filter
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.filter_pairs import overlap
from gapless.protocols.parts.ranges import Ranges

__all__ = ["filter_text", "may_concern"]

FILTERS_MAX = 10
"""If a publisher has more advertisements, its tombstones are for everybody."""


def filter_text(s: BrokerState, publisher: str, first: int) -> str:
    """A filter that events of a publisher have matched whose numbers are not smaller than this."""
    filters = _filters(s, publisher)
    if first <= s.advertised_after.get(publisher, first) or len(filters) > FILTERS_MAX:
        return "TRUE"
    return " OR ".join(f"({each.text})" for each in filters)


def may_concern(s: BrokerState, lost: Ranges, pattern: Filter) -> Ranges:
    """Of these lost numbers, those that may have matched a filter."""
    found: Ranges = {}
    for publisher, ranges in lost.items():
        after = s.advertised_after.get(publisher)
        if after is not None and not any(overlap(each, pattern) for each in _filters(s, publisher)):
            ranges = [(first, min(last, after)) for first, last in ranges if first <= after]
        if ranges:
            found[publisher] = ranges
    return found


def _filters(s: BrokerState, publisher: str) -> list[Filter]:
    return [each.filter for each in s.advertisements.values() if each.publisher == publisher]
