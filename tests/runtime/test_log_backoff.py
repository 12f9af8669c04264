"""Repeated messages are logged at growing intervals."""

from itertools import pairwise

from gapless.runtime.log_backoff import KEYS_MAX, LONGEST_S, LogBackoff


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_pauses_grow_and_what_happened_meanwhile_is_counted() -> None:
    clock = Clock()
    log_backoff = LogBackoff(clock)
    said = {}
    for tenth in range(10 * 64):
        clock.now = tenth / 10
        times = log_backoff.due("refused")
        if times:
            said[clock.now] = times
    assert said == {0.0: 1, 1.0: 10, 3.0: 20, 7.0: 40, 15.0: 80, 31.0: 160, 63.0: 320}


def test_the_pauses_have_an_end() -> None:
    clock = Clock()
    log_backoff = LogBackoff(clock)
    logged_at = []
    for minute in range(6 * 60):
        clock.now = 60.0 * minute
        for second in range(60):
            clock.now = 60.0 * minute + second
            if log_backoff.due("refused"):
                logged_at.append(clock.now)
    assert max(after - before for before, after in pairwise(logged_at)) == LONGEST_S


def test_rare_events_are_logged_less_and_less_often_too() -> None:
    clock = Clock()
    log_backoff = LogBackoff(clock)
    said = []
    for seconds in range(0, 100, 5):
        clock.now = float(seconds)
        if log_backoff.due("refused"):
            said.append(seconds)
    assert said == [0, 5, 10, 15, 25, 45, 80]


def test_a_resumed_warning_is_new_again() -> None:
    clock = Clock()
    log_backoff = LogBackoff(clock)
    assert log_backoff.due("refused") == 1
    assert log_backoff.due("refused") == 0
    clock.now = 100.0
    assert log_backoff.due("refused") == 1
    assert log_backoff.forget("refused")
    assert not log_backoff.forget("refused")
    assert log_backoff.due("refused") == 1


def test_things_do_not_mix_and_their_number_is_bounded() -> None:
    log_backoff = LogBackoff(Clock())
    assert [log_backoff.due(number) for number in range(2 * KEYS_MAX)] == [1] * 2 * KEYS_MAX
    assert log_backoff.due(2 * KEYS_MAX - 1) == 0
    assert len(log_backoff._states) == KEYS_MAX
