"""The subcommands of `gapless lab`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.shared_options import PATH, json_option

__all__ = ["lab"]

EPILOG = "Exit codes: 0 all runs finished, 1 some failed, 64 bad input, 70 a bug in Gapless, 130 interrupted."

lab = CommandGroup(
    "lab",
    epilog=EPILOG,
    help="Run experiments, and draw the figures of the papers.\n\n"
    "Start with:  gapless lab figures --paper 001 --quick --out out/figures",
)

master_option = click.option(
    "--master", metavar="URL", help="Run on this Spark cluster, such as spark://host:7077 (default: on this machine)."
)
remote_option = click.option("--remote", metavar="URL", help="Run with Spark Connect, such as sc://host:15002.")
quick_option = click.option("--quick", is_flag=True, help="Use small networks and few runs.")


@lab.command("run", epilog=EPILOG)
@click.argument("experiment", metavar="EXPERIMENT", type=PATH, help="An experiment, in TOML.")
@click.option("--out", metavar="DIR", type=PATH, help="The directory for the results.")
@master_option
@remote_option
@quick_option
@click.option("--only", metavar="RUN", help="Run only this case, in this process without Spark, and print its results.")
@json_option
def lab_run(
    experiment: Path,
    out: Path | None,
    master: str | None,
    remote: str | None,
    quick: bool,
    only: str | None,
    json: bool,
) -> int:
    """Run an experiment's whole grid, on all cores or on a cluster. Runs that exist already are not repeated.

    Example:  gapless lab run experiments/001-fig5a.toml --quick --out out/fig5a
    """
    from gapless_papers.lab.command import run_case, run_experiment

    if only is not None:
        return run_case(experiment, only, quick=quick, as_json=json)
    if out is None:
        raise click.BadParameter(
            "the option --out is missing: set it to a directory for the results", param_hint="--out"
        )
    return run_experiment(experiment, out, master=master, remote=remote, quick=quick, as_json=json)


@lab.command("figures", epilog=EPILOG)
@click.option("--out", metavar="DIR", type=PATH, required=True, help="The directory for the figures and the report.")
@click.option("--paper", metavar="NUMBER", multiple=True, help="001, 002, 003 or 004; may be repeated; else all.")
@master_option
@remote_option
@quick_option
@json_option
def lab_figures(
    out: Path, paper: tuple[str, ...], master: str | None, remote: str | None, quick: bool, json: bool
) -> int:
    """Repeat the measurements of the papers, and compare.

    The results are pictures, tables, and one report.

    Example:  gapless lab figures --paper 001 --quick --out out/figures
    """
    from gapless_papers.lab.command import make_figures

    return make_figures(list(paper), out, master=master, remote=remote, quick=quick, as_json=json)


@lab.command("report", epilog=EPILOG)
@click.argument("directory", metavar="DIR", type=PATH, help="The directory of `gapless lab figures --out`.")
@click.option("--paper", metavar="NUMBER", multiple=True, help="001, 002, 003 or 004; may be repeated; else all.")
@quick_option
@json_option
def lab_report(directory: Path, paper: tuple[str, ...], quick: bool, json: bool) -> int:
    """Write the report as an HTML page and a PDF, from the stored runs.

    Example:  gapless lab report out/figures --quick
    """
    from gapless_papers.lab.command import make_report

    return make_report(list(paper), directory, quick=quick, as_json=json)
