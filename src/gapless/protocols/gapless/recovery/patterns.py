"""The filters of one hand-over, each read once: the general store of filters is smaller than a large table."""

from collections.abc import Iterable

from gapless.filters import Filter, parse

__all__ = ["Patterns"]


class Patterns:
    """Filters by their texts."""

    def __init__(self, known: Iterable[Filter] = ()) -> None:
        self._by_text = {pattern.text: pattern for pattern in known}

    def of(self, text: str) -> Filter:
        """The filter that the text says."""
        found = self._by_text.get(text)
        if found is None:
            found = self._by_text[text] = parse(text)
        return found
