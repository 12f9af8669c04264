"""Which events match which filter, by evaluating the filter's text on the published attributes.

Many subscriptions share a filter and many events share their attributes, so each pair of texts is evaluated once.
"""

from functools import lru_cache

from gapless.errors import GaplessError, TraceError
from gapless.events import Attributes
from gapless.filters import Filter, parse
from gapless.trace import EventRow, attributes_from_text

__all__ = ["Matching", "parsed_filter"]


class Matching:
    """The matching events of each filter, by publisher and in the order of their numbers."""

    def __init__(self, by_publisher: dict[str, list[EventRow]]) -> None:
        self._by_publisher = by_publisher
        self._found: dict[str, dict[str, list[EventRow]]] = {}

    def events(self, filter_text: str) -> dict[str, list[EventRow]]:
        """What matches the filter; publishers that have nothing are left out."""
        if filter_text not in self._found:
            self._found[filter_text] = self._find(filter_text)
        return self._found[filter_text]

    def _find(self, filter_text: str) -> dict[str, list[EventRow]]:
        test = parsed_filter(filter_text).test
        answers: dict[str, bool] = {}
        found = {}
        for publisher, events in self._by_publisher.items():
            matching = []
            for event in events:
                text = event.attributes
                answer = answers.get(text)
                if answer is None:
                    answer = answers[text] = test(_attributes(text))
                if answer:
                    matching.append(event)
            if matching:
                found[publisher] = matching
        return found


def parsed_filter(filter_text: str) -> Filter:
    """The filter of a subscription, or a `TraceError`."""
    try:
        return parse(filter_text)
    except GaplessError as error:
        raise TraceError(
            f"the filter {filter_text!r} of a subscription cannot be read: {str(error).splitlines()[0]}"
        ) from None


@lru_cache(maxsize=65_536)
def _attributes(text: str) -> Attributes:
    return attributes_from_text(text)
