"""The result of a trial, from its verdict."""

from pathlib import Path

import msgspec
import pytest

from gapless.checkers import check
from gapless.simulator import load_scenario
from gapless.simulator.expected_anomalies import REASON, drop_expected
from gapless.simulator.result import Result
from gapless.simulator.trial import try_run

SCENARIOS = Path(__file__).parents[1] / "protocols/gapless/scenarios/earlier"
NAMES = ("event_known_to_a_client_only", "no_partition_has_a_confirmed_event")


def run(name: str) -> Result:
    outcome, result = try_run(load_scenario(SCENARIOS / f"{name}.toml"))
    assert outcome.status == "valid"
    assert outcome.verdict is not None
    assert result is not None
    assert outcome.verdict.reason == REASON
    return result


@pytest.mark.parametrize("name", NAMES)
def test_an_answered_cause_that_is_published_again_is_excused_only_where_more_may_fail(name: str) -> None:
    scenario, result = load_scenario(SCENARIOS / f"{name}.toml"), run(name)
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.counts == {"causal-inversion": 1}
    unlost = msgspec.structs.replace(result, lost_publications=())
    within_f = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, may_lose=False))
    assert drop_expected(verdict, unlost, within_f) == verdict
    calm = msgspec.structs.replace(scenario, faults=())
    assert drop_expected(verdict, unlost, calm) == verdict, "nothing has failed"
    [anomaly] = verdict.anomalies
    for kind in ("duplicate", "gap"):
        worse = msgspec.structs.replace(verdict, anomalies=(msgspec.structs.replace(anomaly, kind=kind),))
        assert drop_expected(worse, result, scenario) == worse


def test_a_loss_is_excused_only_where_more_may_fail() -> None:
    scenario = load_scenario(SCENARIOS / "loss_known_after_the_subscription_ended.toml")
    outcome, result = try_run(scenario)
    assert outcome.status == "valid"
    assert result is not None
    assert result.lost_publications or result.lost_deliveries
    strict = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, may_lose=False))
    outcome, _ = try_run(strict)
    assert outcome.status == "invalid"
    assert outcome.symptoms[-1] == "reported-loss"
