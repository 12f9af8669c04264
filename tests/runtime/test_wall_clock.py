"""The clock of a node: the time of day, but never backwards."""

from gapless.runtime.clock import WallClock


def test_it_stands_still_where_the_machine_is_set_back() -> None:
    times = iter([5_000_000, 6_000_000, 2_000_000, 5_999_000, 7_001_000])
    clock = WallClock(lambda: next(times))
    assert [clock() for _ in range(5)] == [5_000, 6_000, 6_000, 6_000, 7_001]
