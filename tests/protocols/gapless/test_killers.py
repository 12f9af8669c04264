"""Every rule of the protocol that can be switched off is needed: without it, a schedule of a small scope fails.

With the rule, the first 600 states of the scope are explored here without a violation.

A rule that is added to `RULES` fails here until it has a killer.
"""

import msgspec
import pytest
from trials.scopes import FROM_MS, PROTOCOL, scenario_of

from gapless.protocols.gapless.options import RULES
from gapless.simulator import generate, try_scenario
from gapless.simulator.explorer import Bounds, explore

KILLERS = {
    "active-only": "two-subscribe-at-once-at-one-broker",
    "fence": "the-publishers-broker-crashes",
    "last-numbers": "a-publisher-advertises-again",
    "majority": "a-connection-breaks",
    "sort": "cause-and-effect-in-one-journal",
    "union": "publish-while-the-broker-between-crashes",
    "void": "subscribe-while-a-broker-crashes",
}
SEEDS = {"synced": ("disk,crash", 2)}


def test_every_rule_has_a_killer() -> None:
    assert {*KILLERS, *SEEDS} == RULES


@pytest.mark.parametrize("rule", KILLERS)
def test_a_schedule_fails_without_the_rule_and_none_with_it(rule: str) -> None:
    report = explore(scenario_of(KILLERS[rule], (rule,)), FROM_MS, Bounds(delays=0, ticks=1))
    assert report.symptom
    with_the_rule = explore(scenario_of(KILLERS[rule]), FROM_MS, Bounds(delays=0, ticks=1, states=600, replays=5))
    assert with_the_rule.schedules > 0
    assert not with_the_rule.symptom


@pytest.mark.parametrize("rule", SEEDS)
def test_a_run_fails_without_the_rule_and_is_valid_with_it(rule: str) -> None:
    faults, seed = SEEDS[rule]
    scenario = generate(seed, PROTOCOL, faults=faults, options={"switched_off": (rule,)})
    assert try_scenario(scenario).failed
    protocol = msgspec.structs.replace(scenario.protocol, options={**scenario.protocol.options, "switched_off": ()})
    assert not try_scenario(msgspec.structs.replace(scenario, protocol=protocol)).failed
