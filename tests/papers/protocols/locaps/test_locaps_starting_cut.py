"""The starting cut: markers, partial markers of one set, and the events buffered between them."""

from gapless.events import Event
from gapless_papers.protocols.locaps.starting_cut import StartingCut


def event(seq: int, publisher: str = "p") -> Event:
    return Event(publisher, seq, {})


def test_exactly_what_follows_a_start_is_admitted() -> None:
    cut = StartingCut(1)
    assert not cut.admits(event(6))
    assert cut.take_marker({"p": 7}) == {"p": 7}
    assert not cut.admits(event(6))
    assert cut.admits(event(7))
    assert not cut.admits(event(7, "q"))


def test_a_start_is_fixed_once() -> None:
    cut = StartingCut(1)
    cut.take_marker({"p": 7})
    assert cut.take_marker({"p": 9, "q": 2}) == {"q": 2}
    assert cut.take_partial("v", "v", {"p": 3}) == {}
    assert cut.starts == {"p": 7, "q": 2}


def test_the_last_partial_marker_of_a_set_fixes_the_largest_number() -> None:
    cut = StartingCut(3)
    assert cut.take_partial("v", "v", {"p": 4, "q": 1}) == {}
    assert cut.take_partial("v", "w", {"p": 6, "q": 1}) == {}
    assert cut.take_partial("v", "x", {"p": 5}) == {"p": 6}
    assert cut.starts == {"p": 6}


def test_sets_of_different_pivots_do_not_mix_and_a_broker_counts_once() -> None:
    cut = StartingCut(2)
    assert cut.take_partial("v", "v", {"p": 4}) == {}
    assert cut.take_partial("w", "w", {"p": 4}) == {}
    assert cut.take_partial("v", "v", {"p": 5}) == {}
    assert cut.take_partial("v", "w", {"p": 4}) == {"p": 5}


def test_the_publishers_own_marker_settles_an_incomplete_set() -> None:
    cut = StartingCut(3)
    cut.take_partial("v", "v", {"p": 4})
    assert cut.take_marker({"p": 5}) == {"p": 5}
    assert cut.take_partial("v", "w", {"p": 6}) == {}


def test_events_are_kept_from_the_first_partial_marker_to_the_last_and_released_from_the_start_on() -> None:
    cut = StartingCut(2)
    cut.admits(event(3))
    assert cut.buffered == 0
    cut.take_partial("v", "v", {"p": 4})
    for seq in (4, 5, 6):
        assert not cut.admits(event(seq))
    assert cut.buffered == 3
    assert cut.take_partial("v", "w", {"p": 5}) == {"p": 5}
    assert [kept.seq for kept in cut.release(["p"])] == [5, 6]
    assert cut.buffered == 0
    assert cut.admits(event(7))


def test_incomplete_publications_are_not_completed_after_the_publisher_returns() -> None:
    cut = StartingCut(2)
    cut.take_partial("v", "v", {"p": 4})
    cut.admits(event(4))
    cut.forget("p")
    assert cut.buffered == 0
    assert cut.take_partial("v", "w", {"p": 9}) == {}
    assert cut.take_partial("v", "v", {"p": 9}) == {"p": 9}
    cut.forget("p")
    assert cut.starts == {"p": 9}
