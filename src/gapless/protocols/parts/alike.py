"""Consecutive events that no filter can distinguish: a test of one's attributes holds for all."""

from collections.abc import Sequence
from typing import Protocol

from gapless.events import Attributes, EventRun, Events, Stretch, are_alike

__all__ = ["Stretch", "joined", "stretches"]

TEXT = {str}
"""Equals nothing but text."""


class _Event(Protocol):
    @property
    def attributes(self) -> Attributes: ...


def stretches(events: Sequence[_Event] | EventRun) -> list[Stretch]:
    """Return the events, of which there is at least one, as stretches."""
    if isinstance(events, EventRun):
        return events.alike
    if len(events) == 1:
        return [(events[0].attributes, 1)]
    attributes = [event.attributes for event in events]
    latest = attributes[0]
    is_text = _is_text(latest)
    if is_text and attributes.count(latest) == len(attributes):
        return [(latest, len(attributes))]
    found: list[Stretch] = []
    for place, each in enumerate(attributes):
        if each is not latest and not (each == latest if is_text else are_alike(each, latest)):
            found.append((latest, place))
            latest, is_text = each, _is_text(each)
    found.append((latest, len(attributes)))
    return found


def joined(some: Events, more: Events) -> Events:
    """Join events with those that follow them: into a run, if both are."""
    if not isinstance(some, EventRun) or not isinstance(more, EventRun):
        return [*some, *more]
    latest, following = some.alike[-1][0], more.alike[0][0]
    kept = some.alike[:-1] if are_alike(latest, following) else some.alike
    alike = [*kept, *((attributes, len(some) + end) for attributes, end in more.alike)]
    return EventRun(some.publisher, some.first, some.payloads + more.payloads, alike, some.stamp)


def _is_text(attributes: Attributes) -> bool:
    return {*map(type, attributes.values())} == TEXT
