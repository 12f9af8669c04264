"""What the README shows a data engineer is run, on the trace that it shows a researcher how to write."""

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Cli

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    section = README.partition("## A data engineer's minute")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_the_data_engineers_minute(
    spark: SparkSession,
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)[0]
    Path("hello.toml").write_text(scenario, encoding="utf-8")
    assert cli("sim", "run", "hello.toml", "--trace", "out/hello").code == 0
    [command] = blocks("bash")
    ran = cli(*shlex.split(command)[1:])
    assert (ran.code, ran.err) == (0, "")
    assert "VALID" in ran.out
    [program] = blocks("python")
    exec(compile(program, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "median" in printed
    assert "|   40|" in printed, "each of alice's 40 events came to bob once"
