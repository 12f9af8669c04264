"""Logs a hint, once, for a filter or an attribute name that may not mean what its author intended.

`order-id = 1` is a subtraction, and an attribute `order-id` needs double quotes in filters. Both are valid, so neither
is refused. But without a hint, the author would wait for events in vain.
"""

import logging
from functools import lru_cache

from gapless.client.arguments import shown
from gapless.filters import attribute_hint, filter_hints

__all__ = ["hint_at_filter", "hint_at_name"]

HINTS_MAX = 1_000
"""The number of hints that are remembered, so that each is logged once."""

_logger = logging.getLogger("gapless.client")


@lru_cache(HINTS_MAX)
def hint_at_filter(text: str) -> None:
    """Log a hint if the filter is valid but probably a mistake."""
    for hint in filter_hints(text):
        _logger.warning(f"the filter {shown(text)} may not mean what you think: {hint}", extra={"event": "filter.hint"})


@lru_cache(HINTS_MAX)
def hint_at_name(name: str) -> None:
    """Log a hint if the name of a published attribute has a hyphen."""
    hint = attribute_hint(name)
    if hint is not None:
        _logger.warning(hint, extra={"event": "attribute.hint"})
