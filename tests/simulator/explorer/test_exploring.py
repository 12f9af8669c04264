"""The explorer reaches every schedule within its bounds, finds planted defects, and reproduces its findings."""

from pathlib import Path

import pytest
from trials.scopes import FROM_MS, SCOPES, scenario_of

from gapless.simulator import load_scenario
from gapless.simulator.explorer import Bounds, explore, load_schedule, run_schedule, save_schedule
from gapless.simulator.scenario import Scenario
from tests.conftest import Cli

SMALL = ["a-representative-ends", "two-subscribe-at-once", "one-wrong-suspicion", "an-effect-and-its-cause"]


def planted(rule: str, name: str) -> Scenario:
    return scenario_of(name, (rule,))


@pytest.mark.parametrize("name", SMALL)
def test_every_schedule_without_delays_is_valid(name: str) -> None:
    report = explore(scenario_of(name), FROM_MS, Bounds(delays=0, ticks=1, replays=2))
    assert not report.symptom
    assert report.is_complete
    assert report.schedules > 1


def test_the_default_schedules_of_the_suite_keep_the_promise() -> None:
    assert len(SCOPES) >= 20
    for name in SCOPES:
        symptom, verdict = run_schedule(scenario_of(name), FROM_MS, [])
        assert verdict is not None, symptom
        assert not symptom, name


def test_a_switched_off_rule_is_found_and_its_schedule_repeats_it(tmp_path: Path, cli: Cli) -> None:
    scenario = planted("void", "subscribe-while-a-broker-crashes")
    report = explore(scenario, FROM_MS, Bounds(delays=0, ticks=1))
    assert report.symptom == "unobserved"
    file = tmp_path / "found.toml"
    save_schedule(file, scenario, FROM_MS, report.schedule)
    kept = load_scenario(file)
    assert load_schedule(kept) == list(report.schedule)
    assert run_schedule(kept, FROM_MS, load_schedule(kept), invariants=False)[0] == report.symptom
    assert cli("sim", "explore", str(file), "--json").code == 1


def test_two_explorations_are_the_same() -> None:
    first, second = (explore(scenario_of(SMALL[0]), FROM_MS, Bounds(delays=0, ticks=1, replays=0)) for _ in range(2))
    assert (first.states, first.transitions, first.schedules) == (second.states, second.transitions, second.schedules)


def test_every_order_has_the_ends_of_those_without_delays() -> None:
    scenario = scenario_of("two-subscribe-at-once")
    few = explore(scenario, FROM_MS, Bounds(delays=0, ticks=0, replays=0))
    many = explore(scenario, FROM_MS, Bounds(delays=-1, ticks=0, replays=0, states=3_000))
    assert not many.symptom
    assert many.transitions > few.transitions


def test_a_bound_that_is_met_leaves_it_open() -> None:
    report = explore(scenario_of(SMALL[0]), FROM_MS, Bounds(delays=1, ticks=1, states=100, replays=0))
    assert not report.is_complete
    assert not report.symptom
