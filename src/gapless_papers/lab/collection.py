"""Finds the experiment files that ship with Gapless, one set for each paper."""

import re
from pathlib import Path

import gapless_papers
from gapless.errors import ExperimentError
from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.experiment_file import load_experiment
from gapless_papers.lab.figures.papers import PAPERS

__all__ = ["experiments_of_papers"]

_PLACES = (
    Path(gapless_papers.__file__).parent / "experiments",
    Path(gapless_papers.__file__).parents[2] / "experiments",
)
"""Where the experiment files are in an installed package, and in a checkout."""


def experiments_of_papers(papers: list[str]) -> list[Experiment]:
    """Return all experiments of these papers (or of every paper), with Figure 9 before Figure 10."""
    for paper in papers:
        if paper not in PAPERS:
            raise ExperimentError(f"there is no paper {paper!r}; the papers are: {', '.join(PAPERS)}")
    folder = next((place for place in _PLACES if place.is_dir()), None)
    if folder is None:
        raise ExperimentError(f"the experiments are missing: {_PLACES[-1]} is not a directory")
    found = [load_experiment(_shown(file)) for file in sorted(folder.glob("*.toml"), key=_by_number)]
    return [experiment for experiment in found if experiment.paper in (papers or PAPERS)]


def _by_number(file: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", file.stem)]


def _shown(file: Path) -> Path:
    """Return the path as a user would type it in the current directory."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file
