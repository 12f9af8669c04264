"""Events that wait for an application are the same, however they arrive and are taken."""

from random import Random

import pytest

from gapless.client.pending_events import PendingEvents
from gapless.event_runs import EventRun, EventTable
from gapless.events import Event


def run(first: int, count: int) -> EventRun:
    return EventRun("p", first, EventTable.of([{"x": "a"}] * count, [bytes([n]) for n in range(count)]), 7)


@pytest.mark.parametrize("seed", range(30))
def test_each_comes_once_and_in_order(seed: int) -> None:
    dice = Random(seed)
    pending_events, expected, got = PendingEvents(), list[tuple[int, str]](), list[Event]()
    number = 1
    for _ in range(60):
        if dice.random() < 0.5:
            events = run(number, dice.randint(1, 12))
            pending_events.put(number, events if dice.random() < 0.7 else [*events])
            expected += [(number + place, event.id) for place, event in enumerate(events)]
            number += len(events)
        if dice.random() < 0.2:
            assert [(each, event.id) for each, event in pending_events] == expected[len(got) :]
        assert len(pending_events) == len(expected) - len(got)
        if pending_events:
            assert pending_events.first == expected[len(got)][0]
        most = dice.choice((1, 1, 2, 5, 100))
        taken = pending_events.take(most)
        assert len(taken) == min(most, len(expected) - len(got))
        got += taken
        assert [event.id for event in got] == [name for _, name in expected[: len(got)]]


def test_withdrawn_items_are_removed_and_the_rest_stays() -> None:
    pending_events = PendingEvents()
    pending_events.put(1, run(1, 3))
    pending_events.put(4, [*run(4, 1)])
    assert [event.seq for event in pending_events.take(1)] == [1]
    assert pending_events.withdraw({9}) == []
    assert [event.seq for event in pending_events.withdraw({2, 4, 5})] == [2, 4]
    assert (len(pending_events), pending_events.first) == (1, 3)
    assert [event.seq for event in pending_events.take(9)] == [3]
    assert not pending_events
    pending_events.put(9, [])
    assert not pending_events


def test_changing_the_attributes_of_an_event_changes_no_other() -> None:
    pending_events = PendingEvents()
    pending_events.put(1, run(1, 4))
    pending_events.put(5, run(5, 2))
    for event in [*pending_events.take(1), *pending_events.take(2), *pending_events.take(9)]:
        assert event.attributes == {"x": "a"}
        event.attributes.clear()
