"""Declares the direct causes of an event in its attribute `causes`.

Gapless delivers effects after their causes without recording which is which: every event delivered to a client before
it publishes counts as a cause. An application that knows the actual causes can declare them, so that others can follow
the chain:

    invoice = {"topic": "invoice", **caused_by(order)}

The attribute contains the positions of the causes, separated by spaces. A position identifies one event and its place
in history, and the filter `causes LIKE '%POSITION%'` finds the effects of an event.

If a cause was published with a trace (`traceparent`, see `gapless.otel`), the attribute `causetraces` has its trace
context, so that the span of a delivered effect links to the spans of its direct causes.
"""

from collections.abc import Mapping

from gapless.errors import CallError
from gapless.events import AttributeValue, Event
from gapless.positions import Position

__all__ = ["CAUSES", "CAUSES_MAX", "CAUSE_TRACES", "caused_by", "causes_of"]

CAUSES = "causes"
CAUSE_TRACES = "causetraces"
TRACE = "traceparent"
CAUSES_MAX = 32
"""The maximum number of direct causes of one event; more would make its attributes larger than most payloads."""


def caused_by(*causes: Event | Position) -> dict[str, str]:
    """Return the attribute that names the direct causes of an event, to be published with its others.

    Raises a `CallError` if there are more than 32, or if one has no position of its own: a network-wide position, or
    what `publish` returns.

    Parameters:
        causes: delivered events, or their positions.

    Example: `await client.publish({"topic": "invoice", **caused_by(order)})`
    """
    places = dict.fromkeys(each.position if isinstance(each, Event) else each for each in causes)
    if len(places) > CAUSES_MAX:
        raise CallError(
            f"an event has at most {CAUSES_MAX} direct causes, not {len(places)}; name the most important ones"
        )
    for place in places:
        if not isinstance(place, Position):
            raise CallError(f"{place!r:.200} has no position; name a delivered event, or its position")
        if place.is_network_wide:
            raise CallError(f"{place} is a network-wide position and names no event; name the event, or event.position")
    traces = [str(each.attributes[TRACE]) for each in causes if isinstance(each, Event) and TRACE in each.attributes]
    made = {CAUSES: " ".join(map(str, places))} if places else {}
    return made | ({CAUSE_TRACES: " ".join(dict.fromkeys(traces))} if traces else {})


def causes_of(attributes: Mapping[str, AttributeValue]) -> list[Position]:
    """Return the direct causes that an event names, at most 32; text that is not a position is skipped."""
    text = attributes.get(CAUSES)
    found = []
    for part in text.split()[:CAUSES_MAX] if isinstance(text, str) else ():
        try:
            position = Position(part)
        except ValueError:
            continue
        if not position.is_network_wide:
            found.append(position)
    return found
