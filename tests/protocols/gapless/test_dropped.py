"""The numbers that journals keep of dropped entries."""

import pytest

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocols.gapless import dropped
from gapless.protocols.gapless.dropped import after_dropping, dropped_between
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.journal_messages import Dropped, Entry
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.tombstones import tombstone

ONE = Incarnation("b0", 0)


def entry(publisher: str, number: int, timestamp: int) -> Entry:
    return Entry(EventRun.of([Event(publisher, number, {"n": number}, stamp=timestamp)]))


def journal(count: int) -> Journal:
    made = Journal()
    for number in range(1, count + 1):
        made.append(entry("ann", number, 10 * number))
    return made


def test_the_numbers_of_dropped_events_are_reported() -> None:
    made = journal(9)
    made.drop(3)
    made.drop(2)
    assert dropped_between(made.gone, 0, 50) == {"ann": [(1, 5)]}
    assert dropped_between(made.gone, 30, 50) == {"ann": [(4, 5)]}
    assert dropped_between(made.gone, 50, 50) == {}


def test_numbers_behind_the_end_of_a_read_are_not_reported() -> None:
    """Another holder may still have these entries when the read continues."""
    made = journal(9)
    made.drop(3)
    made.drop(2)
    assert dropped_between(made.gone, 0, 39) == {"ann": [(1, 3)]}
    assert dropped_between(made.gone, 0, 40) == {"ann": [(1, 5)]}, "a part is reported as a whole"


def test_after_a_merge_too_many_numbers_are_reported_rather_than_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped, "PARTS_MAX", 2)
    made = journal(9)
    for _ in range(6):
        made.drop(1)
    assert len(made.gone.parts) <= 2
    reported = dropped_between(made.gone, 40, 60)
    assert reported is not None
    [(first, last)] = reported["ann"]
    assert (first <= 5, last) == (True, 6)


def test_an_observer_that_started_late_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dropped_between(Dropped(since=10, until=20, parts=((11, 20, {"ann": (2, 2)}),)), 5, 20) is None
    assert dropped_between(Dropped(since=0, until=20), 0, 30) is None
    late = after_dropping(Dropped(0, 20, ((1, 20, {"ann": (1, 2)}),)), 40, [entry("ann", 5, 50)])
    assert dropped_between(late, 40, 50) == {"ann": [(5, 5)]}
    assert dropped_between(late, 0, 50) is None
    monkeypatch.setattr(dropped, "PUBLISHERS_MAX", 1)
    few = after_dropping(after_dropping(Dropped(), 0, [entry("ann", 1, 10)]), 10, [entry("ben", 1, 20)])
    assert dropped_between(few, 0, 20) is None
    assert dropped_between(few, 10, 20) == {"ben": [(1, 1)]}


def test_events_reported_by_a_tombstone_count_as_their_publishers() -> None:
    events = tombstone("ann", 4, 7, 0, "TRUE").stamped(30)
    known = after_dropping(Dropped(), 0, [entry("ann", 3, 20), Entry(events)])
    assert dropped_between(known, 0, 30) == {"ann": [(3, 7)]}


def test_a_copy_learns_it_from_its_first_holder_and_again_from_the_page_that_begins_there() -> None:
    first = journal(9)
    first.drop(3)
    copy = Journal()
    copy.extend_from(first.copy(ONE, 6))
    assert (copy.start, dropped_between(copy.gone, 0, copy.dropped)) == (6, None)
    first.drop(1)
    assert copy.prepend(first.copy(ONE, 0, 6, is_page=True))
    assert (copy.start, copy.dropped) == (4, 40)
    assert dropped_between(copy.gone, 0, 40) == {"ann": [(1, 4)]}
