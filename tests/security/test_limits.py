"""Rates: a burst of one second is free, further requests wait, and no usage is forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.security.limits import Bucket, Limits


def test_amounts_above_the_limit_per_second_wait() -> None:
    bucket = Bucket(10, 0.0)
    assert bucket.take(10, 0.0) == 0
    assert bucket.take(5, 0.0) == pytest.approx(0.5)
    assert bucket.take(0, 0.25) == pytest.approx(0.25)
    assert bucket.take(0, 0.5) == 0
    assert bucket.take(10, 100.0) == 0  # the unused amount of one second at most is kept
    assert bucket.take(1, 100.0) == pytest.approx(0.1)


def test_calls_that_must_not_wait_are_refused_until_there_is_a_broker() -> None:
    bucket = Bucket(0.5, 0.0)
    assert bucket.try_take(0.0)
    assert not bucket.try_take(1.0)
    assert bucket.try_take(2.0)


@given(
    st.floats(0.1, 1000),
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 500)), min_size=1, max_size=50),
)
def test_clients_that_wait_as_requested_stay_within_a_second_and_a_batch_of_their_rate(
    rate: float, batches: list[tuple[float, int]]
) -> None:
    bucket, now, total = Bucket(rate, 0.0), 0.0, 0
    for pause, count in batches:
        now += pause
        total += count
        now += bucket.take(count, now)
        assert total <= rate * now + max(1.0, rate) + 1e-6 * (total + 1)


def test_a_clock_set_back_grants_nothing() -> None:
    bucket = Bucket(10, 100.0)
    assert bucket.take(10, 100.0) == 0
    assert bucket.take(1, 50.0) == pytest.approx(0.1)


def test_a_limit_is_a_number_to_work_with() -> None:
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="connections_per_s is"):
            Limits(connections_per_s=bad)
