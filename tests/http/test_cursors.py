"""Cursors: their texts, and the events that they cover."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import CallError
from gapless.events import Event
from gapless.http.cursors import Cursor
from gapless.positions import Position


def event(publisher: str, number: int, stamp: int) -> Event:
    return Event(publisher, number, {}, b"", stamp)


def test_a_cursor_covers_exactly_what_was_sent() -> None:
    cursor = Cursor(Position.at(100))
    cursor.send(event("ann:x-1", 7, 130))
    cursor.send(event("bob", 2, 120))
    same = Cursor.parse(str(cursor))
    for each in (cursor, same):
        assert each.covers(event("zoe", 1, 100))
        assert each.covers(event("ann:x-1", 6, 110))
        assert each.covers(event("ann:x-1", 7, 130))
        assert not each.covers(event("ann:x-1", 8, 131))
        assert not each.covers(event("zoe", 2, 110))
    same.advance(Position.at(125))
    assert str(same) == "p125!ann%3Ax-1:7:5"
    same.advance(Position.after(130, "ann:x-1", 7))
    assert str(same) == "p130-7-ann~3Ax-1"


@pytest.mark.parametrize("text", ["", "x", "p1!", "p1!a", "p1!a:b:c", "p1!a:1"])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    if text == "p1!":
        assert str(Cursor.parse(text)) == "p1"
        return
    with pytest.raises(CallError):
        Cursor.parse(text)


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(
    st.integers(1, 1 << 50),
    st.dictionaries(NAMES, st.tuples(st.integers(1, 1 << 40), st.integers(0, 1 << 40)), max_size=6),
)
def test_texts_survive_the_way_there_and_back(stamp: int, sent: dict[str, tuple[int, int]]) -> None:
    cursor = Cursor(Position.at(stamp), {name: (number, stamp + after) for name, (number, after) in sent.items()})
    assert str(Cursor.parse(str(cursor))) == str(cursor)
    assert str(cursor).isascii()
