"""The contents of a message, for any protocol."""

import msgspec
import pytest

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocol.carrying import body_of, events_of, layers_of, may_carry_events
from gapless.protocols.gapless.client_messages import Attach, Delivery
from gapless.protocols.gapless.link_messages import LinkMessage, Publication
from gapless.protocols.gapless.membership_messages import Completed
from gapless.protocols.gapless.messages import Frame

EVENT = Event("p", 1, {})
SAID = Publication(EventRun.of([EVENT]))
WRAPPED = Frame(0, 0, 1, 0, 0, LinkMessage(7, SAID))


def test_nested_messages_are_found_layer_by_layer() -> None:
    assert [type(layer) for layer in layers_of(WRAPPED)] == [Frame, LinkMessage, Publication]
    assert [len(events_of(layer)) for layer in layers_of(WRAPPED)] == [0, 0, 1]
    assert body_of(SAID) is None


def test_a_message_without_events_carries_none() -> None:
    assert list(events_of(Completed(1))) == []


@pytest.mark.parametrize(
    ("kind", "carries"), [(Frame, True), (Publication, True), (Delivery, True), (Attach, False), (Completed, False)]
)
def test_kinds_that_carry_events_or_wrap_what_may(kind: type[msgspec.Struct], carries: bool) -> None:
    assert may_carry_events(kind) == carries
