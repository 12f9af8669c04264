"""A filter or an attribute's name may not mean what its author thinks: the client's log says so, once.

`order-id = 1` is a subtraction, and an attribute `order-id` has to stand in double quotes in filters. Both are allowed,
so nothing is refused. But without a word, their author would wait for events in vain.
"""

import logging
from functools import lru_cache

from gapless.client.arguments import shown
from gapless.filters import attribute_hint, filter_hints

__all__ = ["hint_at_filter", "hint_at_name"]

TOLD_MAX = 1_000
"""So many are remembered as told."""

_logger = logging.getLogger("gapless.client")


@lru_cache(TOLD_MAX)
def hint_at_filter(text: str) -> None:
    """A filter that can be read is about to be used."""
    for hint in filter_hints(text):
        _logger.warning(f"the filter {shown(text)} may not mean what you think: {hint}")


@lru_cache(TOLD_MAX)
def hint_at_name(name: str) -> None:
    """An attribute whose name has a hyphen is published."""
    hint = attribute_hint(name)
    if hint is not None:
        _logger.warning(hint)
