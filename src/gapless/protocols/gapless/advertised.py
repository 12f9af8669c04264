"""The filters that lost events of a publisher may have matched, as far as this broker can tell from its table.

Each event matched an advertisement that was stable when it was admitted. Numbers above `advertised_after` matched one
of the present advertisements. That is the publisher's number when its first present advertisement began, or when one of
them last ended. Smaller numbers may have matched anything.
"""

from gapless.filters import Filter
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.parts.filter_pairs import overlap
from gapless.protocols.parts.ranges import Ranges

__all__ = ["filter_text", "may_concern"]

FILTERS_MAX = 10
"""The maximum number of advertisements of a publisher whose filters are considered. With more, its tombstones go to all
subscriptions."""


def filter_text(s: BrokerState, publisher: str, first: int) -> str:
    """Return the text of a filter that every event of the publisher from number `first` on has matched."""
    filters = _filters(s, publisher)
    if first <= s.advertised_after.get(publisher, first) or len(filters) > FILTERS_MAX:
        return "TRUE"
    return " OR ".join(f"({each.text})" for each in filters)


def may_concern(s: BrokerState, lost: Ranges, pattern: Filter) -> Ranges:
    """Return the lost numbers that may have matched the filter."""
    found: Ranges = {}
    for publisher, ranges in lost.items():
        after = s.advertised_after.get(publisher)
        if after is not None and not any(overlap(each, pattern) for each in _filters(s, publisher)):
            ranges = [(first, min(last, after)) for first, last in ranges if first <= after]
        if ranges:
            found[publisher] = ranges
    return found


def _filters(s: BrokerState, publisher: str) -> list[Filter]:
    return [each.filter for each in s.advertisements_of.get(publisher, {}).values()]
