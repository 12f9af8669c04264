"""The notebooks run on a real network, cell by cell, as in Jupyter."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from matplotlib import pyplot
from pyspark.sql import SparkSession

from gapless.runtime.fleet import Fleet

from .stream.network import history, patiently, served

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Fleet]:
    with served(tmp_path_factory.mktemp("shop"), 2) as fleet:
        yield fleet


def run(name: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("GAPLESS_URL", fleet.config.url)
    content = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    found: dict[str, Any] = {}
    for cell in content["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), f"{name}:{cell['id']}", "exec")
            patiently(partial(exec, code, found))
    return found


def test_volumes_of_a_stream_are_added_up_and_drawn(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run("volumes.ipynb", fleet, monkeypatch)
    wanted: dict[str, float] = {}
    for trade in found["trades"]:
        if trade["amount"] > 1:
            wanted[trade["symbol"]] = wanted.get(trade["symbol"], 0.0) + trade["price"] * trade["amount"]
    assert {symbol: sum(minutes.values()) for symbol, minutes in found["volumes"].items()} == pytest.approx(wanted)
    assert len(found["axes"].containers) == 3
    pyplot.close(found["figure"])


def test_a_stream_is_enriched_and_published_back(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("enrich.ipynb", fleet, monkeypatch)
    assert "60 bills; 1770 pieces" in capsys.readouterr().out
    price = {"A": 1.5, "B": 2.0, "C": 10.0}
    for bill in history(fleet, "topic = 'bill'"):
        assert bill.attributes["total"] == price[str(bill.attributes["item"])] * int(bill.attributes["count"])
