"""The commands of `gapless sim`."""

from pathlib import Path
from typing import Annotated

import typer

from gapless.cli.exit_codes import EPILOG
from gapless.cli.shared_options import Json, Seed, help_without_command, seed_in_range

__all__ = ["sim"]

sim = typer.Typer(
    help="Run a scenario in virtual time, or search thousands for a violation.\n\n"
    "Start with:  [bold]gapless demo --toml > shop.toml; gapless sim run shop.toml[/bold]"
)

RUNS_MAX = 1_000_000_000
DELAYS_MAX = 100


def _delays_in_range(text: str | None) -> str | None:
    if text is None or text == "all" or (text.isdecimal() and int(text) <= DELAYS_MAX):
        return text
    raise typer.BadParameter(f"{text!r} is not a number from 0 to {DELAYS_MAX}, or 'all'")


@sim.callback(invoke_without_command=True)
def _sim(context: typer.Context) -> None:
    help_without_command(context)


@sim.command("run", epilog=EPILOG)
def sim_run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario, in TOML.")],
    seed: Seed = None,
    trace: Annotated[Path | None, typer.Option(metavar="DIR", help="Write the trace here, as Parquet.")] = None,
    json: Json = False,
) -> int:
    """Run a scenario once and check its trace.

    Example:  [bold]gapless sim run examples/first.toml --trace out/first[/bold]
    """
    from gapless.cli.sim_run import run_file

    return run_file(file, seed, trace, as_json=json)


@sim.command("search", epilog=EPILOG)
def sim_search(
    protocol: Annotated[str, typer.Option(metavar="NAME", help="One of: gapless protocols.")] = "gapless",
    runs: Annotated[int, typer.Option(min=1, max=RUNS_MAX, help="How many seeds to try.")] = 1000,
    first_seed: Annotated[int, typer.Option(metavar="N", callback=seed_in_range, help="The first seed.")] = 0,
    faults: Annotated[
        str,
        typer.Option(
            metavar="KINDS",
            help="none, all (crash,cut,suspicion), or some of these and of in-flight,isolation,disk,blackout,partition,"
            "beyond-f,clock,delete,relink,loss,duplication.",
        ),
    ] = "none",
    f: Annotated[
        int | None,
        typer.Option(
            "--f", min=0, max=10, metavar="N", help="How many neighbouring brokers may fail; less in trees too small."
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="SCALE",
            help="small, large (up to 40 brokers), long (every broker crashes and returns), mixed (one in ten large, "
            "one in ten long), graph (with cycles), or large-graph (a tree of 15 to 40 brokers with bypasses).",
        ),
    ] = "mixed",
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the protocol; may be repeated.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the smallest failing scenario here.")
    ] = None,
    invariants: Annotated[
        bool, typer.Option(help="Check the protocol's invariants after every step, which takes about twice as long.")
    ] = True,
    spark: Annotated[bool, typer.Option("--spark", help="Let workers of Spark try the seeds.")] = False,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Spark's master, such as local[4].")] = None,
    remote: Annotated[str | None, typer.Option(metavar="URL", help="A Spark Connect server, as sc://host.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="On Spark: keep verdicts here; do not try a seed twice.")
    ] = None,
    schedule: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Order of deliveries: latency, or pct:D, random priorities of connections that change D - 1 times.",
        ),
    ] = "latency",
    json: Json = False,
) -> int:  # fmt: skip
    """Try random scenarios on all cores until one breaks the guarantee; then reduce it.

    Example:  [bold]gapless sim search --runs 200 --faults crash[/bold]

    Example:  [bold]gapless sim search --runs 1000000 --spark --master spark://host:7077 --out out/search[/bold]

    It prints each violation with the command that repeats it.
    """
    from gapless.cli.sim_search import search_seeds
    from gapless.cli.sim_search_spark import SparkChoice

    if (master or remote or out) and not spark:
        raise typer.BadParameter("--master, --remote and --out are for a search on Spark: add --spark")
    choice = SparkChoice(master, remote, out) if spark else None
    return search_seeds(
        protocol, runs, first_seed, faults, f, scale, option or [], save, invariants=invariants, schedule=schedule,
        as_json=json, spark=choice,
    )  # fmt: skip


@sim.command("explore", epilog=EPILOG)
def sim_explore(
    file: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A small scenario, in TOML, or a saved schedule.")],
    delays: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            callback=_delays_in_range,
            help="How often a schedule may hold a connection back; [bold]all[/bold]: every order. Default: the file's.",
        ),
    ] = None,
    ticks: Annotated[
        int | None, typer.Option(min=0, max=1000, metavar="N", help="How many timers fire before the end.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, metavar="S", help="When to give up.")] = 60.0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the first violating schedule here.")
    ] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Try all schedules of a small scenario: every order of deliveries, timers, calls and faults within bounds.

    Example:  [bold]gapless sim explore small.toml --delays 1[/bold]

    The exit code is 0 if the bounds were reached without a violation, and 2 if there was no time to reach them.
    """
    from gapless.cli.sim_explore import explore_file

    return explore_file(file, delays, ticks, seconds, save, as_json=json)


@sim.command("compare", epilog=EPILOG)
def sim_compare(
    file: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario, in TOML.")],
    names: Annotated[
        str | None, typer.Option("--protocols", metavar="NAMES", help="Some of them, with commas between; else all.")
    ] = None,
    seed: Seed = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Run several protocols on the same scenario, and compare their guarantees and costs.

    Example:  [bold]gapless sim compare examples/promises.toml[/bold]

    Example:  [bold]gapless sim compare examples/loss.toml --protocols gryphon,epidemic[/bold]

    Options in the file are for the protocol that it names. A protocol that cannot run the scenario is listed with the
    reason.

    The exit code is 0 if all the others kept their guarantees.
    """
    from gapless.cli.sim_compare import compare_protocols

    return compare_protocols(file, names, seed, as_json=json)
