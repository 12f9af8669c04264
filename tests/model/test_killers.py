"""Every rule of the specification is needed: without it, a stored schedule or run violates a guarantee."""

import pytest
from model.explore import Chooser, Exploration, NotAllowedError, once
from model.rules import Rule
from model.scopes import SCOPES, SCRIPTS
from model.search import attempt, generate

SCHEDULES: dict[Rule, tuple[str, str]] = {
    Rule.PROMISE_FENCES: ("fenced", ""),
    Rule.STORE_SEAL: ("stored", ""),
    Rule.COUNT_CURRENT: ("counted", ""),
    Rule.RECOVER_FIRST: ("recovered", ""),
    Rule.ANNOUNCE_FIRST: ("announced", ""),
    Rule.PUSH_ON: ("pushed", ""),
    Rule.KEEP_CLOCK: ("clocks", ""),
    Rule.REPLICATE_AGAIN: ("again", ""),
    Rule.SEALS_FIRST: ("sealsfirst", ""),
    Rule.SORT_UNION: ("sorted", ""),
    Rule.SHARE_SEEN: ("seen", ""),
    Rule.FREEZE: ("subcrash", "0,0,0,0,0,0,0,0,0,0,0,0,1"),
    Rule.UNSETTLE: ("unsettled", ""),
    Rule.VOID: ("advsub", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,1"),
    Rule.ADV_CARRIES_LAST: ("advlast", ""),
    Rule.FENCE_TELLS_LAST: ("homelast", ""),
    Rule.BEGIN: ("begin", "0,0,0,0,0,1"),
    Rule.BEGIN_CONFIRMED: ("beginconfirmed", ""),
    Rule.UNADV_RESTARTS: ("unadv", ""),
    Rule.SEAL_ROWS: ("sealrows", ""),
    Rule.FENCE_FINAL: ("zombie", "2,0,0,0,0,0,0,0,0,0,1,0,1"),
    Rule.READY_FIRST: ("movecrash", "0,0,0,0,1"),
}
RUNS: dict[Rule, tuple[str, int]] = {
    Rule.ACTIVE_REPRESENTS: ("none", 10),
    Rule.RESUME_TOGETHER: ("move", 158),
    Rule.KEEP_VIEW: ("all", 440),
}
ARGUED = {Rule.FENCE_SEEN}


def schedule(name: str, choices: str, off: set[Rule]) -> str | None:
    chooser = Chooser([int(choice) for choice in choices.split(",") if choice])
    return once((SCOPES | SCRIPTS)[name], off, 0, chooser)


@pytest.mark.parametrize("rule", SCHEDULES, ids=lambda rule: rule.name)
def test_a_kept_schedule_fails_without_the_rule(rule: Rule) -> None:
    assert schedule(*SCHEDULES[rule], {rule}) is not None


@pytest.mark.parametrize("rule", SCHEDULES, ids=lambda rule: rule.name)
def test_the_schedule_is_valid_with_the_rule(rule: Rule) -> None:
    if rule is Rule.RECOVER_FIRST:  # one broker has not recovered when another crashes: more than f
        with pytest.raises(NotAllowedError):
            schedule(*SCHEDULES[rule], set())
    else:
        assert schedule(*SCHEDULES[rule], set()) is None


@pytest.mark.parametrize("rule", RUNS, ids=lambda rule: rule.name)
def test_a_kept_run_fails_without_the_rule(rule: Rule) -> None:
    kind, seed = RUNS[rule]
    violation, _ = attempt(generate(seed, kind), {rule})
    assert violation is not None
    violation, _ = attempt(generate(seed, kind))
    assert violation is None


@pytest.mark.parametrize("off", [set[Rule](), {Rule.SUSPECT_FIRST}], ids=["with", "without"])
def test_one_suspicion_excludes_no_broker(off: set[Rule]) -> None:
    exploration = Exploration(SCRIPTS["lonely"], off, Chooser([]))
    exploration.explore(0)
    assert (exploration.stats["excluded"] > 0) == bool(off)


def test_every_rule_is_covered() -> None:
    assert {*SCHEDULES, *RUNS, *ARGUED, Rule.SUSPECT_FIRST} == set(Rule)
