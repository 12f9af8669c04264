"""Random runs with failures: no violation, and one soon without each repair.

Longer searches: `gapless sim search --protocol delta --faults crash --f 1 --runs 5000`, and with f = 2 and 3.
"""

import pytest

from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, generate, search, try_scenario
from gapless_papers.protocols.delta.options import REPAIRS

ONCE_FAILED = {
    "crash": (2, 4, 20, 22, 24, 25, 41, 43, 97, 238, 331, 921, 1279, 1669, 1880),
    "cut": (2, 7, 12, 94),
    "suspicion": (22, 28, 46),
}
"""By kind of fault, seeds that violated the guarantee during development."""

FIRST_SEEDS = {"duplicates": 0, "missed": 66, "synchronise": 4}
"""By repair, a seed shortly before the first one that violates the guarantee without it."""


@pytest.mark.parametrize(
    ("faults", "seed"), [(faults, seed) for faults, seeds in ONCE_FAILED.items() for seed in seeds]
)
def test_scenarios_that_once_failed(faults: str, seed: int) -> None:
    outcome = try_scenario(generate(seed, "delta", faults))
    assert not outcome.failed, (outcome.symptoms, outcome.summary)


@pytest.mark.parametrize("f", [1, 2, 3])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_with_crashes(f: int, times: int) -> None:
    limits = GeneratorLimits(f=f)
    report = search("delta", 3 * times, first_seed=10_000 * f, faults="crash", processes=1, limits=limits)
    assert report.finding is None, report.finding.repeat
    assert report.unknown <= 2


@pytest.mark.parametrize("faults", ["none", "cut", "suspicion", "all"])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation_otherwise(faults: str, times: int) -> None:
    report = search("delta", 3 * times, faults=faults, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown <= 2


def test_every_repair_is_tried() -> None:
    assert set(FIRST_SEEDS) == REPAIRS


@pytest.mark.parametrize("repair", FIRST_SEEDS)
def test_without_a_repair_a_violation_is_found(repair: str) -> None:
    options = {"switched_off": [repair]}
    report = search("delta", 10, FIRST_SEEDS[repair], "crash", options, processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom == ("duplicate" if repair == "duplicates" else "gap")


def test_it_is_registered() -> None:
    spec = find_protocol("delta")
    assert spec.guarantee == "gfd"
    assert spec.copes_with == {"crash", "restart", "cut", "suspicion"}
