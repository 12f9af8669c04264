"""Random runs with churn: no violation with the repairs, and one soon without each of them.

Longer searches: `gapless sim search --protocol locaps --faults none --runs 5000`.
"""

from typing import Any

import msgspec
import pytest

from gapless.registry import find_protocol
from gapless.simulator import GeneratorLimits, generate, search, try_scenario

CROWDED = GeneratorLimits(
    brokers=(6, 20), publishers=(4, 8), subscribers=(4, 8), subscriptions=(20, 60), publications=(60, 150)
)


@pytest.mark.parametrize(("coverage", "runs"), [(True, 7), (False, 4)])
@pytest.mark.parametrize("times", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_no_violation(coverage: bool, runs: int, times: int) -> None:
    report = search("locaps", runs * times, options={"coverage": coverage, "paths": "one"}, processes=1)
    assert report.finding is None, report.finding.repeat
    assert report.unknown < runs * times * 0.03


@pytest.mark.parametrize("f", range(5))
@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_no_violation_with_many_subscriptions_at_any_f(f: int, times: int) -> None:
    for seed in range(10 * f, 10 * f + 2 * times):
        scenario = generate(seed, "locaps", options={"paths": "one"}, limits=CROWDED)
        scenario = msgspec.structs.replace(scenario, network=msgspec.structs.replace(scenario.network, f=f))
        outcome = try_scenario(scenario)
        assert not outcome.failed, (seed, outcome.symptoms)


@pytest.mark.parametrize(
    "options",
    [
        {"switched_off": ["late-publishers"]},
        {"switched_off": ["late-publishers"], "coverage": False},
        pytest.param({"switched_off": ["pivots"]}, marks=pytest.mark.slow),
    ],
)
def test_without_a_repair_a_violation_is_found(options: dict[str, Any]) -> None:
    report = search("locaps", 2000, options={"paths": "one", **options}, processes=1, shrink_seconds=0.1)
    assert report.finding is not None
    assert report.finding.symptom in {"unobserved", "missing-effect", "causal-inversion", "gap"}


def test_it_is_registered() -> None:
    spec = find_protocol("locaps")
    assert spec.guarantee == "gcd"
    assert spec.copes_with == {"crash"}
