"""Finds subscription filters that are covered by another one in the same network.

Comparing two filters is fast, but all pairs of a list are compared. So each comparison is a separate turn of the event
loop, and only the first `FILTERS_MAX` distinct filters are compared.
"""

import asyncio
from collections.abc import Iterable

from gapless.errors import FilterError
from gapless.filters import Filter, parse

__all__ = ["find_covers"]

FILTERS_MAX = 40
TEXT_MAX = 2_000
"""The maximum length in characters of filters that are compared."""


async def find_covers(texts: Iterable[str]) -> dict[str, str]:
    """Return, for each filter that is covered by another one, the other filter."""
    filters = await _parsed(texts)
    found: dict[str, str] = {}
    for text, own in filters.items():
        for other, wider in filters.items():
            if other == text or found.get(other) == text:
                continue
            await asyncio.sleep(0)
            if wider.covers(own):
                found[text] = other
                break
    return found


async def _parsed(texts: Iterable[str]) -> dict[str, Filter]:
    filters: dict[str, Filter] = {}
    for text in dict.fromkeys(texts):
        if len(filters) >= FILTERS_MAX:
            break
        if len(text) <= TEXT_MAX:
            await asyncio.sleep(0)
            try:
                filters[text] = parse(text)
            except FilterError:
                continue
    return filters
