"""The benchmark runner stores the figures of a run, and compares them with an earlier run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import __main__ as runner

PROGRAM = """
import argparse, json, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--quick", action="store_true")
parser.add_argument("--out", type=pathlib.Path)
chosen = parser.parse_args()
chosen.out.write_text(json.dumps({"rate": 200 if chosen.quick else 100, "name": "x", "rows": [{"ms": 3}, {"ms": 4}]}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "small.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "broken.py").write_text("raise SystemExit(3)", encoding="utf-8")
    monkeypatch.setattr(runner, "HERE", tmp_path)
    monkeypatch.setattr(runner, "KEPT", tmp_path / "kept")
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "kept").iterdir())


def test_figures_are_kept_with_the_machine(folder: Path) -> None:
    assert runner.main(["--only", "small"]) == 0
    found = json.loads(kept(folder)[0].read_text())
    assert found["benchmarks"]["small"]["figures"]["rate"] == 100
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["python"]


def test_ratios_to_an_earlier_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runner.main(["--only", "small"])
    earlier = folder / "earlier.json"
    kept(folder)[0].rename(earlier)
    assert runner.main(["--quick", "--only", "small", "--against", str(earlier)]) == 0
    lines = [line.strip() for line in capfd.readouterr().out.splitlines()]
    assert "2.00  small.rate: 200, was 100" in lines
    assert not any("rows" in line for line in lines), "what did not change is not worth a line"


def test_one_that_fails_fails_the_run_and_leaves_the_others(folder: Path) -> None:
    assert runner.main([]) == 1
    found = json.loads(kept(folder)[0].read_text())["benchmarks"]
    assert found["broken"]["code"] == 3
    assert found["broken"]["figures"] is None
    assert found["small"]["code"] == 0


@pytest.mark.parametrize("text", [None, "no JSON", "[]", "{}"])
def test_a_file_without_figures_is_refused_before_anything_runs(
    folder: Path, text: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    file = folder / "earlier.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert runner.main(["--against", str(file)]) == 2
    said = capfd.readouterr()
    assert "holds no figures" in said.err
    assert "==" not in said.out


def test_an_unknown_name_is_refused_with_the_known_ones(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--only", "smal"]) == 2
    assert "small" in capfd.readouterr().err


@pytest.mark.parametrize("program", sorted(runner.HERE.glob("[!_]*.py")), ids=lambda program: program.stem)
def test_every_benchmark_can_be_run_by_the_runner(program: Path) -> None:
    """Every benchmark accepts the runner's options."""
    text = program.read_text(encoding="utf-8")
    for option in ("--quick", "--out"):
        assert f'add_argument("{option}"' in text
