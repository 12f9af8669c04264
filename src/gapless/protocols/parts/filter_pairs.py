"""Caches the results of comparing pairs of filters. Brokers repeat the same tests with every advertisement and
handover.
"""

from functools import lru_cache

from gapless.filters import Filter

__all__ = ["cover", "overlap"]

PAIRS_MAX = 65_536


@lru_cache(PAIRS_MAX)
def overlap(one: Filter, other: Filter) -> bool:
    """Return whether an event may match both filters."""
    return one.overlaps(other)


@lru_cache(PAIRS_MAX)
def cover(one: Filter, other: Filter) -> bool:
    """Return whether every event that matches `other` also matches `one`."""
    return one.covers(other)
