"""A run is its events: whoever asks for them, cuts it or sends it gets the same as from a list of them."""

from random import Random
from typing import Any

import msgspec
import pytest

from gapless.events import Event, EventList, EventRun, Events, are_alike, size_apart
from gapless.protocols.parts.alike import joined, stretches

RUN = EventRun("p", 5, [b"a", b"b", b"c", b"d"], [({"x": 1}, 1), ({"x": 2}, 3), ({}, 4)], 9)
LIST = [
    Event("p", 5, {"x": 1}, b"a", 9),
    Event("p", 6, {"x": 2}, b"b", 9),
    Event("p", 7, {"x": 2}, b"c", 9),
    Event("p", 8, {}, b"d", 9),
]


def whole(events: Events) -> list[tuple[Any, ...]]:
    """All of each event: its stamp, which `==` leaves out, too."""
    return [msgspec.structs.astuple(event) for event in events]


def test_it_is_its_events() -> None:
    assert RUN == LIST
    assert LIST == RUN
    assert whole(RUN) == whole(LIST)
    assert LIST[:3] != RUN
    assert (*LIST,) != RUN
    assert (len(RUN), RUN.last) == (4, 8)
    assert [RUN[place] for place in range(-4, 4)] == [LIST[place] for place in range(-4, 4)]
    assert stretches(RUN) == [({"x": 1}, 1), ({"x": 2}, 3), ({}, 4)]
    for place in (4, -5):
        with pytest.raises(IndexError):
            RUN[place]


def test_a_part_of_it_is_that_part_of_its_events() -> None:
    for begin in range(-5, 6):
        for end in range(-5, 6):
            part = RUN[begin:end]
            assert whole(part) == whole(LIST[begin:end])
            assert isinstance(part, EventRun) == bool(LIST[begin:end])
    assert whole(RUN[2:]) == whole(LIST[2:])
    assert whole(RUN[:2]) == whole(LIST[:2])


@pytest.mark.parametrize("seed", range(20))
def test_parts_put_together_again_are_the_run(seed: int) -> None:
    dice = Random(seed)
    ends = [*sorted(dice.sample(range(1, 30), dice.randint(0, 8))), 30]
    alike: Any = [({"x": dice.choice((1, 1.0, True, "1"))}, end) for end in ends]
    run = EventRun("p", 1, [bytes([n]) for n in range(30)], alike, 3)
    cut = dice.randint(1, 29)
    again = joined(run[:cut], run[cut:])
    assert isinstance(again, EventRun)
    assert whole(again) == whole(run)
    assert [type(event.attributes["x"]) for event in again] == [type(event.attributes["x"]) for event in run]
    assert whole(joined([*run[:cut]], run[cut:])) == whole(run)


def test_what_is_equal_and_of_another_type_is_not_alike() -> None:
    one, same, other = (EventRun("p", seq, [b""], [({"x": x}, 1)]) for seq, x in ((1, 1), (2, 1), (2, True)))
    assert stretches(joined(one, same)) == [({"x": 1}, 2)]
    assert len(stretches(joined(one, other))) == 2


NAN = float("nan")
VALUES: list[Any] = [0, 1, -1, 2**63 - 1, 0.0, -0.0, 1.0, -1.0, float("inf"), NAN, float("nan"), True, False, "", "1"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("other", VALUES, ids=repr)
def test_values_are_alike_if_one_can_stand_for_the_other(value: Any, other: Any) -> None:
    is_same = type(value) is type(other) and repr(value) == repr(other)
    if value == value and other == other:
        assert are_alike({"x": value}, {"x": other}) == is_same
    else:
        assert are_alike({"x": value}, {"x": other}) == (value is other)
    events = [Event("p", 1, {"x": value}), Event("p", 2, {"x": other})]
    runs = [EventRun("p", event.seq, [b""], [(event.attributes, 1)]) for event in events]
    for merged in (EventRun("p", 1, [b"", b""], stretches(events)), joined(*runs)):
        assert [repr(event.attributes["x"]) for event in merged] == [repr(value), repr(other)]


@pytest.mark.parametrize(
    ("payloads", "ends", "complaint"),
    [
        (2, [3], "has 2 payloads, and attributes for 3"),
        (3, [2], "has 3 payloads, and attributes for 2"),
        (2, [1], "has 2 payloads, and attributes for 1"),
        (2, [], "has 2 payloads, and attributes for 0"),
        (0, [], "has 0 payloads, and attributes for 0"),
        (0, [0], "do not ascend"),
        (2, [1, 1, 2], "do not ascend"),
        (2, [2, 1], "do not ascend"),
        (2, [-1, 2], "do not ascend"),
        (2, [2**63], "has 2 payloads, and attributes for 9,223,372,036,854,775,808"),
    ],
)
def test_a_run_that_does_not_say_of_each_event_what_it_is_cannot_be_read(
    payloads: int, ends: list[int], complaint: str
) -> None:
    told = {"publisher": "p", "first": 1, "payloads": [b""] * payloads, "alike": [({}, end) for end in ends]}
    with pytest.raises(msgspec.ValidationError, match=complaint):
        msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Events)


@pytest.mark.parametrize(
    "change",
    [
        {"publisher": 1},
        {"first": "1"},
        {"payloads": ["text"]},
        {"payloads": b"x"},
        {"alike": {}},
        {"alike": [({"x": None}, 1)]},
        {"alike": [({"x": {}}, 1)]},
        {"alike": [({1: 1}, 1)]},
        {"alike": [({}, 1, 2)]},
        {"stamp": None},
    ],
)
def test_what_is_of_another_type_cannot_be_read(change: dict[str, Any]) -> None:
    told: dict[str, Any] = {"publisher": "p", "first": 1, "payloads": [b"x"], "alike": [({}, 1)]}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Events) == [Event("p", 1, {}, b"x")]
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode({**told, **change}), type=Events)
    for missing in told:
        part = {key: value for key, value in told.items() if key != missing}
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=Events)


def test_both_forms_come_back_as_they_were() -> None:
    for events in (RUN, LIST, EventList(LIST)):
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(events), type=Events)
        assert isinstance(again, EventRun) == (events is RUN)
        assert whole(again) == whole(events)
    assert msgspec.msgpack.decode(RUN.encoded, type=Events) == RUN


def test_its_size_is_that_of_its_events_one_by_one() -> None:
    """Events that share parts on the wire do not share them in memory once separated: bounds count each in full."""
    shared = EventRun("publisher", 1_000_000, [b"x" * 10] * 100, [({"note": "y" * 1_000}, 100)], 1 << 50)
    assert len(shared.encoded) < 3_000
    for run in (RUN, shared):
        alone = len(msgspec.msgpack.encode([*run]))
        assert alone <= size_apart(run, run.encoded) <= alone + 100 + 20 * len(run)
    assert size_apart(LIST, msgspec.msgpack.encode(LIST)) == len(msgspec.msgpack.encode(LIST))
