"""Events in a row that no filter tells apart: what is true of the attributes of one is true of all.

Equal is not enough: 1, 1.0 and true are equal, and a filter knows them apart. Text equals nothing but text.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from gapless.events import Attributes

__all__ = ["Stretch", "stretches"]

Stretch: TypeAlias = tuple[Attributes, int]
"""The attributes of some events in a row, and the place after the last of them."""
TEXT = {str}


class _Event(Protocol):
    @property
    def attributes(self) -> Attributes: ...


def stretches(events: Sequence[_Event]) -> list[Stretch]:
    """The events, which are some, as stretches."""
    if len(events) == 1:
        return [(events[0].attributes, 1)]
    attributes = [event.attributes for event in events]
    latest = attributes[0]
    is_text = _is_text(latest)
    if is_text and attributes.count(latest) == len(attributes):
        return [(latest, len(attributes))]
    found: list[Stretch] = []
    for place, each in enumerate(attributes):
        if each is not latest and not (each == latest and (is_text or _types(each, latest))):
            found.append((latest, place))
            latest, is_text = each, _is_text(each)
    found.append((latest, len(attributes)))
    return found


def _is_text(attributes: Attributes) -> bool:
    return {*map(type, attributes.values())} == TEXT


def _types(some: Attributes, others: Attributes) -> bool:
    """Whether equal attributes are of the same types."""
    return all(type(value) is type(others[name]) for name, value in some.items())
