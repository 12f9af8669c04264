"""What a trial makes of a verdict."""

from pathlib import Path

import msgspec

from gapless.checkers import check
from gapless.simulator import load_scenario, try_scenario
from gapless.simulator.result import LostPublications, Result
from gapless.simulator.scenario import UnsubscribeAction
from gapless.simulator.trial import excuse, try_run

PATH = Path(__file__).parents[1] / "protocols/gapless/scenarios/known_when_it_had_ended.toml"


def run() -> Result:
    outcome, result = try_run(load_scenario(PATH))
    assert outcome.status == "valid"
    assert outcome.verdict is not None
    assert result is not None
    assert outcome.verdict.reason == "of what is lost, all who were still there when that was known were told"
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
    result = run()
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.counts == {"causal-inversion": 1}
    for told in (LostPublications("p1", 1, 1, 2000.0), LostPublications("p1", 2, 2, 9000.0)):
        assert excuse(verdict, msgspec.structs.replace(result, lost_publications=(told,))) == verdict


def test_who_is_still_there_is_told() -> None:
    scenario = load_scenario(PATH)
    actions = [action for action in scenario.actions if not isinstance(action, UnsubscribeAction)]
    outcome = try_scenario(msgspec.structs.replace(scenario, actions=actions))
    assert outcome.verdict is not None
    assert (outcome.status, outcome.verdict.told_losses) == ("valid", 1)
