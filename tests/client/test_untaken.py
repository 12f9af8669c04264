"""What waits for an application is the same however it came, and however it is taken."""

from random import Random

import pytest

from gapless.client.untaken import Untaken
from gapless.events import Event, EventRun


def run(first: int, count: int) -> EventRun:
    return EventRun("p", first, [bytes([n]) for n in range(count)], [({"x": "a"}, count)], 7)


@pytest.mark.parametrize("seed", range(30))
def test_each_comes_once_and_in_order(seed: int) -> None:
    dice = Random(seed)
    untaken, expected, got = Untaken(), list[tuple[int, str]](), list[Event]()
    number = 1
    for _ in range(60):
        if dice.random() < 0.5:
            events = run(number, dice.randint(1, 12))
            untaken.put(number, events if dice.random() < 0.7 else [*events])
            expected += [(number + place, event.id) for place, event in enumerate(events)]
            number += len(events)
        if dice.random() < 0.2:
            assert [(each, event.id) for each, event in untaken] == expected[len(got) :]
        assert len(untaken) == len(expected) - len(got)
        if untaken:
            assert untaken.first == expected[len(got)][0]
        most = dice.choice((1, 1, 2, 5, 100))
        taken = untaken.take(most)
        assert len(taken) == min(most, len(expected) - len(got))
        got += taken
        assert [event.id for event in got] == [name for _, name in expected[: len(got)]]


def test_what_is_withdrawn_is_gone_and_the_rest_stays() -> None:
    untaken = Untaken()
    untaken.put(1, run(1, 3))
    untaken.put(4, [*run(4, 1)])
    assert [event.seq for event in untaken.take(1)] == [1]
    assert untaken.withdraw({9}) == []
    assert [event.seq for event in untaken.withdraw({2, 4, 5})] == [2, 4]
    assert (len(untaken), untaken.first) == (1, 3)
    assert [event.seq for event in untaken.take(9)] == [3]
    assert not untaken
    untaken.put(9, [])
    assert not untaken


def test_who_changes_the_attributes_of_an_event_changes_no_other() -> None:
    untaken = Untaken()
    untaken.put(1, run(1, 4))
    untaken.put(5, run(5, 2))
    for event in [*untaken.take(1), *untaken.take(2), *untaken.take(9)]:
        assert event.attributes == {"x": "a"}
        event.attributes.clear()
