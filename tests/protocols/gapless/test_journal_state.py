"""A journal without its oldest entries still counts, reports last numbers, and can be completed again."""

import pytest

from gapless.event_runs import EventRun, EventTable
from gapless.events import Event
from gapless.protocols.gapless import journal_state
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Entry
from gapless.protocols.gapless.journal_state import Journal

B0 = Incarnation("b0", 0)


def journal(count: int, publisher: str = "p") -> Journal:
    made = Journal()
    for seq in range(1, count + 1):
        made.append(Entry(EventRun.of([Event(publisher, seq, {"x": seq}, b"." * 100, 10 * seq)])))
    return made


def numbers(found: Journal) -> list[int]:
    return [entry.last for entry in found.entries]


def test_dropped_events_keep_counting() -> None:
    kept = journal(10)
    size = kept.size
    kept.drop(4)
    assert (len(kept), kept.start, kept.dropped, numbers(kept)) == (10, 4, 40, [5, 6, 7, 8, 9, 10])
    assert kept.size == size * 6 // 10
    assert kept.entry(4).last == 5
    assert [kept.place_after(timestamp) for timestamp in (0, 45, 50, 99, 100)] == [4, 4, 5, 9, 10]
    kept.drop(6)
    assert (len(kept), kept.last_timestamp, kept.size, kept.last_number("p")) == (10, 100, 0, 10)


def test_a_copy_of_the_end_is_enough_to_hold_on() -> None:
    owner, holder = journal(10), journal(3)
    owner.drop(5)
    holder.extend_from(owner.copy(B0, owner.place_after(70)))
    assert (len(holder), holder.start, holder.dropped, numbers(holder)) == (10, 7, 70, [8, 9, 10])
    assert holder.lacks_earlier
    assert holder.last_number("p") == 10
    owner.append(Entry(EventRun.of([Event("q", 1, {}, stamp=110)])))
    holder.extend_from(owner.last_entry(B0))
    assert (len(holder), holder.last_number("q"), holder.last_number("r")) == (11, 1, 0)


def test_a_copy_that_is_known_changes_nothing() -> None:
    owner, holder = journal(10), journal(8)
    holder.extend_from(owner.copy(B0, 5, 7))
    assert numbers(holder) == [1, 2, 3, 4, 5, 6, 7, 8]
    holder.extend_from(owner.copy(B0, 5))
    assert (numbers(holder), holder.lacks_earlier) == (list(range(1, 11)), False)


def test_earlier_pages_complete_it() -> None:
    owner, holder = journal(10), Journal()
    holder.extend_from(owner.copy(B0, 8))
    assert holder.prepend(owner.copy(B0, 5, 8, is_page=True))
    assert (holder.start, holder.dropped, numbers(holder)) == (5, 50, [6, 7, 8, 9, 10])
    assert not holder.prepend(owner.copy(B0, 2, 4, is_page=True)), "there would be a hole"
    assert holder.prepend(owner.copy(B0, 0, 5, is_page=True))
    assert (holder.start, holder.dropped, holder.size) == (0, 0, owner.size)


def test_unconfirmed_events_are_removed_with_their_numbers() -> None:
    held = journal(5)
    held.append(Entry(EventRun("q", 7, EventTable.of([{}] * 2, [b"", b""]), 60)))
    held.drop(2)
    held.cut_to(4)
    assert (len(held), numbers(held), held.last_number("p"), held.last_number("q")) == (4, [3, 4], 4, 6)
    held.cut_to(9)
    assert len(held) == 4


def test_of_too_many_publishers_the_oldest_is_not_known_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_state, "NUMBERS_MAX", 2)
    held = Journal()
    for stamp, publisher in enumerate(("a", "b", "a", "c"), 1):
        held.append(Entry(EventRun.of([Event(publisher, stamp, {}, stamp=stamp)])))
    assert [held.last_number(name) for name in "abc"] == [3, None, 4]
    assert held.last_number("z") is None, "it may have been forgotten, too"
    copied = Journal()
    held.drop(4)
    copied.extend_from(held.copy(B0))
    assert [copied.last_number(name) for name in "abc"] == [3, None, 4]
