"""What the README shows is run: its commands in its order, in a folder that holds its files."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.simulator import generate, parse_scenario, run_scenario, try_scenario
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

INVALID_REMARKS = ("finds one", "invalid")
"""Remarks behind commands that end with 1."""


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _commands(text: str) -> list[tuple[list[str], str]]:
    """The words of each command, and the remark behind it."""
    lines = [line.removeprefix("$ ") for block in _blocks(text, "console") for line in block.splitlines()]
    return [(shlex.split(line, comments=True), line.partition("  # ")[2].strip()) for line in lines]


def test_the_commands_do_what_they_say(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hello.toml").write_text(_blocks(README, "toml")[0], encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    commands = [(words, remark) for words, remark in _commands(README) if words[0] == "gapless"]
    assert len(commands) >= 8
    for words, remark in commands:
        ran = cli(*words[1:])
        assert ran.code == (1 if remark in INVALID_REMARKS else 0), (words, ran.out, ran.err)
        assert ran.err == ""


def test_the_scenario_delivers_through_the_crash() -> None:
    result = run_scenario(parse_scenario(_blocks(README, "toml")[0]))
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.status == "valid"
    assert verdict.deliveries > 10


def test_commands_that_go_on_for_ever_have_the_options_that_are_shown(cli: Cli) -> None:
    lines = [shlex.split(line, comments=True) for block in _blocks(README, "bash") for line in block.splitlines()]
    commands = [words[1:] for words in lines if words and words[0] == "gapless"]
    assert len(commands) >= 9
    for words in commands:
        name = words[: 2 if words[0] == "trace" else 1]
        told = cli(*name, "--help")
        assert told.code == 0, words
        for option in words:
            assert not option.startswith("--") or f"{option} " in told.out, words


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_make_has_what_is_promised(text: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {words[1] for words, _ in _commands(text) if words[0] == "make"}
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_links_lead_somewhere(text: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / link).exists(), link


def test_the_folders_shown_are_there() -> None:
    for path in re.findall(r"src/gapless/[a-z_.]+", README):
        assert (ROOT / path).exists(), path


def test_the_test_that_contributors_are_shown_works() -> None:
    code = _blocks(CONTRIBUTING, "python")[0]
    assert "from gapless.simulator import generate, try_scenario" in code
    assert try_scenario(generate(0, "gapless")).status == "valid"


def test_the_exit_codes_are_those_of_the_help(cli: Cli) -> None:
    listed = set(re.findall(r"^\| (\d+) \|", README, re.MULTILINE))
    epilog = " ".join(cli("--help").out.split()).partition("Exit codes:")[2]
    assert listed == set(re.findall(r"\b\d+\b", epilog))
