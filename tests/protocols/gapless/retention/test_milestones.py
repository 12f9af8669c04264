"""When everything had reached everyone."""

from hypothesis import given
from hypothesis import strategies as st

from gapless.protocols.gapless.retention.milestones import MOST, Milestones

SECOND = 1_000_000


def test_the_last_position_before_a_time() -> None:
    milestones = Milestones(MOST * SECOND)
    for second in range(1, 4):
        milestones.note(second * SECOND, second)
    assert milestones.before(2 * SECOND + 1) == 2
    assert milestones.before(2 * SECOND) == 1
    assert milestones.before(SECOND) is None


def test_what_is_too_long_ago_is_not_known() -> None:
    milestones = Milestones(MOST * SECOND)
    for second in range(1_000):
        milestones.note(second * SECOND, second)
    assert milestones.before((999 - MOST) * SECOND) is None
    assert milestones.before((999 - MOST) * SECOND + 1) == 999 - MOST


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 100)), min_size=1, max_size=500), st.integers(0))
def test_never_later_than_it_was(steps: list[tuple[int, int]], ago: int) -> None:
    milestones = Milestones(MOST * SECOND)
    now = position = 0
    noted = []
    for waited, further in steps:
        now, position = now + waited, position + further
        milestones.note(now, position)
        noted.append((now, position))
    time = now - ago
    found = milestones.before(time)
    if found is not None:
        assert found <= max(position for when, position in noted if when < time)
    elif ago < MOST * SECOND:
        assert now - noted[0][0] <= ago
