"""Numbers of experiments in the documents are the stored ones."""

import csv
import re
from pathlib import Path

import pytest
from docs.results import RESULTS, pages, store, with_numbers

from gapless_papers.lab.experiment_file import load_experiment

EXPERIMENTS = RESULTS.parent


@pytest.mark.parametrize("page", list(pages()), ids=lambda page: page.name)
def test_the_document_shows_the_stored_numbers(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_numbers(text) == text, "run: python -m docs.results"


def test_every_stored_result_is_of_an_experiment_and_is_shown() -> None:
    shown = {name for page in pages() for name in re.findall(r"<!-- numbers: ([\w-]+) -->", page.read_text("utf-8"))}
    stored = {file.stem for file in RESULTS.iterdir()}
    assert stored
    assert stored == shown - {"runs"}


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.csv")), ids=lambda file: file.stem)
def test_stored_results_are_of_the_claims_as_they_are_now(file: Path) -> None:
    claims = load_experiment(EXPERIMENTS / f"{file.stem}.toml").claims
    with file.open(encoding="utf-8", newline="") as rows:
        said = [(row["says"], row["paper_value"]) for row in csv.DictReader(rows)]
    assert said == [(claim.says, str(claim.shape if claim.paper is None else claim.paper)) for claim in claims]


def test_results_are_stored_by_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = tmp_path / "claims.csv"
    claims.write_text("experiment,says\none,a\ntwo,b\none,c\n", encoding="utf-8")
    monkeypatch.setattr("docs.results.RESULTS", tmp_path / "results")
    assert [file.name for file in store(claims)] == ["one.csv", "two.csv"]
    assert (tmp_path / "results" / "one.csv").read_text(encoding="utf-8") == "experiment,says\none,a\none,c\n"
