"""What the page about Spark shows is run, on the trace that the page about the simulator shows how to write."""

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Cli

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "SPARK.md").read_text(encoding="utf-8")
SIMULATOR = (DOCS / "SIMULATOR.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_what_is_shown_works(
    spark: SparkSession,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = re.findall(r"```toml\n(.*?)```", SIMULATOR, re.DOTALL)[0]
    Path("hello.toml").write_text(scenario, encoding="utf-8")
    assert cli("sim", "run", "hello.toml", "--trace", "out/hello").code == 0
    [command] = blocks("bash")
    ran = cli(*shlex.split(command)[1:])
    assert (ran.code, ran.err) == (0, "")
    assert "VALID" in ran.out
    [program] = blocks("python")
    exec(compile(program, "docs/SPARK.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "median" in printed
    assert "|   40|" in printed, "each of alice's 40 events came to bob once"
