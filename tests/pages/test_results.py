"""Numbers of experiments in the documents are the stored ones."""

import csv
from pathlib import Path

import pytest
from docs.results import BLOCK, IMAGES, RESULTS, figures, pages, shown, store, with_numbers

from gapless_papers.lab.experiment_file import load_experiment

EXPERIMENTS = RESULTS.parent


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.name)
def test_the_document_shows_the_stored_numbers(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_numbers(text) == text, "run: python -m docs.results"


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.name)
def test_numbers_with_an_interval_stand_in_generated_tables_only(page: Path) -> None:
    assert "±" not in BLOCK.sub("", page.read_text(encoding="utf-8"))


def test_every_stored_result_is_of_an_experiment_and_is_shown() -> None:
    named = {name for page in pages() for name in shown(page.read_text("utf-8"))}
    stored = {str(file.relative_to(RESULTS).with_suffix("")) for file in RESULTS.rglob("*.*")}
    assert stored
    assert stored == named


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.csv")), ids=lambda file: file.stem)
def test_stored_results_are_of_the_claims_as_they_are_now(file: Path) -> None:
    claims = load_experiment(EXPERIMENTS / f"{file.stem}.toml").claims
    with file.open(encoding="utf-8", newline="") as rows:
        said = [(row["says"], row["paper_value"]) for row in csv.DictReader(rows)]
    assert said == [(claim.says, str(claim.shape if claim.paper is None else claim.paper)) for claim in claims]


@pytest.mark.parametrize("name", sorted(figures().keys() & {file.stem for file in IMAGES.glob("*.svg")}))
def test_pictures_of_figures_have_the_texts_of_their_experiment(name: str) -> None:
    """Matplotlib writes each text as a path, after a comment with the text."""
    picture, spec = (IMAGES / f"{name}.svg").read_text(encoding="utf-8"), figures()[name]
    for text in (spec.title, spec.x_label, spec.y_label):
        assert f"<!-- {text} -->" in picture, "run: python -m docs.results DIR/claims.csv"


def test_lines_show_their_first_and_last_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "003-fig8-fanout3.csv").write_text(
        "delta,failed,mean,standard_deviation,half_width_95,runs\n0,10,1.5,1,0.5,20\n0,250,90.66,1,0.51,20\n",
        encoding="utf-8",
    )
    monkeypatch.setattr("docs.results.RESULTS", tmp_path)
    table = with_numbers("<!-- numbers: lines 003-fig8-fanout3 -->\n<!-- end of numbers -->\n")
    assert "failed brokers 10 → 250; 20 runs" in table
    assert "| δ = 0 | 1.50 ± 0.50 → 90.66 ± 0.51 |" in table
    two = with_numbers("<!-- numbers: lines 003-fig8-fanout3 003-fig8-fanout3 -->\n<!-- end of numbers -->\n")
    assert "|  | δ = 0 |\n" in two
    assert two.count("| 1.50 ± 0.50 → 90.66 ± 0.51 |") == 2


def test_results_are_stored_by_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = tmp_path / "claims.csv"
    claims.write_text("experiment,says\none,a\ntwo,b\none,c\n", encoding="utf-8")
    monkeypatch.setattr("docs.results.RESULTS", tmp_path / "results")
    assert [file.name for file in store(claims)] == ["one.csv", "two.csv"]
    assert (tmp_path / "results" / "one.csv").read_text(encoding="utf-8") == "experiment,says\none,a\none,c\n"
