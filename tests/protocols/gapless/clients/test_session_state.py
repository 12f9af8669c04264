"""The states of a session."""

import pytest

from gapless.protocols.gapless.clients.session_state import (
    Hearing,
    Lag,
    Presence,
    Turn,
    next_hearing,
    next_lag,
    next_presence,
)
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.epochs import epoch_of


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


def lagging(*turns: Turn) -> Lag:
    lag = Lag.LIVE
    for turn in turns:
        lag = next_lag(lag, turn)
    return lag


def test_who_keeps_others_waiting_is_behind_once_the_backups_know() -> None:
    assert lagging(Turn.OVERDUE) is Lag.FALLING
    assert lagging(Turn.OVERDUE, Turn.SECURED) is Lag.BEHIND
    assert lagging(Turn.OVERDUE, Turn.SECURED, Turn.CAUGHT_UP) is Lag.LIVE


def test_who_comes_while_it_falls_has_not_fallen() -> None:
    assert lagging(Turn.OVERDUE, Turn.ASKED_ABOUT) is Lag.LIVE
    assert lagging(Turn.OVERDUE, Turn.SECURED, Turn.ASKED_ABOUT) is Lag.BEHIND


def test_who_lacks_something_is_behind_at_once() -> None:
    assert lagging(Turn.ASKED_ABOUT, Turn.LACKS) is Lag.BEHIND


@pytest.mark.parametrize("turn", [Turn.OVERDUE, Turn.LACKS])
def test_who_is_behind_stays_so_until_it_has_caught_up(turn: Turn) -> None:
    assert lagging(Turn.LACKS, turn) is Lag.BEHIND


@pytest.mark.parametrize(
    ("lag", "turn"),
    [
        (Lag.LIVE, Turn.SECURED),
        (Lag.LIVE, Turn.CAUGHT_UP),
        (Lag.FALLING, Turn.OVERDUE),
        (Lag.FALLING, Turn.LACKS),
        (Lag.FALLING, Turn.CAUGHT_UP),
        (Lag.BEHIND, Turn.SECURED),
    ],
)
def test_nobody_skips_a_stage_of_falling_behind(lag: Lag, turn: Turn) -> None:
    with pytest.raises(AssertionError, match=f"{turn.name} of a session that is {lag.name}"):
        next_lag(lag, turn)


def test_a_session_keeps_the_position_from_which_it_lies_behind() -> None:
    session = Session("c", epoch_of(0))
    assert (session.is_live, session.is_falling, session.behind) == (True, False, -1)
    session.lag(Turn.OVERDUE, 7)
    assert (session.is_live, session.is_falling, session.behind) == (False, True, 7)
    session.lag(Turn.SECURED)
    session.lag(Turn.OVERDUE, 9)
    assert (session.is_live, session.is_falling, session.behind) == (False, False, 7)
    session.lag(Turn.CAUGHT_UP)
    assert (session.is_live, session.behind) == (True, -1)


def test_nobody_lies_behind_from_nowhere_on() -> None:
    with pytest.raises(AssertionError, match="from a position on"):
        Session("c", epoch_of(0)).lag(Turn.LACKS)
