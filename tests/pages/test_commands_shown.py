"""The commands shown in the documents run, in order, in a folder with their files."""

import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from gapless.checkers import check
from gapless.cli import sim_search
from gapless.simulator import generate, parse_scenario, run_scenario, search, try_scenario
from tests.conftest import Cli
from tests.pages.page import PAGES, ROOT, blocks, commands, endless, read

INVALID_REMARKS = ("finds one", "invalid")

FILES = {"docs/SIMULATOR.md": "hello.toml", "docs/TUTORIAL.md": "crash.toml", "docs/FILTERS.md": None}


@pytest.mark.parametrize("page", FILES)
def test_the_commands_do_what_they_say(page: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = FILES[page]
    if name is not None:
        (tmp_path / name).write_text(blocks(page, "toml")[0], encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # A scenario can fail before it is fully reduced; the reduction is tested elsewhere.
    monkeypatch.setattr(sim_search, "search", partial(search, shrink_seconds=0.2))
    shown = commands(page)
    assert shown
    for words, remark in shown:
        ran = cli(*words[1:])
        assert words[0] == "gapless"
        assert ran.code == (1 if remark in INVALID_REMARKS else 0), (words, ran.out, ran.err)
        assert ran.err == ""


@pytest.mark.parametrize("page", PAGES)
def test_every_command_shown_on_a_page_is_tested(page: str) -> None:
    assert page in FILES or all(words[0] in ("make", "gapless", "uv") for words, _ in commands(page))
    if page not in (*FILES, "CONTRIBUTING.md"):
        assert all(words[0] == "make" for words, _ in commands(page))


@pytest.mark.parametrize("page", ["docs/SIMULATOR.md", "docs/TUTORIAL.md"])
def test_the_scenario_delivers_through_the_crash(page: str) -> None:
    result = run_scenario(parse_scenario(blocks(page, "toml")[0]))
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.status == "valid"
    assert verdict.deliveries > 10


def test_without_the_repair_the_scenario_of_the_tutorial_is_invalid() -> None:
    scenario, without = blocks("docs/TUTORIAL.md", "toml")
    text = scenario.replace('name = "gapless"\n', f'name = "gapless"\n\n{without}', 1)
    result = run_scenario(parse_scenario(text))
    assert result.trace is not None
    verdict = check(result.trace)
    assert verdict.status == "invalid"
    assert verdict.anomalies[0].kind == "gap"
    assert len(verdict.anomalies[0].witness) == 2


@pytest.mark.parametrize("page", [page for page in PAGES if any("gapless" in words for words in endless(page))])
def test_endless_commands_have_the_options_that_are_shown(page: str, cli: Cli) -> None:
    shown = [words[1:] for words in endless(page) if words[0] == "gapless"]
    for words in shown:
        name = words[: 2 if words[0] in ("client", "lab", "security", "sim", "trace") else 1]
        completed = cli(*name, "--help")
        assert completed.code == 0, words
        for option in words:
            assert not option.startswith("--") or f"{option} " in completed.out, words


@pytest.mark.parametrize("page", PAGES)
def test_make_has_what_is_promised(page: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    shown = [words for words, _ in commands(page)] + endless(page)
    for target in {words[1] for words in shown if words[0] == "make"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#\s]+)[^)]*\)", read(page)):
        assert ((ROOT / page).parent / link).exists(), link


def test_the_readme_stays_short() -> None:
    assert len(read("README.md").splitlines()) <= 120


def test_the_test_that_contributors_are_shown_works() -> None:
    code = blocks("CONTRIBUTING.md", "python")[0]
    assert "from gapless.simulator import generate, try_scenario" in code
    assert try_scenario(generate(0, "gapless")).status == "valid"


def test_the_exit_codes_are_those_of_the_help(cli: Cli) -> None:
    listed = set(re.findall(r"^\| (\d+) \|", read("docs/COMMANDS.md"), re.MULTILINE))
    epilog = " ".join(cli("--help").out.split()).partition("Exit codes:")[2]
    assert listed == set(re.findall(r"\b\d+\b", epilog))


def test_every_command_is_listed(cli: Cli) -> None:
    table = read("docs/COMMANDS.md").partition("| --- |")[2].partition("##")[0]
    listed = set(re.findall(r"`([a-z]+)(?: [a-z]+)?`", table))
    commands = cli("--help").out.partition("Commands:")[2].partition("Exit codes:")[0]
    completed = set(re.findall(r"^  ([a-z]+) ", commands, re.MULTILINE))
    assert completed <= listed
    assert len(completed) > 10
