"""The talk of `make chaos`, simulated, and the smallest scenarios of what it and the search found there."""

from pathlib import Path

import pytest
from trials.talk import attempt

from gapless.simulator import load_scenario, try_scenario

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.toml"))
SEEDS = [0, 2, 410]
"""The last: a client goes back to a broker that was excluded meanwhile, and its session is inherited a second time."""


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_what_was_found(path: Path) -> None:
    outcome = try_scenario(load_scenario(path))
    assert outcome.status == "valid", f"{', '.join(outcome.symptoms)} {outcome.summary}"
    assert outcome.verdict is not None
    assert outcome.verdict.deliveries


@pytest.mark.parametrize("seed", SEEDS)
def test_talk(seed: int) -> None:
    _, outcome = attempt(seed)
    assert outcome.status == "valid", f"seed {seed}: {', '.join(outcome.symptoms)} {outcome.summary}"
