"""The commands of `gapless sim`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.exit_codes import EPILOG
from gapless.cli.shared_options import PATH, NumberRange, json_option, seed_in_range, seed_option

__all__ = ["sim"]

sim = CommandGroup(
    epilog=EPILOG,
    help="Run scenarios in virtual time, and search for violations.\n\n"
    "Start with:  gapless demo --toml > shop.toml; gapless sim run shop.toml",
)

RUNS_MAX = 1_000_000_000
DELAYS_MAX = 100


def _delays_in_range(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    if text is None or text == "all" or (text.isdecimal() and int(text) <= DELAYS_MAX):
        return text
    raise click.BadParameter(f"{text!r} is not a number from 0 to {DELAYS_MAX}, or 'all'")


@sim.command("run", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=PATH, help="A scenario, in TOML.")
@seed_option
@click.option("--trace", metavar="DIR", type=PATH, help="Write the trace to this directory, as Parquet.")
@json_option
def sim_run(file: Path, seed: int | None, trace: Path | None, json: bool) -> int:
    """Run a scenario once and check its trace.

    Example:  gapless sim run examples/first.toml --trace out/first
    """
    from gapless.cli.sim_run import run_file

    return run_file(file, seed, trace, as_json=json)


@sim.command("search", epilog=EPILOG)
@click.option("--protocol", metavar="NAME", default="gapless", help="One of: gapless protocols.")
@click.option("--runs", type=click.IntRange(min=1, max=RUNS_MAX), default=1000, help="Number of seeds to try.")
@click.option("--first-seed", metavar="N", type=int, default=0, callback=seed_in_range, help="The first seed.")
@click.option(
    "--faults",
    metavar="KINDS",
    default="none",
    help="none, all (crash,cut,suspicion), or some of these and of in-flight,isolation,disk,blackout,partition,"
    "beyond-f,clock,delete,relink,loss,duplication.",
)
@click.option(
    "--f",
    metavar="N",
    type=click.IntRange(min=0, max=10),
    help="Number of neighbouring brokers that may fail; lower in small trees.",
)
@click.option(
    "--scale",
    metavar="SCALE",
    default="mixed",
    help="small, large (up to 40 brokers), long (every broker crashes and returns), mixed (one in ten large, "
    "one in ten long), graph (with cycles), or large-graph (a tree of 15 to 40 brokers with bypasses).",
)
@click.option("--option", metavar="KEY=VALUE", multiple=True, help="An option of the protocol; may be repeated.")
@click.option("--save", metavar="FILE", type=PATH, help="Save the reduced failing scenario in this file.")
@click.option(
    "--invariants/--no-invariants",
    default=True,
    help="Check the protocol's invariants after every step, which takes about twice as long.",
)
@click.option("--spark", is_flag=True, help="Try the seeds on Spark.")
@click.option("--master", metavar="URL", help="Spark's master, such as local[4].")
@click.option("--remote", metavar="URL", help="A Spark Connect server, as sc://host.")
@click.option(
    "--out", metavar="DIR", type=PATH, help="On Spark: store verdicts in this directory, and skip seeds that have one."
)
@click.option(
    "--schedule",
    metavar="KIND",
    default="latency",
    help="Order of deliveries: latency, or pct:D, random priorities of connections that change D - 1 times.",
)
@json_option
def sim_search(
    protocol: str,
    runs: int,
    first_seed: int,
    faults: str,
    f: int | None,
    scale: str,
    option: tuple[str, ...],
    save: Path | None,
    invariants: bool,
    spark: bool,
    master: str | None,
    remote: str | None,
    out: Path | None,
    schedule: str,
    json: bool,
) -> int:
    """Try random scenarios on all cores until one fails.

    A scenario fails if it breaks the guarantee. The first such scenario is reduced to a smaller one.

    Example:  gapless sim search --runs 200 --faults crash

    Example:  gapless sim search --runs 1000000 --spark --master spark://host:7077 --out out/search

    It prints each violation with the command that repeats it.
    """
    from gapless.cli.sim_search import search_seeds
    from gapless.cli.sim_search_spark import SparkChoice

    if (master or remote or out) and not spark:
        raise click.BadParameter("--master, --remote and --out are for a search on Spark: add --spark")
    choice = SparkChoice(master, remote, out) if spark else None
    return search_seeds(
        protocol, runs, first_seed, faults, f, scale, option, save, invariants=invariants, schedule=schedule,
        as_json=json, spark=choice,
    )  # fmt: skip


@sim.command("explore", epilog=EPILOG)
@click.argument("file", metavar="SCENARIO", type=PATH, help="A small scenario, in TOML, or a saved schedule.")
@click.option(
    "--delays",
    metavar="N",
    callback=_delays_in_range,
    help="How often a schedule may delay a connection; all: every order. Default: as in the file.",
)
@click.option(
    "--ticks", metavar="N", type=click.IntRange(min=0, max=1000), help="Number of timers that fire before the end."
)
@click.option("--seconds", metavar="S", type=NumberRange(min=0.1), default=60.0, help="Time limit.")
@click.option("--save", metavar="FILE", type=PATH, help="Save the first violating schedule in this file.")
@json_option
def sim_explore(
    file: Path, delays: str | None, ticks: int | None, seconds: float, save: Path | None, json: bool
) -> int:
    """Try all schedules of a small scenario.

    A schedule is an order of deliveries, timers, calls and faults within bounds.

    Example:  gapless sim explore small.toml --delays 1

    The exit code is 0 if the bounds were reached without a violation, and 2 if there was no time to reach them.
    """
    from gapless.cli.sim_explore import explore_file

    return explore_file(file, delays, ticks, seconds, save, as_json=json)


@sim.command("compare", epilog=EPILOG)
@click.argument("file", metavar="SCENARIO", type=PATH, help="A scenario, in TOML.")
@click.option("--protocols", "names", metavar="NAMES", help="Protocols, separated by commas (default: all).")
@seed_option
@json_option
def sim_compare(file: Path, names: str | None, seed: int | None, json: bool) -> int:
    """Compare the guarantees and costs of several protocols.

    Example:  gapless sim compare examples/promises.toml

    Example:  gapless sim compare examples/loss.toml --protocols gryphon,epidemic

    Options in the file are for the protocol that it names. A protocol that cannot run the scenario is listed with the
    reason.

    The exit code is 0 if all the others kept their guarantees.
    """
    from gapless.cli.sim_compare import compare_protocols

    return compare_protocols(file, names, seed, as_json=json)
