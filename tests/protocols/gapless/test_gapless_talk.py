"""The talk of `make chaos`, simulated, and the smallest scenarios of what it and the search found there."""

from pathlib import Path

import pytest
from trials.talk import attempt

from gapless.checkers import check
from gapless.simulator import load_scenario, run_scenario

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.toml"))
SEEDS = [0, 2, 410]
"""The last: a client goes back to a broker that was excluded meanwhile, and its session is inherited a second time."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    trace = run_scenario(load_scenario(path)).trace
    assert trace is not None
    verdict = check(trace)
    assert verdict.status == "valid", verdict.reason
    assert verdict.deliveries


@pytest.mark.parametrize("seed", SEEDS)
def test_talk(seed: int) -> None:
    _, outcome = attempt(seed)
    assert outcome.status == "valid", f"seed {seed}: {', '.join(outcome.symptoms)} {outcome.summary}"
