"""The demo: its verdict is correct, its output fits the terminal, and it leaves no files behind."""

import os
import re
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path

import msgspec
import pytest

from gapless.cli import demo_simulated as demo
from gapless.cli.demo_facts import DemoRun, journey_of, run_and_judge
from gapless.cli.tree_picture import draw_tree
from gapless.overlay import binary, chain, star
from gapless.simulator import Scenario, parse_scenario
from tests.cli.screen import on_a_terminal
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]


PROGRAM = [sys.executable, "-m", "gapless"]
STAGES = (
    "killing broker b1",
    "b0 replaces b1",
    "stopping the network",
    "the checker in Python checks",
    "restarting all brokers",
)


def test_on_a_terminal_a_real_network_keeps_its_promises(cli: Cli, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [*PROGRAM, "demo", "--trace", str(tmp_path / "trace"), "--svg", str(tmp_path / "demo.svg")]
    # Spark is tested elsewhere, and Java may not be installed.
    environment = {"TMPDIR": str(scratch), "JAVA_HOME": str(tmp_path / "nowhere")}
    ran = on_a_terminal(command, environment=environment)
    out = "\n".join(ran.lines).rstrip()
    assert ran.code == 0, out
    for stage in STAGES:
        assert stage in ran.written
        assert stage not in out, "a spinner and the page wrote over each other"
    output = out[: out.index("\ntrace ")]
    *_, last = lines = output.splitlines()
    assert last.startswith("VALID")
    assert sum(line.endswith("───") and len(line) == 80 for line in lines) == 7  # each heading is whole
    assert re.search(r"INVALID .* gap", output)
    assert "continued; b0 took over" in " ".join(output.split())
    assert "✗ b1" in output
    assert "3  The checker in Python" in output
    assert "Spark was not used: Spark needs Java" in output
    assert re.search(r"confirmed events survive a crash of all brokers +0 of 1,000 lost", output)
    assert "on Spark" not in re.sub("Spark was not used", "", ran.written)
    assert cli("check", tmp_path / "trace").code == 0
    assert list(scratch.iterdir()) == []
    assert _running(scratch) == []
    assert "nothing wrong" in " ".join(_text(tmp_path / "demo.svg").split())
    words = _words(re.sub(r"\(Spark was not used:.*?\.\)", "", output, flags=re.DOTALL))
    new = words - _words(_text(ROOT / "docs/images/demo.svg")) - {"Python"}
    assert not new, "make it again: .venv/bin/gapless demo --svg docs/images/demo.svg"


def _text(picture: Path) -> str:
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", " ", picture.read_text(encoding="utf-8"), flags=re.DOTALL))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]{4,}", text))


def _running(place: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(place) in line:
            found.append(line)
    return found


@pytest.mark.parametrize(
    ("number", "is_in_background"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)]
)
def test_an_interrupt_leaves_no_files(tmp_path: Path, number: signal.Signals, is_in_background: bool) -> None:
    """In a script, background processes ignore interrupts."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_in_background else None
    try:
        process = subprocess.Popen([*PROGRAM, "demo"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while len(_running(tmp_path)) < 7 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == b""
    assert _running(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_in_virtual_time_it_is_valid_and_fits_80_columns(cli: Cli) -> None:
    ran = cli("demo", "--simulated")
    assert ran.code == 0
    assert ran.err == ""
    assert max(map(len, ran.out.splitlines())) <= 80
    assert ran.out.splitlines()[-1].startswith("VALID")
    assert "INVALID" in ran.out
    assert "takes over" in " ".join(ran.out.split())
    assert "✗ b1" in ran.out
    assert "…" not in ran.out


def test_its_scenario_and_trace_can_be_had(cli: Cli, tmp_path: Path) -> None:
    text = cli("demo", "--toml").out
    (tmp_path / "shop.toml").write_text(text, encoding="utf-8")
    assert cli("sim", "run", tmp_path / "shop.toml").code == 0
    assert cli("demo", "--simulated", "--trace", tmp_path / "trace").code == 0
    assert cli("check", tmp_path / "trace").code == 0


def test_a_client_whose_broker_dies_moves_to_another() -> None:
    run = run_and_judge(parse_scenario(demo.scenario_text()))
    journey = journey_of(run, demo.MOVING_CLIENT)
    assert journey.old_broker == "b1"
    assert journey.new_broker != "b1"
    assert journey.published_before == journey.published_after == 40
    assert journey.delivered > 0


@pytest.mark.parametrize("seed", range(2))
def test_it_does_not_hang_on_one_seed(seed: int) -> None:
    scenario = parse_scenario(demo.scenario_text())
    scenario = msgspec.structs.replace(scenario, run=msgspec.structs.replace(scenario.run, seed=seed))
    assert run_and_judge(scenario).verdict.status == "valid"
    assert run_and_judge(scenario, (demo.REPAIR,)).verdict.status == "invalid"


def test_a_checker_that_cannot_say_no_proves_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def never_red(scenario: Scenario, _switched_off: tuple[str, ...] = ()) -> DemoRun:
        return run_and_judge(scenario)

    monkeypatch.setattr(demo, "run_and_judge", never_red)
    ran = cli("demo", "--simulated")
    assert ran.code == 2
    assert "proves nothing" in ran.out


def test_a_loss_shows_in_the_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def always_red(scenario: Scenario, _switched_off: tuple[str, ...] = ()) -> DemoRun:
        return run_and_judge(scenario, (demo.REPAIR,))

    monkeypatch.setattr(demo, "run_and_judge", always_red)
    ran = cli("demo", "--simulated")
    assert ran.code == 1
    assert ran.out.splitlines()[-2].startswith("INVALID")
    assert re.search(r"b1 died, [1-9]\d* lost", ran.out)


def test_virtual_time_draws_the_same_picture_each_time(cli: Cli, tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        assert cli("demo", "--simulated", "--svg", tmp_path / name).code == 0
    drawn = (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert "@font-face" not in drawn
    assert drawn == (tmp_path / "two.svg").read_text(encoding="utf-8")


def test_virtual_time_has_its_own_json(cli: Cli) -> None:
    ran = cli("demo", "--simulated", "--json")
    assert ran.code == 64
    assert "sim run --json" in ran.err


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
