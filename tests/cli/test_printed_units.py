"""Output for people uses full words for units; the short forms are for files and programs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless.cli.main import app
from gapless.protocol import GUARANTEE_NAMES
from gapless.registry import protocols
from tests.conftest import Cli

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "examples/first.toml"
SHORT = re.compile(r"\b(gcd|gfd)\b", re.IGNORECASE)


def _commands(command: object, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(each, *words, name)


COMMANDS = list(_commands(app))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_in_words(cli: Cli, words: tuple[str, ...]) -> None:
    assert not SHORT.search(cli(*words, "--help").out)


@pytest.mark.parametrize("name", protocols())
def test_each_protocol_describes_its_promises_in_words(cli: Cli, name: str) -> None:
    output = cli("protocols", name).out
    assert f"promises {GUARANTEE_NAMES[protocols()[name].guarantee]};" in output
    assert not SHORT.search(output)
    assert not SHORT.search(cli("protocols").out)


def test_verdicts_are_in_words_and_programs_get_the_short_ones(cli: Cli, tmp_path: Path) -> None:
    ran = cli("sim", "run", FIRST, "--trace", tmp_path / "trace")
    assert "which guarantees gapless causal" in ran.out
    judged = cli("check", tmp_path / "trace")
    assert "gapless causal" in judged.out
    assert not SHORT.search(ran.out + judged.out + cli("sim", "compare", FIRST).out)
    assert json.loads(cli("check", tmp_path / "trace", "--json").out)["runs"][0]["guarantee"] == "gcd"


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("docs/**/*.md"))]
)
def test_documents_say_what_a_short_word_means(document: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in text.splitlines():
        if SHORT.search(line):
            assert "gapless causal" in line or "gapless FIFO" in line, line
