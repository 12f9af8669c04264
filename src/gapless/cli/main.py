"""The command line: commands, options, and the handling of errors.

Each command is a thin function here and imports its own module when it is called: `gapless --help`
loads neither the simulator nor Parquet. A command returns its exit code. `run` converts exceptions
to exit codes: an external error prints one line, a bug prints a traceback and asks for a report.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import click

from gapless.cli.command_group import CommandGroup, GroupWithExtensions
from gapless.cli.data_commands import data
from gapless.cli.exit_codes import BAD_INPUT, BUG, EPILOG, INTERRUPTED, NETWORK_EPILOG
from gapless.cli.extras import missing_extra
from gapless.cli.network_commands import broker, clients, doctor, networks, status, up
from gapless.cli.security_commands import security
from gapless.cli.shared_options import (
    PATH,
    NumberRange,
    credentials_option,
    json_option,
    local,
    seconds_option,
    url_option,
)
from gapless.cli.sim_commands import sim
from gapless.cli.subscription_commands import names
from gapless.errors import GaplessError
from gapless.printable import printable_lines

__all__ = ["app", "run"]


@click.group(
    cls=GroupWithExtensions,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(package_name="gapless", message="%(prog)s %(version)s")
def app() -> None:
    """Gapless: publish/subscribe in which a subscription has no gap and no effect comes before its cause.

    Start with:  gapless demo
    """


filters = CommandGroup(
    epilog=EPILOG, help='Explain filters.\n\nStart with:  gapless filter check "price < 10 AND NOT sold"'
)
traces = CommandGroup(
    epilog=NETWORK_EPILOG, help="Merge the traces of live networks.\n\nStart with:  gapless up --trace out/parts"
)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit the process."""
    raise SystemExit(_guarded(lambda: app(args=arguments, prog_name="gapless", standalone_mode=False)))


def _guarded(command: Callable[[], int | None]) -> int:
    try:
        return command() or 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        return _complain(error.format_message(), BAD_INPUT, _try_help(error))
    except GaplessError as error:
        return _complain(str(error), BAD_INPUT)
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except ModuleNotFoundError as error:
        sentence = missing_extra(error)
        return _complain(sentence, BAD_INPUT) if sentence else _report_bug(error)
    except Exception as error:
        return _report_bug(error)


def _complain(message: str, code: int, hint: str = "") -> int:
    text = f"gapless: {message}{hint}".encode(errors="backslashreplace").decode()  # arguments can be invalid text
    print(printable_lines(text), file=sys.stderr)
    return code


def _try_help(error: click.ClickException) -> str:
    """Return a hint to the command's help, for usage errors that name their command; otherwise an empty string."""
    context = getattr(error, "ctx", None)
    return f"\nTry '{context.command_path} --help'." if context is not None else ""


def _report_bug(error: Exception) -> int:
    # An error of a node crosses process boundaries, so it carries its own traceback.
    text = getattr(error, "traceback_text", "") or "".join(traceback.format_exception(error))
    print(text.rstrip(), file=sys.stderr)
    return _complain(
        f"{error or type(error).__name__}", BUG,
        "\nThis is a bug in Gapless. Please report the lines above, with the command and its input file;"
        "\nthe same command with the same seed repeats it.",
    )  # fmt: skip


# ---- top-level commands -------------------------------------------------------------------------------------


@app.command(epilog=EPILOG)
@click.option("--trace", metavar="DIR", type=PATH, help="Save the trace of the run in this directory.")
@click.option("--svg", metavar="FILE", type=PATH, help="Save the output as a picture (SVG).")
@click.option(
    "--simulated", is_flag=True, help="Run 15 simulated brokers in virtual time, without processes and Spark."
)
@click.option("--toml", is_flag=True, help="Print the scenario file of --simulated and exit.")
@json_option
def demo(trace: Path | None, svg: Path | None, simulated: bool, toml: bool, json: bool) -> int:
    """Start 7 brokers, kill one under load, and check the run.

    Example:  gapless demo --trace out/demo; gapless check out/demo

    In virtual time, the scenario is a file like any other:

    gapless demo --toml > shop.toml; gapless sim run shop.toml
    """
    from gapless.cli.demo_simulated import run_simulated_demo, scenario_text

    if toml:
        print(scenario_text(), end="")
        return 0
    if simulated:
        if json:
            raise click.BadParameter("--simulated prints no JSON; gapless demo --toml and gapless sim run --json do")
        return run_simulated_demo(trace, svg)
    from gapless.cli.demo import run_demo

    return run_demo(trace, svg, as_json=json)


@app.command(epilog=EPILOG)
@click.argument("trace", metavar="DIR", type=PATH, help="A directory with a trace, as sim run --trace writes it.")
@json_option
def check(trace: Path, json: bool) -> int:
    """Check every run of a recorded trace.

    Example:  gapless check out/trace
    """
    from gapless.cli.check import check_trace

    return check_trace(trace, as_json=json)


@app.command(epilog=EPILOG)
@click.argument("trace", metavar="TRACE", help="A directory, or an address that Spark reads.")
@click.option(
    "--master", metavar="URL", help="Check on this Spark master. By default, only large traces are checked on Spark."
)
@click.option("--remote", metavar="URL", help="Check with Spark Connect: sc://host:port.")
@click.option("--out", metavar="DIR", type=PATH, help="Write verdicts and anomalies to this directory, as Parquet.")
@click.option(
    "--live",
    is_flag=True,
    help="Check a running network: TRACE is the directory in which its clients write their parts.",
)
@click.option(
    "--until-quiet",
    metavar="SECONDS",
    type=NumberRange(min=0),
    help="With --live: end after SECONDS without new records, and require that all deliveries arrived.",
)
@click.option(
    "--every", metavar="SECONDS", type=NumberRange(min=0.1), default=1.0, help="With --live: interval between batches."
)
@click.option(
    "--clock-skew-ms",
    metavar="MS",
    type=NumberRange(min=0.0),
    help="With --live: maximum difference between the clocks of the machines.",
)
@json_option
def audit(
    trace: str,
    master: str | None,
    remote: str | None,
    out: Path | None,
    live: bool,
    until_quiet: float | None,
    every: float,
    clock_skew_ms: float | None,
    json: bool,
) -> int:
    """Check a trace of any size, or a network while it runs.

    A trace of up to 500,000 rows is checked in this process. Spark checks larger ones, and any if you name a master.

    Example:  gapless audit out/trace --out out/judged

    Lag and anomalies as they appear:  gapless up --trace out/live, and in another terminal
    gapless audit --live out/live; Ctrl-C ends it with the verdict. With --json, it prints a line a batch.
    """
    if live:
        from gapless.cli.audit_live import audit_live

        if out is not None or remote is not None:
            raise click.BadParameter(
                "--live writes no tables and runs where the parts are; leave out --out and --remote"
            )
        return audit_live(
            trace, master=master, every_s=every, quiet_s=until_quiet, clock_skew_ms=clock_skew_ms, as_json=json
        )
    if until_quiet is not None or clock_skew_ms is not None:
        raise click.BadParameter("--until-quiet and --clock-skew-ms are for --live")
    from gapless.cli.audit import audit_trace

    return audit_trace(trace, master=master, remote=remote, out=out, as_json=json)


@app.command(epilog=NETWORK_EPILOG)
@click.option("--to", metavar="DIR", type=PATH, required=True, help="The archive's directory; created if missing.")
@url_option
@click.option("--filter", metavar="FILTER", default="TRUE", help="A filter: the events to archive.")
@click.option("--every", metavar="SECONDS", type=NumberRange(min=0.1), default=10.0, help="Interval between batches.")
@click.option("--once", is_flag=True, help="Archive all events up to now, then exit.")
@click.option("--allow-gaps", is_flag=True, help="Continue if brokers have dropped events, and record the gap.")
@credentials_option
@json_option
def archive(
    to: Path, url: str, filter: str, every: float, once: bool, allow_gaps: bool, credentials: Path | None, json: bool
) -> int:
    """Archive published events in Parquet files by date.

    The archive keeps events for longer than brokers do.

    A restarted archive continues where it stopped: each event is archived once.

    Example:  gapless archive --filter "topic = 'trade'" --to trades
    """
    from gapless.cli.archive import archive_history

    return archive_history(
        local(url, credentials), filter, to, every_s=every, once=once, allow_gaps=allow_gaps, credentials=credentials,
        as_json=json,
    )  # fmt: skip


@app.command("protocols", epilog=EPILOG)
@click.argument("name", metavar="[NAME]", required=False, help="Show the options of this protocol.")
@json_option
def list_protocols(name: str | None, json: bool) -> int:
    """List the protocols, with guarantees and tolerated faults.

    Example:  gapless protocols gapless
    """
    from gapless.cli.protocols import show_protocol, show_protocols

    return show_protocols(as_json=json) if name is None else show_protocol(name, as_json=json)


for command in (up, broker, status, doctor):
    app.add_command(command)


# ---- publishing and subscribing ---------------------------------------------------------------------------------


@app.command(epilog=NETWORK_EPILOG)
@url_option
@click.option("--advertise", metavar="FILTER", default="TRUE", help="A filter that all events match.")
@click.option(
    "--event",
    metavar="JSON",
    multiple=True,
    help="Publish this event instead of lines from standard input; may be repeated.",
)
@click.option(
    "--count",
    metavar="N",
    type=click.IntRange(min=0),
    help="Publish this many events; with --event, the given ones in turn.",
)
@click.option(
    "--rate",
    metavar="N",
    type=NumberRange(min=0.001, max=1000000000.0),
    help="Events per second (default: at full speed).",
)
@click.option("--quiet", is_flag=True, help="Print no summary.")
@credentials_option
@json_option
def pub(
    url: str,
    advertise: str,
    event: tuple[str, ...],
    count: int | None,
    rate: float | None,
    quiet: bool,
    credentials: Path | None,
    json: bool,
) -> int:
    """Publish JSON lines, and wait until all are confirmed.

    Example:  echo '{"topic": "price", "amount": 7}' | gapless pub

    A line is the attributes, or {"attributes": {…}, "payload": "text"}, as gapless sub prints it.
    """
    from gapless.cli.pub import publish

    return publish(
        local(url, credentials), advertise, list(event), count, rate, credentials=credentials, quiet=quiet, as_json=json
    )


@app.command(epilog=NETWORK_EPILOG)
@click.argument("text", metavar="[FILTER]", default="TRUE", help="A condition as after WHERE.")
@url_option
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="End after this many events.")
@seconds_option
@click.option("--since", metavar="WHEN", help="Begin in the past: earliest, an age (10m), a time, or a position (p1…).")
@click.option("--until", metavar="WHEN", help="End at: now, an age, a time, or a position (p1…). Needs --since.")
@click.option("--durable", metavar="NAME", help="Attach to this durable subscription: continue where it stopped.")
@click.option("--archive", metavar="DIR", type=PATH, help="Read the archive in this directory first. Needs --since.")
@click.option("--group", is_flag=True, help="Share the durable subscription: each event goes to one member.")
@click.option(
    "--redeliver",
    metavar="S",
    type=float,
    help="With --group: redeliver events that are not printed within S seconds (30).",
)
@click.option(
    "--rate", is_flag=True, help="Print the number of events per second instead of events, and the total at the end."
)
@click.option("--quiet", is_flag=True, help="Do not print the starting cut.")
@credentials_option
@click.option("--json", is_flag=True, help="With --rate: print rates as JSON lines. (Events always are JSON lines.)")
def sub(
    text: str,
    url: str,
    count: int | None,
    seconds: float | None,
    since: str | None,
    until: str | None,
    durable: str | None,
    archive: Path | None,
    group: bool,
    redeliver: float | None,
    rate: bool,
    quiet: bool,
    credentials: Path | None,
    json: bool,
) -> int:
    """Subscribe, and print events as JSON lines.

    Example:  gapless sub "topic = 'price' AND amount < 10" --count 3

    The rate of events:  gapless sub --rate --seconds 10

    The events of the last ten minutes:  gapless sub --since 10m --until now

    A durable subscription, which continues where it stopped:  gapless sub --durable billing

    Events that brokers have dropped, from an archive:  gapless sub "topic = 'trade'" --since 30d --archive
    trades

    A group in several terminals, each event in one of them:  gapless sub --durable billing --group
    """
    from gapless.cli.sub import Span, subscribe

    return subscribe(
        local(url, credentials), text, Span(since, until, durable, archive, group, redeliver), count, seconds,
        credentials=credentials, rate=rate, quiet=quiet, as_json=json,
    )  # fmt: skip


@traces.command("merge", epilog=NETWORK_EPILOG)
@click.argument("directory", metavar="DIR", type=PATH, help="The directory with the clients' parts.")
@click.argument("out", metavar="OUT", type=PATH, help="The trace to write.")
@click.option(
    "--quiesced",
    is_flag=True,
    help="The run ended quietly, with all faults healed: require that all deliveries arrived.",
)
@click.option(
    "--clock-skew-ms",
    metavar="MS",
    type=NumberRange(min=0.0),
    help="Maximum difference between the clocks of the machines.",
)
@json_option
def trace_merge(directory: Path, out: Path, quiesced: bool, clock_skew_ms: float | None, json: bool) -> int:
    """Merge the parts of a trace that clients wrote into one.

    Example:  gapless trace merge out/live out/trace --quiesced; gapless check out/trace
    """
    from gapless.cli.trace_merge import merge

    return merge(directory, out, quiesced=quiesced, clock_skew_ms=clock_skew_ms, as_json=json)


# ---- filter commands ------------------------------------------------------------------------------------------


@filters.command("check", epilog=EPILOG.replace("0 valid", "0 valid or matches", 1))
@click.argument("text", metavar="TEXT", help="A condition as after WHERE.")
@click.option("--event", metavar="JSON", help="Attributes: does the filter match them?")
@click.option("--against", metavar="TEXT", help="Another filter: does this one cover or overlap it?")
@json_option
def filter_check(text: str, event: str | None, against: str | None, json: bool) -> int:
    """Show a filter's normal form, and whether it matches an event.

    Example:  gapless filter check "price < 10" --event '{"price": 7}'

    Example:  gapless filter check "price < 10" --against "price < 5"

    With an event, the exit code is the answer: 0 true, 1 false, 2 unknown.
    """
    from gapless.cli.filter_check import check_filter

    return check_filter(text, event, against, as_json=json)


for group, name in (
    (sim, "sim"), (filters, "filter"), (traces, "trace"), (clients, "client"), (networks, "network"),
    (security, "security"), (data, "data"), (names, "subscriptions"),
):  # fmt: skip
    app.add_command(group, name)
