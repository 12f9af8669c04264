"""A run behaves like its list of events when it is iterated, split or sent."""

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec
import pytest

from gapless.event_runs import EventRun, EventTable, TableError
from gapless.events import INTEGER_MAX, Attributes, Event
from gapless.filters import parse
from gapless.filters.tables import is_covered, matching

NAN = float("nan")
VALUES: list[Any] = [0, 1, -1, INTEGER_MAX, 0.0, -0.0, 1.0, -1.0, float("inf"), NAN, float("nan"), True, False, "", "1"]
LIST = [
    Event("p", 5, {"x": 1}, b"a", 9),
    Event("p", 6, {"x": 2}, b"b", 9),
    Event("p", 7, {"x": 2, "y": "ä"}, b"c", 9),
    Event("p", 8, {}, b"d", 9),
]
RUN = EventRun.of(LIST)


def whole(events: Iterable[Event]) -> list[tuple[str, ...]]:
    """Return all data of each event, with the types and signs of its values, and the timestamp, which `==` ignores."""
    return [
        (event.id, repr(sorted(event.attributes.items())), repr(event.payload), str(event.stamp)) for event in events
    ]


def drawn(seed: int) -> list[Event]:
    dice = Random(seed)
    names = ["x", "y", "z", "a b", "'", "\\"][: dice.randint(0, 6)]
    values = dice.sample(VALUES, dice.randint(1, 4))
    seq, events = dice.randint(1, 9), []
    for _ in range(dice.randint(1, 40)):
        attributes: Attributes = {name: dice.choice(values) for name in names if dice.random() < 0.9}
        events.append(Event("p", seq, attributes, bytes(dice.randint(0, 3)), 3))
        seq += 1 if seed % 2 else dice.randint(1, 3)
    return events


@pytest.mark.parametrize("seed", range(60))
def test_it_is_its_events(seed: int) -> None:
    events = drawn(seed)
    run = EventRun.of(events)
    assert whole(run) == whole(events)
    assert (len(run), run.first, run.last) == (len(events), events[0].seq, events[-1].seq)
    assert list(run.seqs) == [event.seq for event in events]
    assert whole([run.event(place) for place in range(len(run))]) == whole(events)
    run.table.check()
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=EventRun)
    assert whole(again) == whole(events)
    assert whole(run.stamped(12)) == [(*each[:3], "12") for each in whole(events)]


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_it_are_those_parts_of_its_events(seed: int) -> None:
    dice, events = Random(seed), drawn(seed)
    run = EventRun.of(events)
    for _ in range(10):
        places = sorted(dice.sample(range(len(events)), dice.randint(1, len(events))))
        assert whole(run.pick(places)) == whole(events[place] for place in places)
        begin, end = places[0], places[-1] + 1
        assert whole(run.part(begin, end)) == whole(events[begin:end])
        seq = dice.randint(0, events[-1].seq + 2)
        assert whole(run.after(seq) or []) == whole(event for event in events if event.seq > seq)
        assert whole(run.upto(seq) or []) == whole(event for event in events if event.seq <= seq)


FILTERS = [
    "x = 1",
    "x = TRUE",
    "x < 1",
    "x IS NULL",
    "y = '1' OR x = -1",
    "x = y",
    "z <> 0",
    "TRUE",
    "x LIKE '1%'",
    '"\'" = 0',
]


@pytest.mark.parametrize("seed", range(60))
def test_filters_see_each_of_its_events(seed: int) -> None:
    events = drawn(seed)
    run = EventRun.of(events)
    for text in FILTERS:
        pattern = parse(text)
        expected = [event for event in events if pattern.matches(event.attributes)]
        assert whole(matching(run, pattern) or []) == whole(expected), text
        assert is_covered(run.table, [pattern]) == (len(expected) == len(events))
    assert is_covered(run.table, list(map(parse, ("x IS NULL", "x IS NOT NULL"))))
    assert not is_covered(run.table, [])


def test_only_what_is_mentioned_is_decoded() -> None:
    table = EventTable.of([{"x": n, "y": n % 2, "z": "same"} for n in range(10)], [b""] * 10)
    broken = msgspec.structs.replace(table, columns={**table.columns, "x": b"\xc1"})
    assert matching(EventRun("p", 1, broken), parse("z = 'same'")) is not None
    assert is_covered(broken, [parse("y < 2 AND z LIKE 's%'")])
    assert [len(places) for places in broken.project({"y"}).places or ()] == [5, 5]
    with pytest.raises(msgspec.DecodeError):
        is_covered(broken, [parse("x < 2")])


def test_shared_attributes_are_stored_once() -> None:
    table = EventTable.of([{"note": "y" * 1_000, "n": 1.0}] * 100, [b"x"] * 100)
    assert not table.columns
    assert table.size < 2_000
    table = EventTable.of([{"n": 0.0}, {"n": -0.0}], [b"", b""])
    assert [str(row["n"]) for row in table.rows()] == ["0.0", "-0.0"]


def test_events_do_not_share_their_attributes() -> None:
    pairs: list[list[Attributes]] = [[{"x": 1}, {"x": 1}], [{"x": 1}, {"x": 2}]]
    for rows in pairs:
        one, other = EventRun("p", 1, EventTable.of(rows, [b"", b""]))
        one.attributes["x"] = 7
        assert other.attributes["x"] != 7


def column(*values: Any) -> bytes:
    return msgspec.msgpack.encode(values)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (EventTable(2, {}, {"x": column(1)}, column(b"", b"")), "run of 2 events has 1 value"),
        (EventTable(2, {}, {}, column(b"")), "run of 2 events has 1 value"),
        (EventTable(2, {}, {}, b""), "run of 2 events has 0 values"),
        (EventTable(1, {}, {"x": column({})}, column(b"")), "malformed"),
        (EventTable(1, {}, {"x": column([1])}, column(b"")), "malformed"),
        (EventTable(1, {}, {"x": column(b"")}, column(b"")), "malformed"),
        (EventTable(1, {}, {"x": column(INTEGER_MAX + 1)}, column(b"")), "Expected `int` <= 9223372036854775807"),
        (EventTable(1, {}, {"x": b"\x91\xa2\xff\xff"}, column(b"")), "malformed"),
        (EventTable(1, {}, {"x": column(1) + b"\x00"}, column(b"")), "malformed"),
        (EventTable(1, {}, {}, column("text")), "malformed"),
        (EventTable(1, {"x": 1}, {"x": column(2)}, column(b"")), "both shared and in a column"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(table: EventTable, complaint: str) -> None:
    with pytest.raises(TableError, match=complaint):
        table.check()


@pytest.mark.parametrize(
    "encoded",
    [
        ["p", 1, [0, {}, {}, b"\x90"], 0, []],
        ["p", 1, [65_537, {}, {}, b"\x90"], 0, []],
        ["p", 1, [2, {}, {}, column(b"", b"")], 0, [1]],
        ["p", 1, [2, {}, {}, column(b"", b"")], 0, [2, 3]],
        ["p", 1, [2, {}, {}, column(b"", b"")], 0, [1, 1]],
        ["p", "1", [1, {}, {}, column(b"")], 0, []],
        ["p", 1, [1, {"x": None}, {}, column(b"")], 0, []],
        ["p", 1, [1, {}, {"x": 1}, column(b"")], 0, []],
        ["p", 1, [1, {}, {}, column(b"")], None, []],
        ["p", 1],
    ],
)
def test_invalid_runs_cannot_be_decoded(encoded: list[Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(encoded), type=EventRun)
