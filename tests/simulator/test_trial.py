"""What a trial makes of a verdict."""

from pathlib import Path

import msgspec
import pytest

from gapless.checkers import check
from gapless.simulator import load_scenario, try_scenario
from gapless.simulator.expected_anomalies import REASON, drop_expected
from gapless.simulator.result import LostPublications, Result
from gapless.simulator.scenario import UnsubscribeAction
from gapless.simulator.trial import try_run

SCENARIOS = Path(__file__).parents[1] / "protocols/gapless/scenarios"
PATH = SCENARIOS / "known_when_it_had_ended.toml"


def run(path: Path = PATH) -> Result:
    outcome, result = try_run(load_scenario(path))
    assert outcome.status == "valid"
    assert outcome.verdict is not None
    assert result is not None
    assert outcome.verdict.reason == REASON
    return result


def test_a_loss_that_is_known_when_a_subscription_has_ended_is_not_held_against_it() -> None:
    result = run()
    [lost] = result.lost_publications
    assert (lost.publisher, lost.first, lost.last) == ("p1", 1, 1)
    assert result.trace is not None
    [ended] = [row.ended_ms for row in result.trace.subscriptions if row.subscription_id == "s12"]
    assert ended is not None
    assert ended < lost.time_ms


def test_a_loss_that_was_known_before_is() -> None:
    scenario, result = load_scenario(PATH), run()
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.counts == {"causal-inversion": 1}
    for told in (LostPublications("p1", 1, 1, 2000.0), LostPublications("p1", 2, 2, 9000.0)):
        assert drop_expected(verdict, msgspec.structs.replace(result, lost_publications=(told,)), scenario) == verdict


def test_who_is_still_there_is_told() -> None:
    scenario = load_scenario(PATH)
    actions = [action for action in scenario.actions if not isinstance(action, UnsubscribeAction)]
    outcome = try_scenario(msgspec.structs.replace(scenario, actions=actions))
    assert outcome.verdict is not None
    assert (outcome.status, outcome.verdict.reported_losses) == ("valid", 1)


def test_what_others_admitted_is_not_held_against_a_reading_that_was_over_when_the_halves_met() -> None:
    scenario, result = load_scenario(PATH), run()
    assert result.trace is not None
    verdict = check(result.trace)
    [anomaly] = verdict.anomalies
    gap = msgspec.structs.replace(verdict, anomalies=(msgspec.structs.replace(anomaly, kind="gap"),))
    [published] = [row.published_ms for row in result.trace.events if row.event_id == anomaly.event]

    def requested(time_ms: float) -> Result:
        assert result.trace is not None
        rows = [
            msgspec.structs.replace(row, requested_ms=time_ms) if row.subscription_id == anomaly.subscription else row
            for row in result.trace.subscriptions
        ]
        return msgspec.structs.replace(result, trace=msgspec.structs.replace(result.trace, subscriptions=rows))

    assert drop_expected(gap, requested(published + 1), scenario).status == "valid", "it was to read it out of history"
    assert drop_expected(gap, requested(published - 1), scenario) == gap, "it was there when that was published"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("said_again_after_its_answer", "causal-inversion"),
        ("read_before_its_loss_was_known", "gap"),
        ("said_again_after_the_halves_met", "causal-inversion"),
    ],
)
def test_what_nobody_could_tell_is_excused_only_where_more_may_fail(name: str, kind: str) -> None:
    path = SCENARIOS / f"{name}.toml"
    scenario, result = load_scenario(path), run(path)
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.counts == {kind: 1}
    unlost = msgspec.structs.replace(result, lost_publications=())
    within_f = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, may_lose=False))
    assert drop_expected(verdict, unlost, within_f) == verdict
    calm = msgspec.structs.replace(scenario, faults=())
    assert drop_expected(verdict, unlost, calm) == verdict, "nothing has failed"
    [anomaly] = verdict.anomalies
    worse = msgspec.structs.replace(verdict, anomalies=(msgspec.structs.replace(anomaly, kind="duplicate"),))
    assert drop_expected(worse, result, scenario) == worse
