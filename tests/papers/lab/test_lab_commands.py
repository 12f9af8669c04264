"""The commands `gapless lab run`, `figures` and `report`."""

import json
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from gapless.errors import GaplessError
from gapless_papers.lab import collection
from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.figures.gallery import Gallery
from tests.conftest import Cli

Tiny = Callable[..., Experiment]
ROOT = Path(__file__).parents[3]


def test_a_sweep_reports_what_it_did(cli: Cli, tiny: Tiny, tmp_path: Path) -> None:
    experiment = tiny()
    ran = cli("lab", "run", experiment.file, "--quick", "--out", tmp_path / "out")
    assert ran.code == 0
    assert "DONE  tiny: 2 of 2 runs" in ran.out
    ran = cli("lab", "run", experiment.file, "--quick", "--out", tmp_path / "out", "--json")
    assert ran.code == 0
    document = json.loads(ran.out)
    assert (document["report"]["runs"], document["report"]["found"]) == (2, 2)


def test_one_run_is_shown_without_spark(cli: Cli, tiny: Tiny) -> None:
    name = "protocol=gapless,depth=3,seed=1"
    ran = cli("lab", "run", tiny().file, "--only", name)
    assert ran.code == 0
    assert "subscription-latency" in ran.out
    document = json.loads(cli("lab", "run", tiny().file, "--only", name, "--json").out)
    assert {row["value"] for row in document["metrics"] if row["metric"] == "subscription-latency"} == {300.0}
    ran = cli("lab", "run", tiny().file, "--only", "protocol=gapless")
    assert (ran.code, ran.out) == (64, "")
    assert "has no run 'protocol=gapless'; one of its 8 is" in ran.err


def test_figures_come_as_pictures_tables_and_one_report(
    cli: Cli, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments"
    folder.mkdir()
    text = Path(tiny().file).read_text(encoding="utf-8")
    (folder / "tiny.toml").write_text(f'paper = "001"\nplace = "Figure 1"\n{text}', encoding="utf-8")
    monkeypatch.setattr(collection, "_PLACES", (folder,))
    out = tmp_path / "figures"
    ran = cli("lab", "figures", "--paper", "001", "--out", out)
    assert ran.code == 0
    assert "Figure 1" in ran.out
    assert {file.name for file in out.iterdir()} == {
        ".gapless-figures", "claims.csv", "index.html", "sweeps", "tiny.csv", "tiny.png", "tiny.svg",
    }  # fmt: skip
    claims = (out / "claims.csv").read_text(encoding="utf-8").splitlines()
    assert claims[1].startswith("tiny,001,Figure 1,It takes longer in a deeper tree,,0,,grows,")
    assert claims[1].endswith(",uncertain,Too few runs: at least 20 are needed for a verdict.")
    assert claims[2].startswith(
        "tiny,001,Figure 1,There and back,,0,,300.0,,300,0,,4,0.0000,0.05,uncertain,Too few runs"
    )
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "Does it work?" in page
    assert f"gapless lab run {folder / 'tiny.toml'} --out" in page
    assert f"gapless lab figures --paper 001 --out {out}" in page
    assert "Made on 2" in page
    assert "Experiments without results" not in page
    document = json.loads(cli("lab", "figures", "--out", out, "--json").out)
    assert document["experiments"][0]["figures"] == ["tiny"]
    assert cli("lab", "figures", "--paper", "002", "--out", tmp_path / "none").code == 0

    ran = cli("lab", "report", out, "--json")
    if find_library("pango-1.0") is None:
        assert (ran.code, "apt-get install libpango-1.0-0" in ran.err) == (64, True)
        return
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["missing"] == []
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF-")
    page = (out / "index.html").read_text(encoding="utf-8")
    for part in ("Abstract", "Method", "Threats to validity", "Environment"):
        assert f"{part}</h2>" in page
    assert "compares 2 statements of the papers" in page
    assert "<th>Seeds</th><td>tiny: 0 to 1</td>" in page


def test_a_report_names_the_experiments_without_runs(
    cli: Cli, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "experiments", tmp_path / "figures"
    folder.mkdir()
    text = Path(tiny().file).read_text(encoding="utf-8")
    (folder / "one.toml").write_text(f'paper = "001"\n{text}', encoding="utf-8")
    monkeypatch.setattr(collection, "_PLACES", (folder,))
    monkeypatch.setattr(Gallery, "write_pdf", lambda gallery: out / "report.pdf")
    assert cli("lab", "report", out).code == 64
    assert cli("lab", "figures", "--paper", "002", "--out", out).code == 0
    ran = cli("lab", "report", out)
    assert ran.code == 0
    assert "without one: no finished runs" in ran.out
    assert "Experiments without results: one" in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_interrupted_command_leaves_a_report_and_can_continue(
    cli: Cli, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = tmp_path / "experiments", tmp_path / "figures"
    folder.mkdir()
    text = Path(tiny().file).read_text(encoding="utf-8")
    for name in ("one", "two"):
        (folder / f"{name}.toml").write_text(f'paper = "001"\n{text}', encoding="utf-8")
    monkeypatch.setattr(collection, "_PLACES", (folder,))
    make = Gallery.make

    def make_one(gallery: Gallery, experiment: Experiment, *rest: Any, **further: Any) -> Any:
        if experiment.name == "two":
            raise GaplessError("somebody pulled the plug")
        return make(gallery, experiment, *rest, **further)

    with monkeypatch.context() as patched:
        patched.setattr(Gallery, "make", make_one)
        assert cli("lab", "figures", "--quick", "--out", out).code != 0
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "Experiments without results: two" in page
    assert 'id="one"' in page
    document = json.loads(cli("lab", "figures", "--quick", "--out", out, "--json").out)
    assert [found["experiment"] for found in document["experiments"]] == ["one", "two"]
    assert "Experiments without results" not in (out / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("lab", "run", "nothing.toml", "--out", "out"), "nothing.toml: cannot be read"),
        (("lab", "run", "BAD", "--out", "out"), "there is no protocol 'gapples'; choose one of"),
        (("lab", "run", "TINY"), "the option --out is missing"),
        (("lab", "run", "TINY", "--out", "out", "--master", "nonsense"), "unknown master 'nonsense'"),
        (("lab", "run", "TINY", "--out", "out", "--master", "spark://127.0.0.1:1"), "Spark does not answer at spark:"),
        (("lab", "run", "TINY", "--out", "out", "--remote", "127.0.0.1"), "is not an address of Spark Connect"),
        (("lab", "run", "TINY", "--out", "out", "--remote", "sc://127.0.0.1:1/;user_id=x"), "does not answer at sc://"),
        (("lab", "run", "TINY", "--out", "TINY"), "is a file; name a directory"),
        (("lab", "run", "TINY", "--out", "FULL"), "contains something other than a sweep"),
        (("lab", "figures", "--paper", "007", "--out", "out"), "there is no paper '007'"),
        (("lab", "figures", "--out", "FULL"), "contains something other than figures"),
        (("lab", "figures"), "Missing option"),
    ],
)
def test_bad_input_gives_one_line_and_does_not_start_java(
    cli: Cli, tiny: Tiny, tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").touch()
    bad = tmp_path / "bad.toml"
    bad.write_text(Path(tiny().file).read_text(encoding="utf-8").replace('"gapless"]', '"gapples"]'), encoding="utf-8")
    places = {"TINY": tiny().file, "BAD": str(bad), "FULL": str(full), "out": str(tmp_path / "out")}
    ran = cli(*(places.get(word, word) for word in words))
    assert (ran.code, ran.out) == (64, "")
    assert complaint in ran.err
    assert len([line for line in ran.err.splitlines() if not line.startswith("Try ")]) == 1
    assert "java" not in ran.err.lower()
    assert not (tmp_path / "out").exists()


def test_help_names_the_exit_codes(cli: Cli) -> None:
    assert "Usage: gapless lab" in cli("lab").out
    for command in ("run", "figures"):
        ran = cli("lab", command, "--help")
        assert ran.code == 0
        assert "64 bad" in " ".join(ran.out.split())
