"""The states of a session."""

import pytest

from gapless.protocols.gapless.clients.session_state import Hearing, Presence, Turn, next_hearing, next_presence


def heard(*turns: Turn) -> Hearing:
    hearing = Hearing.OPEN
    for turn in turns:
        hearing = next_hearing(hearing, turn)
    return hearing


@pytest.mark.parametrize("turn", [Turn.LOST_SIGHT, Turn.CAUGHT_SIGHT])
def test_an_orphan_stays_one_until_it_is_claimed(turn: Turn) -> None:
    assert next_presence(Presence.ORPHAN, turn) is Presence.ORPHAN
    assert next_presence(Presence.ORPHAN, Turn.CLAIMED) is Presence.HERE


def test_a_client_goes_out_of_sight_and_comes_back() -> None:
    assert next_presence(Presence.HERE, Turn.LOST_SIGHT) is Presence.AWAY
    assert next_presence(Presence.AWAY, Turn.CAUGHT_SIGHT) is Presence.HERE
    assert next_presence(Presence.AWAY, Turn.CLAIMED) is Presence.HERE


def test_who_was_heard_all_the_time_goes_on_as_before() -> None:
    assert heard(Turn.STANDS_STILL, Turn.GOES_ON) is Hearing.OPEN


def test_who_was_ignored_is_not_heard_until_it_attached_again() -> None:
    assert heard(Turn.STANDS_STILL, Turn.IGNORED, Turn.GOES_ON, Turn.IGNORED) is Hearing.DEAF
    assert heard(Turn.STANDS_STILL, Turn.IGNORED, Turn.GOES_ON, Turn.CLAIMED) is Hearing.OPEN


def test_who_is_deaf_stays_so_when_it_stands_still_again() -> None:
    turns = (Turn.STANDS_STILL, Turn.IGNORED, Turn.GOES_ON, Turn.STANDS_STILL, Turn.GOES_ON)
    assert heard(*turns) is Hearing.DEAF


@pytest.mark.parametrize("hearing", [Hearing.STILL, Hearing.STILL_AND_DEAF])
def test_nobody_claims_a_session_that_stands_still(hearing: Hearing) -> None:
    with pytest.raises(AssertionError, match="CLAIMED of a session that is STILL"):
        next_hearing(hearing, Turn.CLAIMED)


def test_nobody_who_is_heard_is_ignored() -> None:
    with pytest.raises(AssertionError, match="IGNORED of a session that is OPEN"):
        next_hearing(Hearing.OPEN, Turn.IGNORED)
