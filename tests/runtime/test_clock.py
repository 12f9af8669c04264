"""The clock of a node: the time of day at its start, and then the elapsed time."""

from gapless.runtime.clock import SteadyClock

S = 1_000_000_000
HOUR_S = 3_600


class Machine:
    def __init__(self) -> None:
        self.uptime_ns = 500 * S
        self.ahead_ns = 1_790_000_000 * S
        self.clock = SteadyClock(lambda: self.uptime_ns + self.ahead_ns, lambda: self.uptime_ns)
        self.begun_us = self.clock()

    def wait(self, seconds: float) -> float:
        before = self.clock()
        for _ in range(int(seconds)):
            self.uptime_ns += S
            now = self.clock()
            assert now >= before, "it runs backwards"
        return (self.clock() - before) / 1e6


def test_it_begins_with_the_time_of_day() -> None:
    assert Machine().begun_us == 1_790_000_500 * 1_000_000


def test_a_clock_that_is_set_moves_it_by_no_more_than_a_quartz_drifts() -> None:
    for jump_s in (HOUR_S, -HOUR_S, 24 * HOUR_S, -24 * HOUR_S, 10 * 365 * 24 * HOUR_S):
        machine = Machine()
        machine.ahead_ns += jump_s * S
        assert abs(machine.clock() - machine.begun_us) == 0
        passed_s = machine.wait(100)
        assert abs(passed_s - 100) <= 0.0501
        assert abs(machine.clock.jump_s - jump_s) < 0.1


def test_it_follows_a_clock_that_is_right_and_drifts() -> None:
    machine = Machine()
    for _ in range(2 * HOUR_S):
        machine.ahead_ns += 100_000  # 100 ppm
        machine.wait(1)
    assert abs(machine.clock.jump_s) < 0.001


def test_a_new_node_takes_the_time_of_day_anew() -> None:
    machine = Machine()
    machine.ahead_ns -= HOUR_S * S
    machine.clock.set()
    assert machine.clock() == machine.begun_us - HOUR_S * 1_000_000
    assert machine.clock.jump_s == 0
