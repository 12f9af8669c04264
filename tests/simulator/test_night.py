"""A long search continues after the last seed and after failures, and records the branches that it reached."""

import json
from pathlib import Path

import pytest
from trials.night import main
from trials.rules import RuleMeter, rules_of, unreached

from gapless.simulator import parse_scenario
from gapless.simulator.generator import generate
from gapless.simulator.trial import try_scenario

RULES = rules_of("gryphon")


def night(place: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    code = main(["--hours", "0", "--seeds", "8", "--keep", str(place), "--processes", "1", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_next_night_continues_where_the_last_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seeds in (8, 16):
        code, output = night(tmp_path, capsys, "--faults", "none", "--protocol", "gryphon")
        assert code == 0
        kind = output["kinds"]["none"]  # type: ignore[index]
        assert kind["next_seed"] == kind["valid"] + kind["unknown"] == seeds
    assert output["measured"] == 1
    assert output["branches"]["unreached"], "no crash was drawn, so some rules rest"  # type: ignore[index]


def test_findings_are_saved_reduced_and_the_search_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, output = night(tmp_path, capsys, "--faults", "crash", "--protocol", "gryphon")
    assert code == 1
    kind = output["kinds"]["crash"]  # type: ignore[index]
    assert kind["next_seed"] == 8
    assert kind["faults"]["crash"] > 0
    assert kind["found"]
    for found in kind["found"]:
        scenario = parse_scenario(Path(found["scenario"]).read_text(encoding="utf-8"))
        assert try_scenario(scenario).symptoms[0] == found["symptom"]


@pytest.mark.slow
def test_another_protocols_night_is_not_mixed_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    night(tmp_path, capsys, "--faults", "none", "--protocol", "gryphon")
    assert main(["--keep", str(tmp_path), "--protocol", "gapless", "--faults", "none"]) == 64
    assert "another directory" in capsys.readouterr().err


def test_an_unknown_fault_is_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--keep", str(tmp_path), "--faults", "rain"]) == 64
    assert "rain" in capsys.readouterr().err


def test_a_rule_that_no_run_has_reached_is_named_with_its_function() -> None:
    meter = RuleMeter(RULES)
    quiet = meter.measure(lambda: try_scenario(generate(0, "gryphon", "none")))[1]
    crashed = meter.measure(lambda: try_scenario(generate(0, "gryphon", "crash")))[1]
    count, missing = unreached(RULES, quiet)
    assert 0 < len(missing) < count
    assert all(branch.text and branch.rule and branch.line > 0 for branch in missing)
    assert len(unreached(RULES, quiet + crashed)[1]) < len(missing), "faults reach other rules"
