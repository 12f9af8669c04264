"""Declaring the direct causes of an event, and reading them."""

import pytest

from gapless.causes import CAUSES_MAX, caused_by, causes_of
from gapless.errors import CallError
from gapless.events import AttributeValue, Event, PublishedEvent
from gapless.positions import Position


def delivered(number: int, **attributes: AttributeValue) -> Event:
    return Event("ann", number, attributes, b"", 1_793_280_000_000_000 + number)


def test_causes_are_positions_and_are_read_again() -> None:
    causes = [delivered(1), delivered(2, traceparent="00-a-b-01")]
    made = caused_by(*causes, causes[1].position)
    assert causes_of(made) == [each.position for each in causes]
    assert made["causetraces"] == "00-a-b-01"
    assert causes_of({"causes": "p1 order-17 p1793280000000001-1-ann"}) == [causes[0].position]
    assert causes_of({}) == causes_of({"causes": 7}) == []


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        ([delivered(n) for n in range(1, CAUSES_MAX + 2)], "at most 32 direct causes, not 33"),
        ([Position("p1793280000000000")], "names no event"),
        ([PublishedEvent("ann", 1, {})], "has no position; name a delivered event"),
    ],
)
def test_causes_without_a_position_and_too_many_are_refused(causes: list[Event | Position], words: str) -> None:
    with pytest.raises(CallError, match=words):
        caused_by(*causes)
