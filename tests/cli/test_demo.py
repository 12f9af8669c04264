"""The demo: it keeps its promises, fits the terminal, and can say no."""

import re
from pathlib import Path

import msgspec
import pytest

from gapless.cli import demo
from gapless.cli.demo_facts import DemoRun, journey_of, run_and_judge
from gapless.cli.tree_picture import draw_tree
from gapless.overlay import binary, chain, star
from gapless.simulator import Scenario, parse_scenario

from .conftest import Cli

ROOT = Path(__file__).parents[2]


def test_it_is_valid_and_fits_80_columns(cli: Cli) -> None:
    ran = cli("demo")
    assert ran.code == 0
    assert ran.err == ""
    assert max(map(len, ran.out.splitlines())) <= 80
    assert ran.out.splitlines()[-1].startswith("VALID")
    assert "INVALID" in ran.out
    assert "stands in" in ran.out
    assert "✗ b1" in ran.out
    assert "…" not in ran.out


def test_its_scenario_and_trace_can_be_had(cli: Cli, tmp_path: Path) -> None:
    text = cli("demo", "--toml").out
    (tmp_path / "shop.toml").write_text(text, encoding="utf-8")
    assert cli("sim", "run", tmp_path / "shop.toml").code == 0
    assert cli("demo", "--trace", tmp_path / "trace").code == 0
    assert cli("check", tmp_path / "trace").code == 0


def test_the_client_whose_broker_dies_moves_on() -> None:
    run = run_and_judge(parse_scenario(demo.scenario_text()))
    journey = journey_of(run, demo.MOVING_CLIENT)
    assert journey.old_broker == "b1"
    assert journey.new_broker != "b1"
    assert journey.published_before == journey.published_after == 40
    assert journey.delivered > 0


@pytest.mark.parametrize("seed", range(5))
def test_it_does_not_hang_on_one_seed(seed: int) -> None:
    scenario = parse_scenario(demo.scenario_text())
    scenario = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, seed=seed))
    assert run_and_judge(scenario).verdict.status == "valid"
    assert run_and_judge(scenario, (demo.REPAIR,)).verdict.status == "invalid"


def test_a_checker_that_cannot_say_no_proves_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def never_red(scenario: Scenario, _switched_off: tuple[str, ...] = ()) -> DemoRun:
        return run_and_judge(scenario)

    monkeypatch.setattr(demo, "run_and_judge", never_red)
    ran = cli("demo")
    assert ran.code == 2
    assert "proves nothing" in ran.out


def test_a_loss_shows_in_the_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def always_red(scenario: Scenario, _switched_off: tuple[str, ...] = ()) -> DemoRun:
        return run_and_judge(scenario, (demo.REPAIR,))

    monkeypatch.setattr(demo, "run_and_judge", always_red)
    ran = cli("demo")
    assert ran.code == 1
    assert ran.out.splitlines()[-2].startswith("INVALID")
    assert re.search(r"b1 died, [1-9]\d* lost", ran.out)


def test_the_picture_in_the_readme_is_what_is_printed(cli: Cli, tmp_path: Path) -> None:
    cli("demo", "--svg", tmp_path / "demo.svg")
    drawn = (tmp_path / "demo.svg").read_text(encoding="utf-8")
    assert "@font-face" not in drawn
    assert drawn == (ROOT / "docs/images/demo.svg").read_text(encoding="utf-8"), (
        "make it again: .venv/bin/gapless demo --svg docs/images/demo.svg"
    )


def test_trees_of_every_shape_are_drawn() -> None:
    lines = [line.plain for line in draw_tree(binary(1), {"b1": ["ann"], "b0": ["bob"]})]
    assert lines == [
        "        b0 bob",
        "    ┌───┴────┐",
        "    b1       b2",
        "   ann",
    ]
    assert "✗ b0" in draw_tree(star(4), {}, dead="b0", chief="b1")[0].plain
    assert len(draw_tree(chain(3), {})) >= 3
