"""The implementation of `gapless lab`: sweeps of experiments, and the figures of the papers."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import INVALID, VALID
from gapless.cli.terminal import output_console, print_json, progress_bars
from gapless.errors import ExperimentError
from gapless_papers.lab.collection import experiments_of_papers
from gapless_papers.lab.conduct import conduct
from gapless_papers.lab.experiment_file import load_experiment
from gapless_papers.lab.grid import cases_of
from gapless_papers.lab.process_pool import ProcessPool
from gapless_papers.lab.store import Store
from gapless_papers.lab.sweep import Pool, run_sweep

__all__ = ["make_figures", "make_report", "run_case", "run_experiment"]

FAILURES_SHOWN_MAX = 5

Tell = Callable[[Any], None]


def run_experiment(file: Path, out: Path, *, master: str | None, remote: str | None, quick: bool, as_json: bool) -> int:
    """Run every case that has no result yet, and print a summary."""
    experiment = load_experiment(file)
    cases = cases_of(experiment, quick=quick)
    store = Store(out)
    with _pool(master, remote) as pool, store.open(experiment.name), _progress_bar(hidden=as_json) as bar:
        report = run_sweep(experiment, cases, store, pool, quick=quick, on_progress=bar(experiment.name, len(cases)))
    if as_json:
        print_json({"out": str(out), "experiment": experiment.file, "quick": quick, "report": report})
    else:
        _show_sweep(report, out, with_trace=experiment.trace)
    return INVALID if report.failures else VALID


def run_case(file: Path, name: str, *, quick: bool, as_json: bool) -> int:
    """Run one case in this process and print its measurements. Exceptions propagate unchanged."""
    cases = {case.name: case for case in cases_of(load_experiment(file), quick=quick)}
    if name not in cases:
        raise ExperimentError(f"{file} has no run {name!r}; one of its {len(cases):,} is {next(iter(cases))!r}")
    metrics, _ = conduct(cases[name])
    if as_json:
        print_json({"run": name, "metrics": [metric._asdict() for metric in metrics]})
        return VALID
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for heading in ("metric", "subject", "value"):
        table.add_column(heading, justify="right" if heading == "value" else "left")
    for metric in metrics:
        table.add_row(metric.metric, metric.subject, f"{metric.value:,.10g}")
    output_console().print(table)
    return VALID


def make_figures(
    papers: list[str], out: Path, *, master: str | None, remote: str | None, quick: bool, as_json: bool
) -> int:
    """Run the missing cases, draw all figures, and write the report."""
    from gapless_papers.lab.figures.gallery import Gallery, chapters_json  # Matplotlib is slow to import

    experiments = experiments_of_papers(papers)
    gallery = Gallery(out, quick=quick)
    chapters, reports = [], []
    with _pool(master, remote) as pool, _progress_bar(hidden=as_json) as bar:
        gallery.open()
        for number, experiment in enumerate(experiments, start=1):
            chapter, report = gallery.make(experiment, pool, bar(experiment.name, None))
            chapters.append(chapter)
            reports.append(report)
            missing = [later.name for later in experiments[number:]]
            page = gallery.write_report(chapters, _figures_line(papers, out, quick), missing)
    if not chapters:
        page = gallery.write_report([], _figures_line(papers, out, quick))
    if as_json:
        print_json({"out": str(out), "report": str(page), "quick": quick, "experiments": chapters_json(chapters)})
    else:
        _show_chapters(chapters, reports, page)
    return INVALID if any(report.failures for report in reports) else VALID


def make_report(papers: list[str], directory: Path, *, quick: bool, as_json: bool) -> int:
    """Write `index.html` and `report.pdf` from the runs in the directory."""
    from gapless_papers.lab.figures.gallery import Gallery  # Matplotlib is slow to import

    experiments = experiments_of_papers(papers)
    gallery = Gallery(directory, quick=quick)
    if not directory.is_dir():
        raise ExperimentError(
            f"{directory} is not a directory of figures; create one with {_figures_line([], directory, quick)}"
        )
    gallery.open()
    found = {experiment.name: gallery.read(experiment) for experiment in experiments}
    chapters = [chapter for chapter in found.values() if chapter is not None]
    missing = [name for name, chapter in found.items() if chapter is None]
    page = gallery.write_report(chapters, _figures_line(papers, directory, quick), missing)
    document = gallery.write_pdf()
    if as_json:
        print_json({"report": str(page), "pdf": str(document), "experiments": len(chapters), "missing": missing})
    else:
        console = output_console()
        console.print(Text(f"report  {page}"), soft_wrap=True)
        console.print(Text(f"pdf     {document}"), soft_wrap=True)
        if missing:
            console.print(Text(f"without {', '.join(missing)}: no finished runs", "yellow"), soft_wrap=True)
    return VALID


def _figures_line(papers: list[str], out: Path, quick: bool) -> str:
    line = ["gapless", "lab", "figures"]
    for paper in papers:
        line += ["--paper", paper]
    return shlex.join([*line, *(["--quick"] if quick else []), "--out", str(out)])


@contextmanager
def _pool(master: str | None, remote: str | None) -> Iterator[Pool]:
    """Return a pool of local processes, or the named cluster."""
    if master is None and remote is None:
        yield ProcessPool()
        return
    from gapless_spark.task_pool import SparkPool

    with SparkPool(master, remote) as pool:
        yield pool


# ---- while it runs ----------------------------------------------------------------------------------------------


@contextmanager
def _progress_bar(*, hidden: bool) -> Iterator[Callable[[str, int | None], Tell]]:
    """Yield a function that creates one progress bar for each sweep."""
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}", style="red"),
    )  # fmt: skip
    with progress_bars(*columns, hidden=hidden) as progress:

        def bar(name: str, total: int | None) -> Tell:
            task = progress.add_task(name, total=total, note="")

            def report_progress(now: Any) -> None:
                note = f"{now.failed} failed" if now.failed else ""
                progress.update(task, completed=now.done + now.failed, total=now.total, note=note)

            return report_progress

        yield bar


# ---- when it is over --------------------------------------------------------------------------------------------


def _show_sweep(report: Any, out: Path, *, with_trace: bool) -> None:
    console = output_console()
    done = report.runs - len(report.failures)
    word, style = ("FAILED", "bold red") if report.failures else ("DONE", "bold green")
    before = f", {report.found:,} of them finished before" if report.found else ""
    console.print(Text.assemble((word, style), f"  {report.experiment}: {done:,} of {report.runs:,} runs{before}"))
    console.print(Text(f"took    {report.seconds:.1f} s; the runs alone {report.run_seconds:.1f} s", "dim"))
    console.print(Text(f"metrics {out / 'metrics'}", "dim"), soft_wrap=True)
    if with_trace:
        console.print(Text(f"trace   {out / 'trace'}   (gapless audit {out / 'trace'})", "dim"), soft_wrap=True)
    _show_failures(report)


def _show_failures(report: Any) -> None:
    console = output_console()
    for failure in report.failures[:FAILURES_SHOWN_MAX]:
        console.print(Text.assemble(("\nfailed  ", "red"), failure.run), soft_wrap=True)
        console.print(Text(f"why     {failure.reason}"), soft_wrap=True)
        console.print(Text(f"repeat  {failure.repeat}", "cyan"), soft_wrap=True)
    more = len(report.failures) - FAILURES_SHOWN_MAX
    if more > 0:
        console.print(Text(f"\nand {more:,} more: see failures.json next to the runs", "red"))


def _show_chapters(chapters: Any, reports: Any, page: Path) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for heading in ("experiment", "where", "runs", "seconds", "agree", "differ", "cannot tell"):
        table.add_column(heading, justify="left" if heading in ("experiment", "where") else "right")
    for chapter, report in zip(chapters, reports, strict=True):
        counts = Counter(judgement.verdict for judgement in chapter.judgements)
        differ = Text(str(counts["differs"]), "yellow" if counts["differs"] else "")
        table.add_row(
            chapter.experiment.name, chapter.experiment.place, f"{chapter.runs:,}", f"{report.seconds:.0f}",
            str(counts["agrees"]), differ, str(counts["uncertain"]),
        )  # fmt: skip
    console = output_console()
    console.print(table)
    for report in reports:
        _show_failures(report)
    console.print(Text(f"report  {page}", "dim"), soft_wrap=True)
