"""Finds the events that match each filter, by evaluating the filter's text on the published
attributes.

Many subscriptions share a filter and many events share their attributes: all filters are put into
one index, and each text of attributes is looked up in it once.
"""

from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from gapless.errors import GaplessError, TraceError
from gapless.filters import Filter, FilterIndex, parse
from gapless.trace import attributes_from_text

__all__ = ["Matching", "parsed_filter"]


class _Numbered(Protocol):
    @property
    def publisher(self) -> str: ...
    @property
    def seq(self) -> int: ...


P = TypeVar("P", bound=_Numbered)
_Found = dict[str, dict[int, P]]


class Matching(Generic[P]):
    """The events that match each filter, by publisher and number, in ascending order."""

    def __init__(self, filters: Iterable[str], events: Iterable[tuple[P, str]]) -> None:
        """Index the events by publisher and number; each comes with its attributes."""
        self._by_text: dict[str, list[P]] = {}
        for event, text in events:
            self._by_text.setdefault(text, []).append(event)
        self._texts: dict[str, list[str]] = {text: [] for text in filters}
        index: FilterIndex[str] = FilterIndex()
        for text in self._texts:
            index.add(text, parsed_filter(text))
        if self._texts:
            answers = index.match_many([attributes_from_text(text) for text in self._by_text])
            for text, found in zip(self._by_text, answers, strict=True):
                for name in found:
                    self._texts[name].append(text)
        self._found: dict[str, _Found[P]] = {}

    def events(self, filter_text: str) -> Mapping[str, Mapping[int, P]]:
        """Return the events that match the filter. Publishers without any are omitted."""
        if filter_text not in self._found:
            self._found[filter_text] = self._find(filter_text)
        return self._found[filter_text]

    def _find(self, filter_text: str) -> _Found[P]:
        found: _Found[P] = {}
        for text in self._texts[filter_text]:
            for event in self._by_text[text]:
                found.setdefault(event.publisher, {})[event.seq] = event
        if len(self._texts[filter_text]) > 1:
            return {publisher: dict(sorted(events.items())) for publisher, events in found.items()}
        return found


def parsed_filter(filter_text: str) -> Filter:
    """Return the parsed filter of a subscription. Raise a `TraceError` if it is invalid."""
    try:
        return parse(filter_text)
    except GaplessError as error:
        raise TraceError(
            f"the filter {filter_text!r} of a subscription cannot be parsed: {str(error).splitlines()[0]}"
        ) from None
