"""Makes the figures of experiments: runs the missing cases, draws, compares, and writes the report.

| in the directory | |
| --- | --- |
| `index.html`, `report.pdf` | the report, self-contained; the PDF is written by `gapless lab report` |
| `NAME.svg`, `NAME.png`, `NAME.csv` | each figure |
| `claims.csv` | every claim of the papers, next to our result |
| `sweeps/EXPERIMENT` | the runs, so that they need not be repeated |
"""

import csv
import io
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import gapless
from gapless.errors import ExperimentError
from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.figures.claims import Judgement, judge_claim, paper_half_width
from gapless_papers.lab.figures.data import Runs
from gapless_papers.lab.figures.front_matter import environment_of_this_machine
from gapless_papers.lab.figures.pictures import picture_of, save_picture
from gapless_papers.lab.figures.report import Chapter, Origin, Shown, report_html, too_few
from gapless_papers.lab.figures.tables import csv_text, table_of
from gapless_papers.lab.grid import cases_of, code_version
from gapless_papers.lab.store import Store
from gapless_papers.lab.sweep import Pool, Progress, SweepReport, run_sweep

__all__ = ["Gallery"]

_MARKER = ".gapless-figures"
_CLAIM_HEADINGS = (
    "experiment", "paper", "place", "says", "read_as", "free_choices", "unit", "paper_value",
    "paper_half_width", "ours", "half_width", "standard_deviation", "runs", "off_by", "tolerance", "verdict", "why",
)  # fmt: skip
_GLANCE = "A glance: small networks and few runs, so that only shapes are compared, and not the papers' numbers."


class Gallery:
    """The directory of the figures."""

    def __init__(self, directory: Path, *, quick: bool) -> None:
        self._directory = directory
        self._quick = quick

    def open(self) -> None:
        """Create the directory if needed; raise an error if it contains something else."""
        marker = self._directory / _MARKER
        if self._directory.exists() and not self._directory.is_dir():
            raise ExperimentError(f"{self._directory} is a file; name a directory for the figures")
        if self._directory.exists() and any(self._directory.iterdir()) and not marker.exists():
            first = min(entry.name for entry in self._directory.iterdir())
            raise ExperimentError(
                f"{self._directory} contains something other than figures ({first}); choose another directory"
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        marker.touch()

    def make(
        self, experiment: Experiment, pool: Pool,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> tuple[Chapter, SweepReport]:  # fmt: skip
        """Run the missing cases of an experiment, and draw its figures."""
        cases = cases_of(experiment, quick=self._quick)
        store = Store(self._directory / "sweeps" / experiment.name)
        with store.open(experiment.name):
            report = run_sweep(experiment, cases, store, pool, quick=self._quick, on_progress=on_progress)
            store.forget_others(case.key() for quick in (False, True) for case in cases_of(experiment, quick=quick))
            runs = Runs.of(*store.read())
        return self._chapter(experiment, runs, len(report.failures)), report

    def read(self, experiment: Experiment) -> Chapter | None:
        """Return the chapter of an experiment from the stored runs; None if its sweep never finished."""
        store = Store(self._directory / "sweeps" / experiment.name)
        if not store.has_tables():
            return None
        with store.open(experiment.name):
            return self._chapter(experiment, Runs.of(*store.read()), store.failed())

    def _chapter(self, experiment: Experiment, runs: Runs, failed: int) -> Chapter:
        return Chapter(
            experiment=experiment, runs=len(runs), pictures=tuple(self._pictures(experiment, runs)),
            judgements=tuple(self._judgements(experiment, runs)),
            failed=failed, repeat=self._repeat_line(experiment),
        )  # fmt: skip

    def _judgements(self, experiment: Experiment, runs: Runs) -> Iterator[Judgement]:
        for claim in experiment.claims:
            reading = experiment.interpretations.get(claim.interpretation)
            yield judge_claim(claim, runs, quick=self._quick, exact=reading is not None and reading.exact)

    def write_pdf(self) -> Path:
        """Write the report as a PDF next to its HTML page, and return the path."""
        from gapless_papers.lab.figures.pdf import write_pdf  # it loads Pango, which few commands need

        return write_pdf(self._directory / "index.html", self._directory / "report.pdf")

    def write_report(self, chapters: Sequence[Chapter], repeat: str, missing: Sequence[str] = ()) -> Path:
        """Write the report on all finished experiments, so that an interrupted command leaves a usable report."""
        scale = _GLANCE if self._quick else "At the scale of the papers, where a picture does not say otherwise."
        page = self._directory / "index.html"
        text = report_html(chapters, scale=scale, repeat=repeat, origin=origin_of_now(), missing=missing)
        _write_whole(page, text)
        _write_whole(self._directory / "claims.csv", _claims_csv(chapters))
        return page

    def _pictures(self, experiment: Experiment, runs: Runs) -> Iterator[Shown]:
        for number, spec in enumerate(experiment.figures):
            name = spec.name or (experiment.name if number == 0 else f"{experiment.name}-{number + 1}")
            table = table_of(spec, runs)
            if not table.series:
                continue
            _write_whole(self._directory / f"{name}.csv", csv_text(table))
            title = spec.title or experiment.title
            svg = save_picture(
                picture_of(table, title, () if self._quick else experiment.claims), self._directory / name
            )
            yield Shown(name, title, svg)

    def _repeat_line(self, experiment: Experiment) -> str:
        line = ["gapless", "lab", "run", experiment.file, "--out", str(self._directory / "sweeps" / experiment.name)]
        return shlex.join([*line, "--quick"] if self._quick else line)


def origin_of_now() -> Origin:
    """Return the origin of a report that is made now."""
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Origin(
        date, gapless.__version__, _commit(Path(gapless.__file__).parent), code_version(), environment_of_this_machine()
    )


def _commit(folder: Path) -> str:
    """Return the commit of the checkout that contains the code, marked if the code has uncommitted changes."""
    try:
        words = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        found = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def _claims_csv(chapters: Sequence[Chapter]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CLAIM_HEADINGS)
    for chapter in chapters:
        experiment = chapter.experiment
        for judgement in chapter.judgements:
            claim = judgement.claim
            place = claim.place or experiment.place
            sense = experiment.interpretations.get(claim.interpretation)
            free = 0 if sense is None else sense.free
            start = [
                experiment.name,
                experiment.paper,
                place,
                claim.says,
                claim.interpretation,
                free,
                claim.unit.strip(),
            ]
            writer.writerow([*start, *_claim_cells(judgement)])
    return text.getvalue()


def _claim_cells(judgement: Judgement) -> list[object]:
    claim, ours = judgement.claim, judgement.ours
    runs = judgement.runs or ""
    numbers: list[object] = ["", "", "", runs]
    if ours is not None:
        half = "" if ours.half_width is None else f"{ours.half_width:.3g}"
        numbers = [f"{ours.mean:.6g}", half, f"{ours.deviation:.3g}" if ours.deviation else "", runs]
    elif judgement.lines:
        spans = [f"{name}: {means[0]:.6g} to {means[-1]:.6g}".lstrip(": ") for name, means in judgement.lines]
        numbers = ["; ".join(spans), "", "", runs]
    said = claim.shape if claim.paper is None else claim.paper
    deviation = "" if judgement.deviation is None else f"{judgement.deviation:.4f}"
    why = too_few(judgement) + claim.why if judgement.verdict in ("differs", "uncertain") else ""
    paper_half = f"{paper_half_width(claim):.3g}" if claim.paper_runs else ""
    tolerance = "" if claim.paper is None else claim.noise
    return [said, paper_half, *numbers, deviation, tolerance, judgement.verdict, why.strip()]


def _write_whole(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.partial")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)


def chapters_json(chapters: Sequence[Chapter]) -> list[dict[str, object]]:
    """Return the chapters as JSON, for machines."""
    return [
        {
            "experiment": chapter.experiment.name,
            "paper": chapter.experiment.paper,
            "runs": chapter.runs,
            "failed": chapter.failed,
            "figures": [picture.name for picture in chapter.pictures],
            "claims": [
                {**msgspec.to_builtins(judgement), "claim": judgement.claim.says, "paper": judgement.claim.paper}
                for judgement in chapter.judgements
            ],
        }
        for chapter in chapters
    ]
