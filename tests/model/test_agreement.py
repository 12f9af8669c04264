"""The executable specification and the code deliver the same events; `python -m trials.agreement` runs more."""

import pytest
from trials.agreement import by_code, by_model, compare, draw


@pytest.mark.parametrize("seed", range(5))
def test_both_deliver_the_same(seed: int) -> None:
    assert compare(seed) == ""


def test_compared_runs_have_deliveries_and_crashes() -> None:
    drawn = [draw(seed) for seed in range(5)]
    assert any(kind == "crash" for each in drawn for kind, *_ in each.operations)
    assert sum(len(events) for events in by_model(drawn[0], 0).values()) > 0


def test_another_scenario_differs() -> None:
    assert by_model(draw(0), 0) != by_code(draw(1), 1)
