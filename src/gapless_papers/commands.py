"""The subcommands of `gapless lab`."""

from pathlib import Path
from typing import Annotated

import typer

from gapless.cli.shared_options import Json, help_without_command

__all__ = ["lab"]

EPILOG = "Exit codes: 0 all runs are done, 1 some failed, 64 bad input, 70 a bug in Gapless, 130 interrupted."

lab = typer.Typer(
    help="Run experiments, and draw the figures of the papers.\n\n"
    "Start with:  [bold]gapless lab figures --paper 001 --quick --out out/figures[/bold]",
    epilog=EPILOG, add_completion=False,
)  # fmt: skip

Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on this cluster of Spark, such as spark://host:7077; else on this machine."),
]
Remote = Annotated[str | None, typer.Option(metavar="URL", help="Run by Spark Connect, such as sc://host:15002.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small networks and few runs: a glance.")]


@lab.callback(invoke_without_command=True)
def _lab(context: typer.Context) -> None:
    help_without_command(context)


@lab.command("run", epilog=EPILOG)
def lab_run(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT", help="An experiment, in TOML.")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where the results go.")] = None,
    master: Master = None,
    remote: Remote = None,
    quick: Quick = False,
    only: Annotated[
        str | None, typer.Option(metavar="RUN", help="Run just this one, here and without Spark, and show it.")
    ] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Run an experiment's whole grid, on all cores or on a cluster. Runs that exist already are not repeated.

    Example:  [bold]gapless lab run experiments/001-fig5a.toml --quick --out out/fig5a[/bold]
    """
    from gapless_papers.lab.command import run_case, run_experiment

    if only is not None:
        return run_case(experiment, only, quick=quick, as_json=json)
    if out is None:
        raise typer.BadParameter("say where the results shall go", param_hint="--out")
    return run_experiment(experiment, out, master=master, remote=remote, quick=quick, as_json=json)


@lab.command("figures", epilog=EPILOG)
def lab_figures(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figures and the report go.")],
    paper: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER", help="001, 002, 003 or 004; may be repeated; else all.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    quick: Quick = False,
    json: Json = False,
) -> int:  # fmt: skip
    """Repeat the papers' measurements and compare the results: pictures, tables, and one report.

    Example:  [bold]gapless lab figures --paper 001 --quick --out out/figures[/bold]
    """
    from gapless_papers.lab.command import make_figures

    return make_figures(paper or [], out, master=master, remote=remote, quick=quick, as_json=json)


@lab.command("report", epilog=EPILOG)
def lab_report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of `gapless lab figures --out`.")],
    paper: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER", help="001, 002, 003 or 004; may be repeated; else all.")
    ] = None,
    quick: Quick = False,
    json: Json = False,
) -> int:  # fmt: skip
    """Write the report as one HTML page and one PDF, from the runs in a directory of figures. Runs nothing.

    Example:  [bold]gapless lab report out/figures --quick[/bold]
    """
    from gapless_papers.lab.command import make_report

    return make_report(paper or [], directory, quick=quick, as_json=json)
