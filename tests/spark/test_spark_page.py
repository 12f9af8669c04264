"""The examples of the page about Spark run: on a network, and on the trace that the simulator's page shows how to
write."""

import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import Cli

from .stream.network import history, patiently, served, speak

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "SPARK.md").read_text(encoding="utf-8")
SIMULATOR = (DOCS / "SIMULATOR.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_stream_that_is_shown_works(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found: dict[str, Any] = {}
    for block in blocks("python")[:4]:
        exec(compile(block, "docs/SPARK.md", "exec"), found)
    with served(tmp_path / "network", 1) as fleet:
        trades = [{"topic": "trade", "symbol": "AB"[n % 2], "price": 9.5 + n, "amount": n} for n in range(10)]
        speak(fleet, "b0", trades)
        found["look"](fleet.config.url)
        assert "topic -> trade" in capsys.readouterr().out
        patiently(lambda: found["volumes"](spark, fleet.config.url, str(tmp_path / "checkpoint")))
        patiently(lambda: found["enrich"](spark, fleet.config.url, str(tmp_path / "enriched")))
        bills = history(fleet, "topic = 'bill'")
        for _ in range(2):
            found["report"](spark, fleet.config.url, str(tmp_path / "volumes.png"), str(tmp_path / "staging"))
        volumes = history(fleet, "topic = 'volume'")
    printed = capsys.readouterr().out
    assert "|     A|         20|" in printed, "without what costs less than 10"
    assert "|     B|         25|" in printed
    assert [bill.attributes["total"] for bill in bills] == [(9.5 + n) * n for n in range(10)]
    assert bills[0].payload == b"paid in cash"
    assert (tmp_path / "volumes.png").read_bytes().startswith(b"\x89PNG")
    assert {event.attributes["symbol"]: event.attributes["volume"] for event in volumes} == {
        symbol: sum((9.5 + n) * n for n in range(first, 10, 2)) for symbol, first in (("A", 0), ("B", 1))
    }  # fmt: skip
    assert len(volumes) == 2, "a batch with a name is published once"
    assert datetime.fromisoformat(str(volumes[0].attributes["computed_at"])).tzinfo is not None


def test_examples_about_traces_work(
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
    exec(compile(blocks("python")[4], "docs/SPARK.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "median" in printed
    assert "|   40|" in printed, "each of alice's 40 events came to bob once"
