"""What takes long of an input, done in pieces before the input is taken.

A thousand subscriptions `note LIKE '%…%'` and one event with a note of 64 KiB would hold a broker up for seconds; a
client that comes with ten thousand filters, all of which have to be understood, for as long.
"""

from gapless.errors import FilterError
from gapless.events import Attributes, Events
from gapless.filters import Filter, parse
from gapless.filters.string_precomputation import LONG, STEPS
from gapless.protocol import Input, Received
from gapless.protocols.gapless.client_messages import Attach, ClientPublish
from gapless.protocols.gapless.clients.claims import EFFORT_MAX
from gapless.protocols.gapless.messages import Frame, Publication, Tree
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.parts.alike import stretches
from gapless.protocols.parts.bounds import TEXT_MAX

__all__ = ["foresee", "foresee_attach"]

STEPS_PER_UNIT = STEPS // 50
"""Steps (`filters.foresight`) that take as long as a unit of work."""

FEW = 100
"""Filters that a client may bring at once."""

EFFORT_PER_UNIT = 100
"""Steps of normalising a filter that take as long as a unit of work."""

TEXT_PER_UNIT = 500
"""Characters of a filter that take as long to read as a unit of work."""


def foresee(table: RoutingTable, item: Input) -> Pieces[None] | None:
    """What is to be done before this input is taken; None if it takes no time."""
    events = _events_in(item)
    found = [attributes for attributes, _ in stretches(events) if _is_long(attributes)] if events else []
    return _look_ahead(table, found) if found else None


def foresee_attach(table: RoutingTable, message: Attach) -> Pieces[object] | None:
    """The same, for what a client brings that begins or resumes a session."""
    texts = [progress.filter for progress in message.brought]
    texts += [text for text, _ in message.advertisements.values()]
    if sum(map(len, texts)) > TEXT_MAX:
        return None  # whoever takes the input refuses it, before any of it is parsed
    events = message.publications if table.has_searches else []
    found = [event.attributes for event in events if _is_long(event.attributes)]
    if len(texts) <= FEW and not found:
        return None
    return _understand(table, texts, found)


def _understand(table: RoutingTable, texts: list[str], found: list[Attributes]) -> Pieces[list[Filter]]:
    """Whoever parses one of these texts again while this is not forgotten is given the same filter."""
    filters: list[Filter] = []
    effort = 0
    for text in texts:
        try:
            filters.append(parse(text))
        except FilterError:
            return filters  # whoever takes the input will say so
        more = filters[-1].effort
        effort += more
        if effort > EFFORT_MAX:
            return filters  # and this, too
        yield 1 + more // EFFORT_PER_UNIT + len(text) // TEXT_PER_UNIT
    yield from _look_ahead(table, found)
    return filters


def _look_ahead(table: RoutingTable, found: list[Attributes]) -> Pieces[None]:
    for attributes in found:
        for steps in table.foresee(attributes):
            yield steps // STEPS_PER_UNIT


def _events_in(item: Input) -> Events:
    """The events that will be matched because of this input, now or when backups hold them."""
    message = item.message if isinstance(item, Received) else None
    while isinstance(message, Frame | Tree):
        message = message.body
    match message:
        case ClientPublish(events=events) | Publication(events=events):
            return events
        case _:
            return []


def _is_long(attributes: Attributes) -> bool:
    return any(type(value) is str and len(value) > LONG for value in attributes.values())
