"""A position is a place in the stream: ordered, and the same as text everywhere."""

import pickle
import re
from datetime import UTC, datetime
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.positions import TIMESTAMP_MAX, Position

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TIMES = st.integers(0, TIMESTAMP_MAX)
EVENTS = st.builds(Position.after, TIMES, NAMES, st.integers(1, 2**53))
POSITIONS = st.one_of(st.builds(Position.at, TIMES), EVENTS)


@given(POSITIONS)
def test_its_text_represents_it_and_needs_no_quotes(position: Position) -> None:
    text = str(position)
    assert Position(text) == position
    assert Position(f" {text}\n") == position, "as it is pasted"
    assert (str(Position(text)), repr(position)) == (text, f"Position('{text}')")
    assert quote(text, safe="") == text
    assert re.fullmatch(r"[A-Za-z0-9._~-]+", text)
    assert pickle.loads(pickle.dumps(position)) == position


@given(st.text(max_size=30) | st.from_regex(r"\Ap[0-9]{1,3}(-[0-9]{1,2})?(-[a-z~0-9A-F]{1,6})?\Z"))
def test_a_text_is_one_position_or_none(text: str) -> None:
    try:
        position = Position(text)
    except ValueError:
        return
    assert str(position) == text.strip()


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["a", "ab", "a-b", "b", "~", "é"]), st.integers(1, 3))))
def test_positions_are_in_the_order_of_timestamp_publisher_and_number(places: list[tuple[int, str, int]]) -> None:
    found = sorted(Position.after(*place) for place in places)
    assert [(each.timestamp, each.publisher, each.number) for each in found] == sorted(places)
    for one, next_one in pairwise(found):
        assert one <= next_one
        assert (one == next_one) == (hash(one) == hash(next_one) and not one < next_one)
    for each in found:
        assert Position.at(each.timestamp - 1) < each < Position.at(each.timestamp)
        assert Position.at(each.floor) < each


def test_each_event_of_a_run_has_its_own() -> None:
    run = EventRun("ann", 7, EventTable.of([{"n": 1}, {"n": 2}], [b"", b""]), 1_793_280_000_000_000)
    assert [str(event.position) for event in run] == ["p1793280000000000-7-ann", "p1793280000000000-8-ann"]
    position = run.event(1).position
    assert (position.timestamp, position.publisher, position.number) == (1_793_280_000_000_000, "ann", 8)
    assert position.time == datetime(2026, 10, 29, 13, 20, tzinfo=UTC)
    assert not position.is_network_wide


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1793280000000000", "a position begins with the letter p, such as 'p1793280000000000'"),
        ("", "copy the whole text of one"),
        ("p1793280000000000-7", "copy the whole text of one"),
        ("p01", "copy the whole text of one"),
        ("p9999999999999999", f"its numbers go up to {TIMESTAMP_MAX}"),
        ("p1-1-a~zz", "copy the whole text of one"),
        ("p1-1-~41", "copy the whole text of one"),
        ("p" * 1_000, "pppp…"),
        (17, "copy the whole text of one"),
        (None, "copy the whole text of one"),
    ],
)
def test_invalid_positions_are_refused_with_a_remedy(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        Position(text)


def test_positions_are_no_numbers_and_no_texts() -> None:
    with pytest.raises(TypeError):
        assert Position.at(1) < 2  # type: ignore[operator]
    assert Position.at(1) != "p1"


def test_an_event_without_one_raises_an_error() -> None:
    with pytest.raises(ValueError, match="event ann:1 has no position: the protocol of its network keeps no history"):
        _ = Event("ann", 1, {}).position
