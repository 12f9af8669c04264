"""What takes long of an input, done in pieces before the input is taken: patterns in long strings of its events.

A thousand subscriptions `note LIKE '%…%'` and one event with a note of 64 KiB would hold a broker up for seconds.
"""

from collections.abc import Iterator

from gapless.events import Event
from gapless.filters.foresight import LONG, STEPS
from gapless.protocol import Input, Received
from gapless.protocols.gapless.client_messages import Attach, ClientPublish
from gapless.protocols.gapless.messages import Frame, Publication, Tree
from gapless.protocols.gapless.recovery.pieces import Pieces
from gapless.protocols.gapless.routing.routing_table import RoutingTable

__all__ = ["foresee"]

STEPS_PER_UNIT = STEPS // 50
"""Steps (`filters.foresight`) that take as long as a unit of work."""


def foresee(table: RoutingTable, item: Input) -> Pieces[None] | None:
    """What is to be done before this input is taken; None if it takes no time."""
    events = [event for event in _events_in(item) if _is_long(event)]
    return _look_ahead(table, events) if events else None


def _look_ahead(table: RoutingTable, events: list[Event]) -> Pieces[None]:
    for event in events:
        for steps in table.foresee(event.attributes):
            yield steps // STEPS_PER_UNIT


def _events_in(item: Input) -> Iterator[Event]:
    """The events that will be matched because of this input, now or when backups hold them."""
    message = item.message if isinstance(item, Received) else None
    while isinstance(message, Frame | Tree):
        message = message.body
    match message:
        case ClientPublish(events=events) | Publication(events=events) | Attach(publications=events):
            yield from events


def _is_long(event: Event) -> bool:
    return any(type(value) is str and len(value) > LONG for value in event.attributes.values())
