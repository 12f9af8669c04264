"""The recent delay of an event loop."""

from gapless.runtime.loop_lag import LOOKS, LoopLag


def test_a_timer_that_comes_in_time_is_not_late() -> None:
    loop_lag = LoopLag()
    for look in range(10):
        loop_lag.timer_fired(0.5 * look, 0.5)
    assert loop_lag.most_ms == 0.0


def test_the_latest_of_the_recent_checks_counts_and_expires() -> None:
    loop_lag = LoopLag()
    loop_lag.timer_fired(0.0, 0.5)
    loop_lag.timer_fired(1.7, 0.5)
    assert round(loop_lag.most_ms) == 1_200
    for look in range(1, LOOKS + 1):
        loop_lag.timer_fired(1.7 + 0.5 * look, 0.5)
    assert round(loop_lag.most_ms) == 0
