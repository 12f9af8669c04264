"""How long a peer may be silent, in virtual time: a slow peer gets more time, a dead one does not."""

import random

import pytest

from gapless.runtime.silence import ACKNOWLEDGED, CLIENT, HALF_LIFE_US, MOST, Silence

SECOND = 1_000_000
TICK = SECOND // 10


def _limit(
    peer: Silence, now: int, *, is_connected: bool = True, is_acknowledged: bool = False, is_client: bool = False
) -> float:
    limit = peer.limit(now, SECOND, is_connected=is_connected, is_acknowledged=is_acknowledged, is_client=is_client)
    return limit / SECOND


def test_a_peer_that_always_answered_in_time_gets_the_usual_limit() -> None:
    peer = Silence(0)
    for now in range(TICK, 10 * SECOND, TICK):
        peer.note(now, 0)
    assert _limit(peer, 10 * SECOND) == 1


def test_a_peer_that_gets_slower_raises_its_limit_before_it_exceeds_it() -> None:
    """The peer's silences grow by half each time, from 0.2 s to 2.3 s, and none of them is a suspicion."""
    peer, now, pause = Silence(0), 0, 0.2 * SECOND
    while pause < 2.4 * SECOND:
        assert pause / SECOND <= _limit(peer, now)
        now += int(pause)
        peer.note(now, 0)
        pause *= 1.5


def test_slowness_decays_by_half_in_two_minutes() -> None:
    peer = Silence(0)
    peer.note(3 * SECOND, 0)
    assert _limit(peer, 3 * SECOND) == 6
    for now in range(3 * SECOND, 3 * SECOND + HALF_LIFE_US, TICK):
        peer.note(now, 0)
    assert _limit(peer, 3 * SECOND + HALF_LIFE_US) == pytest.approx(3, rel=0.01)


def test_no_peer_gets_more_than_the_most() -> None:
    peer = Silence(0)
    peer.note(100 * SECOND, 0)
    assert _limit(peer, 100 * SECOND, is_acknowledged=True, is_client=True) == MOST


def test_a_peer_without_a_connection_gets_the_usual_limit_however_slow_it_was() -> None:
    peer = Silence(0)
    peer.note(5 * SECOND, 0)
    assert _limit(peer, 5 * SECOND, is_connected=False, is_client=True) == 1


def test_a_kernel_that_acknowledges_extends_the_deadline_up_to_a_limit() -> None:
    peer = Silence(0)
    assert _limit(peer, 0, is_acknowledged=True) == ACKNOWLEDGED


@pytest.mark.parametrize("is_acknowledged", [True, False])
def test_a_client_is_never_suspected_faster_than_a_broker(is_acknowledged: bool) -> None:
    dice = random.Random(7)
    for _ in range(200):
        broker, client, now = Silence(0), Silence(0), 0
        for _ in range(dice.randrange(10)):
            now += dice.randrange(3 * SECOND)
            broker.note(now, 0)
            client.note(now, 0)
        of_broker = _limit(broker, now, is_acknowledged=is_acknowledged)
        of_client = _limit(client, now, is_acknowledged=is_acknowledged, is_client=True)
        assert of_client == pytest.approx(min(MOST, CLIENT * of_broker), rel=0.001)


def test_time_by_which_we_were_late_ourselves_is_no_silence() -> None:
    """Each tick of 0.1 s of the event loop is 0.9 s late, and it reads the peer's ping only in the fourth tick."""
    peer, late = Silence(0), 0
    for tick in range(1, 5):
        late += 9 * TICK
        assert peer.so_far(tick * 10 * TICK, late) == tick * TICK
    peer.note(4 * SECOND, late)
    assert _limit(peer, 4 * SECOND) == 1, "and it says nothing about the peer"


def test_a_new_connection_begins_anew_and_what_was_slow_before_is_remembered() -> None:
    peer = Silence(0)
    peer.note(2 * SECOND, 0)
    peer.begin(9 * SECOND, 0)
    assert peer.so_far(10 * SECOND, 0) == SECOND
    assert _limit(peer, 10 * SECOND) == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("load", [2, 4, 8])
def test_peers_on_an_overloaded_machine_are_hardly_ever_suspected(load: int) -> None:
    """Each peer pings five times a second, and the machine delays each ping by a random time that grows with its load.

    A fixed limit of a second would cause a hundred times as many suspicions at least.
    """
    dice = random.Random(load)
    adaptive = fixed = 0
    for _ in range(50):
        peer, now = Silence(0), 0
        for _ in range(300):
            limit = _limit(peer, now, is_acknowledged=True, is_client=True)
            silence = int(SECOND * (0.2 + dice.expovariate(1 / (0.1 * load))))
            fixed += silence > SECOND
            adaptive += silence / SECOND > limit
            now += silence
            peer.note(now, 0)
    assert fixed > 100
    assert 100 * adaptive <= fixed
