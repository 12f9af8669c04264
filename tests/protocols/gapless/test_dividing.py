"""Each receiver of a run gets its events, in order, and as few parts as their order allows."""

from itertools import groupby
from random import Random

import pytest

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.filters import FilterIndex, parse
from gapless.protocols.gapless.dividing import Division

FILTERS = ("x = 1", "x < 3", "x IS NULL", "y = 'a'", "y = 'a' AND x = 2", "x = 1 OR y = 'b'", "FALSE", "TRUE")


def drawn(dice: Random) -> EventRun:
    events = []
    for seq in range(1, dice.randint(2, 40)):
        attributes = {"x": dice.choice((1, 2, 3, 1.0)), "y": dice.choice("ab"), "z": seq}
        events.append(Event("p", seq, {name: attributes[name] for name in attributes if dice.random() < 0.8}, b"", 7))
    return EventRun.of(events)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_divided_is_what_each_event_matches(seed: int) -> None:
    dice = Random(seed)
    run, texts = drawn(dice), dice.sample(FILTERS, dice.randint(1, len(FILTERS)))
    index: FilterIndex[str] = FilterIndex()
    for text in texts:
        index.add(text, parse(text))
    division = Division(run, index.names)
    matches = {row: names for row, names in enumerate(index.match_many(division.rows)) if names}
    found = [(names, [event.seq for event in part]) for names, part in division.divided(matches)] if matches else []
    each = [([text for text in texts if parse(text).matches(event.attributes)], event.seq) for event in run]
    due = groupby((pair for pair in each if pair[0]), key=lambda pair: pair[0])
    assert found == [(names, [seq for _, seq in pairs]) for names, pairs in due]
    for row in matches:
        part = division.chosen([row])
        assert division.chosen([row]) is part, "receivers of the same events share one run"
        assert {tuple(event.attributes.get(name) for name in index.names) for event in part} == {
            tuple(division.rows[row].get(name) for name in index.names)
        }
