"""How late an event loop runs, of late."""

from gapless.runtime.lateness import LOOKS, Lateness


def test_a_timer_that_comes_in_time_is_not_late() -> None:
    lateness = Lateness()
    for look in range(10):
        lateness.came(0.5 * look, 0.5)
    assert lateness.most_ms == 0.0


def test_the_latest_of_the_last_looks_counts_and_is_forgotten() -> None:
    lateness = Lateness()
    lateness.came(0.0, 0.5)
    lateness.came(1.7, 0.5)
    assert round(lateness.most_ms) == 1_200
    for look in range(1, LOOKS + 1):
        lateness.came(1.7 + 0.5 * look, 0.5)
    assert round(lateness.most_ms) == 0
