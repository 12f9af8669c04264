"""The command line: commands, options, and the handling of errors.

Each command is a thin function here and imports its own module when it is called: `gapless --help`
loads neither the simulator nor Parquet. A command returns its exit code. `run` converts exceptions
to exit codes: an external error prints one line, a bug prints a traceback and asks for a report.
"""

import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gapless.cli.data_commands import DATA_EPILOG, data
from gapless.cli.exit_codes import BAD_INPUT, BUG, EPILOG, INTERRUPTED, NETWORK_EPILOG
from gapless.cli.extensions import GroupWithExtensions
from gapless.cli.extras import missing_extra
from gapless.cli.security_commands import security
from gapless.cli.shared_options import LOCAL, CredentialsFile, Json, Seconds, Url, help_without_command, local
from gapless.cli.sim_commands import sim
from gapless.cli.subscription_commands import names
from gapless.errors import GaplessError
from gapless.printable import printable_lines

__all__ = ["app", "run"]

app = typer.Typer(
    help="Gapless: publish/subscribe in which a subscription has no gap and no effect comes before its cause.\n\n"
    "Start with:  [bold]gapless demo[/bold]",
    cls=GroupWithExtensions, epilog=EPILOG, add_completion=False, rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)  # fmt: skip
filters = typer.Typer(
    help='Look at a filter.\n\nStart with:  [bold]gapless filter check "price < 10 AND NOT sold"[/bold]'
)
traces = typer.Typer(help="Handle traces of live networks.\n\nStart with:  [bold]gapless up --trace out/parts[/bold]")
clients = typer.Typer(
    help="Handle clients of a live network.\n\n[bold]gapless status[/bold] shows the clients that lag most."
)
networks = typer.Typer(
    help="Handle brokers of a live network.\n\n[bold]gapless doctor[/bold] names the brokers that others wait for."
)
app.add_typer(sim, name="sim", epilog=EPILOG)
app.add_typer(filters, name="filter", epilog=EPILOG)
app.add_typer(traces, name="trace", epilog=NETWORK_EPILOG)
app.add_typer(clients, name="client", epilog=NETWORK_EPILOG)
app.add_typer(networks, name="network", epilog=NETWORK_EPILOG)
app.add_typer(security, name="security", epilog=NETWORK_EPILOG)
app.add_typer(data, name="data", epilog=DATA_EPILOG)
app.add_typer(names, name="subscriptions", epilog=NETWORK_EPILOG)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line, and exit."""
    raise SystemExit(_guarded(lambda: app(args=arguments, prog_name="gapless", standalone_mode=False)))


def _guarded(command: Callable[[], int | None]) -> int:
    try:
        return command() or 0
    except typer.TyperException as error:
        return _complain(error.format_message(), BAD_INPUT, _try_help(error))
    except GaplessError as error:
        return _complain(str(error), BAD_INPUT)
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), BAD_INPUT)
    except KeyboardInterrupt:
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


def _try_help(error: typer.TyperException) -> str:
    """Return where the usage is explained, for errors that know their command."""
    context = getattr(error, "ctx", None)
    return f"\nTry '{context.command_path} --help'." if context is not None else ""


def _report_bug(error: Exception) -> int:
    # The failure of a node crosses process boundaries, so it contains its own traceback.
    text = getattr(error, "traceback_text", "") or "".join(traceback.format_exception(error))
    print(text.rstrip(), file=sys.stderr)
    return _complain(
        f"{error or type(error).__name__}", BUG,
        "\nThis is a bug in Gapless. Please report the lines above, with the command and the file that led to them;"
        "\nthe same command with the same seed repeats it.",
    )  # fmt: skip


# ---- at the top ---------------------------------------------------------------------------------------------


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"gapless {version('gapless')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    help_without_command(context)


@filters.callback(invoke_without_command=True)
def _filters(context: typer.Context) -> None:
    help_without_command(context)


@traces.callback(invoke_without_command=True)
def _traces(context: typer.Context) -> None:
    help_without_command(context)


@clients.callback(invoke_without_command=True)
def _clients(context: typer.Context) -> None:
    help_without_command(context)


@app.command(epilog=EPILOG)
def demo(
    trace: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the trace of the run here.")] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Save what is printed as a picture.")] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="The same story on 15 brokers in virtual time: no process, no Spark.")
    ] = False,
    toml: Annotated[bool, typer.Option("--toml", help="Print the scenario file of --simulated and exit.")] = False,
    json: Json = False,
) -> int:
    """A real network of 7 brokers in a minute: subscribe, kill a broker, read the verdict.

    Example:  [bold]gapless demo --trace out/demo; gapless check out/demo[/bold]

    In virtual time, the scenario is a file like any other:

    [bold]gapless demo --toml > shop.toml; gapless sim run shop.toml[/bold]
    """
    from gapless.cli.demo_simulated import run_simulated_demo, scenario_text

    if toml:
        print(scenario_text(), end="")
        return 0
    if simulated:
        if json:
            raise typer.BadParameter("--simulated prints no JSON; gapless demo --toml and gapless sim run --json do")
        return run_simulated_demo(trace, svg)
    from gapless.cli.demo import run_demo

    return run_demo(trace, svg, as_json=json)


@app.command(epilog=EPILOG)
def check(
    trace: Annotated[Path, typer.Argument(metavar="DIR", help="A trace, as sim run --trace writes it.")],
    json: Json = False,
) -> int:
    """Check every run of a recorded trace.

    Example:  [bold]gapless check out/trace[/bold]
    """
    from gapless.cli.check import check_trace

    return check_trace(trace, as_json=json)


@app.command(epilog=EPILOG)
def audit(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A directory, or an address that Spark reads.")],
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Judge on this master of Spark; by default a large trace alone goes to one."),
    ] = None,
    remote: Annotated[str | None, typer.Option(metavar="URL", help="Judge with Spark Connect: sc://host:port.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write verdicts and anomalies here, as Parquet.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Judge a network that runs: TRACE is where its clients write their parts.")
    ] = False,
    until_quiet: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="With --live: end after this much silence, and require progress."),
    ] = None,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="With --live: how often to look.")
    ] = 1.0,
    clock_skew_ms: Annotated[
        float | None,
        typer.Option(metavar="MS", min=0.0, help="With --live: how far clocks of several machines may differ."),
    ] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Check every run of a trace of any size; or a network while it runs.

    A trace of up to 500,000 rows is judged in this process. Spark judges a larger one, and any if you name a master.

    Example:  [bold]gapless audit out/trace --out out/judged[/bold]

    Lag and anomalies as they appear:  [bold]gapless up --trace out/live[/bold], and in another terminal
    [bold]gapless audit --live out/live[/bold]; Ctrl-C ends it with the verdict. With --json, it prints a line a batch.
    """
    if live:
        from gapless.cli.audit_live import audit_live

        if out is not None or remote is not None:
            raise typer.BadParameter(
                "--live writes no tables and runs where the parts are; leave out --out and --remote"
            )
        return audit_live(
            trace, master=master, every_s=every, quiet_s=until_quiet, clock_skew_ms=clock_skew_ms, as_json=json
        )
    if until_quiet is not None or clock_skew_ms is not None:
        raise typer.BadParameter("--until-quiet and --clock-skew-ms are for --live")
    from gapless.cli.audit import audit_trace

    return audit_trace(trace, master=master, remote=remote, out=out, as_json=json)


@app.command(epilog=NETWORK_EPILOG)
def archive(
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The archive; created if missing.")],
    url: Url = LOCAL,
    filter: Annotated[str, typer.Option("--filter", metavar="FILTER", help="The events to archive.")] = "TRUE",
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="How often to look.")] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Archive everything up to now, and end.")] = False,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Continue if brokers have dropped some of it.")
    ] = False,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """Archive published events in Parquet files by date, for longer than brokers keep them.

    A restarted archive continues where it stopped: each event is archived once.

    Example:  [bold]gapless archive --filter "topic = 'trade'" --to trades[/bold]
    """
    from gapless.cli.archive import archive_history

    return archive_history(
        local(url, credentials), filter, to, every_s=every, once=once, allow_gaps=allow_gaps, credentials=credentials,
        as_json=json,
    )  # fmt: skip


@app.command("protocols", epilog=EPILOG)
def list_protocols(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show the options of this one.")] = None,
    json: Json = False,
) -> int:
    """List the protocols: what each guarantees, and under which faults.

    Example:  [bold]gapless protocols gapless[/bold]
    """
    from gapless.cli.protocols import show_protocol, show_protocols

    return show_protocols(as_json=json) if name is None else show_protocol(name, as_json=json)


# ---- the network ----------------------------------------------------------------------------------------------

NetworkFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The network's file, in TOML.")]
BROKERS_MAX = 1000
"""The port for health is a thousand above the broker's own, so more brokers do not fit."""


@app.command(epilog=NETWORK_EPILOG)
def up(
    brokers: Annotated[int, typer.Option(metavar="N", min=1, max=BROKERS_MAX, help="How many brokers.")] = 7,
    config: NetworkFile = None,
    f: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="How many neighbouring brokers may fail; by default 1, or 0 for one or two brokers.",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=65_535,
            help="Of the first broker; the others follow. HTTP takes the ports 1,000 above: health and metrics.",
        ),
    ] = 7400,
    protocol: Annotated[str, typer.Option(metavar="NAME", help="One of: gapless protocols.")] = "gapless",
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Let clients on this machine write their traces here.")
    ] = None,
    logs: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the logs of the brokers here.")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep on disk, here, what has to survive a stop of all brokers.")
    ] = None,
    seconds: Seconds = None,
    restart: Annotated[bool, typer.Option(help="Restart brokers that die.")] = True,
    secure: Annotated[bool, typer.Option("--secure", help="With TLS, certificates and users.")] = False,
    security: Annotated[
        Path, typer.Option("--security", metavar="DIR", help="Their directory; created if missing.")
    ] = Path("gapless-security"),
) -> int:
    """Start a whole network on this machine, for development, and watch it.

    Example:  [bold]gapless up --brokers 3[/bold], and in other terminals

    [bold]gapless sub "topic = 'price'"[/bold]

    [bold]gapless pub --event '{"topic": "price", "amount": 7}'[/bold]
    """
    from gapless.cli.up import run_network

    return run_network(
        config, brokers, f=f, port=port, protocol=protocol, trace=trace, logs=logs, seconds=seconds, restart=restart,
        security=security if secure else None, data=data,
    )  # fmt: skip


@app.command(epilog=NETWORK_EPILOG)
def broker(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The network's file, in TOML.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Which of its brokers this is.")],
    json: Annotated[bool, typer.Option("--json", help="Log JSON, a document a line.")] = False,
    level: Annotated[str, typer.Option(metavar="WORD", help="debug, info, warning or error.")] = "info",
    trace: Annotated[str, typer.Option(metavar="DIR", help="Where clients on this machine write their traces.")] = "",
    parent: Annotated[int, typer.Option(hidden=True)] = 0,
) -> int:
    """Run one broker of a network. SIGTERM stops it gracefully.

    Example:  [bold]gapless broker --config network.toml --name b3[/bold]

    The file is the same on every host; [bold]docs/WIRE.md[/bold] shows one.
    """
    from gapless.cli.broker import serve

    return serve(config, name, as_json=json, level=level, trace=trace, parent=parent)


@app.command(epilog="Exit codes: 0 all are up, 1 some are not, or wait for others, 64 nobody answers.")
def status(
    url: Url = LOCAL, config: NetworkFile = None, credentials: CredentialsFile = None, json: Json = False
) -> int:  # fmt: skip
    """Show for each broker whether it is up, what it waits for, links, clients and queues.

    Example:  [bold]gapless status --url gapless://10.0.0.1:7400[/bold]
    """
    from gapless.cli.status import show_status

    return show_status(local(url, credentials), config, credentials, as_json=json)


@app.command(epilog="Exit codes: 0 nothing is wrong, 1 something is, 64 nobody answers.")
def doctor(
    url: Url = LOCAL, config: NetworkFile = None, credentials: CredentialsFile = None, json: Json = False
) -> int:  # fmt: skip
    """Report what is wrong with a network, and what to do about it.

    Example:  [bold]gapless doctor --config network.toml[/bold]
    """
    from gapless.cli.doctor import examine

    return examine(local(url, credentials), config, credentials, as_json=json)


@clients.command("end", epilog="Exit codes: 0 its session is ended, 1 there is none, 64 nobody answers.")
def client_end(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The client, as gapless status names it.")],
    url: Url = LOCAL,
    config: NetworkFile = None,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """End the session of a client. Its subscriptions end, and it receives an error with the reason.

    Example:  [bold]gapless client end dashboard-1f2e3d4c[/bold]
    """
    from gapless.cli.client_end import end_client

    return end_client(name, local(url, credentials), config, credentials, as_json=json)


@clients.command("delete-events", epilog="Exit codes: 0 deleted, 1 nothing to delete, 64 nobody answers.")
def client_delete_events(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The client that published them, with or without the end that makes its name unique."
        ),
    ],
    url: Url = LOCAL,
    config: NetworkFile = None,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """Delete all events that a client has published so far from history. Readers learn which numbers were deleted.

    Example:  [bold]gapless client delete-events sensor-17[/bold]
    """
    from gapless.cli.client_delete_events import delete_events

    return delete_events(name, local(url, credentials), config, credentials, as_json=json)


@networks.callback()
def network() -> None:
    """Manage the brokers of a running network."""


@networks.command("forget", epilog="Exit codes: 0 the others continue, 1 it is up or unknown, 64 nobody answers.")
def network_forget(
    name: Annotated[str, typer.Argument(metavar="BROKER", help="The broker, as the network's file names it.")],
    url: Url = LOCAL,
    config: NetworkFile = None,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """Declare that a broker will not return. The others stop waiting for it, and report events that only it had as
    lost.

    Example:  [bold]gapless network forget b3 --config network.toml[/bold]
    """
    from gapless.cli.network_forget import forget_broker

    return forget_broker(name, local(url, credentials), config, credentials, as_json=json)


@app.command(epilog=NETWORK_EPILOG)
def pub(
    url: Url = LOCAL,
    advertise: Annotated[str, typer.Option(metavar="FILTER", help="A filter that all events match.")] = "TRUE",
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="JSON", help="Publish this, instead of lines on standard input; may be repeated."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Publish so many: with --event, these in turn.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="N", min=0.001, max=1e9, help="So many a second (else: at full speed).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing at the end.")] = False,
    credentials: CredentialsFile = None,
    json: Json = False,
) -> int:
    """Publish JSON lines; ends when all of them are confirmed.

    Example:  [bold]echo '{"topic": "price", "amount": 7}' | gapless pub[/bold]

    A line is the attributes, or {"attributes": {…}, "payload": "text"}, as gapless sub prints it.
    """
    from gapless.cli.pub import publish

    return publish(
        local(url, credentials), advertise, event, count, rate, credentials=credentials, quiet=quiet, as_json=json
    )


@app.command(epilog=NETWORK_EPILOG)
def sub(
    text: Annotated[str, typer.Argument(metavar="[FILTER]", help="A condition as after WHERE.")] = "TRUE",
    url: Url = LOCAL,
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after this many events.")] = None,
    seconds: Seconds = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="First what was published since: earliest, an age (10m), a time, a position (p1…).",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="End there: now, an age, a time, a position (p1…). Needs --since."),
    ] = None,
    durable: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Attach to this durable subscription: continue where it stopped."),
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Read the archive in this directory first. Needs --since."),
    ] = None,
    group: Annotated[
        bool, typer.Option("--group", help="Share the durable subscription: each event goes to one member.")
    ] = False,
    redeliver: Annotated[
        float | None,
        typer.Option(metavar="S", help="With --group: redeliver what is not printed within S seconds (30)."),
    ] = None,
    rate: Annotated[
        bool, typer.Option("--rate", help="Print events a second instead of events, and the total at the end.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print the starting cut.")] = False,
    credentials: CredentialsFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print rates as JSON lines, too, as events are anyway.")] = False,
) -> int:
    """Subscribe, and print events as JSON lines.

    Example:  [bold]gapless sub "topic = 'price' AND amount < 10" --count 3[/bold]

    The rate of events:  [bold]gapless sub --rate --seconds 10[/bold]

    The events of the last ten minutes:  [bold]gapless sub --since 10m --until now[/bold]

    A durable subscription, which continues where it stopped:  [bold]gapless sub --durable billing[/bold]

    Events that brokers have dropped, from an archive:  [bold]gapless sub "topic = 'trade'" --since 30d --archive
    trades[/bold]

    A group in several terminals, each event in one of them:  [bold]gapless sub --durable billing --group[/bold]
    """
    from gapless.cli.sub import Span, subscribe

    return subscribe(
        local(url, credentials), text, Span(since, until, durable, archive, group, redeliver), count, seconds,
        credentials=credentials, rate=rate, quiet=quiet, as_json=json,
    )  # fmt: skip


@traces.command("merge", epilog=NETWORK_EPILOG)
def trace_merge(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the clients wrote their parts.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The trace to write.")],
    quiesced: Annotated[
        bool, typer.Option("--quiesced", help="The run ended quietly, with all faults healed: require progress.")
    ] = False,
    clock_skew_ms: Annotated[
        float | None, typer.Option(metavar="MS", min=0.0, help="How far clocks of several machines may differ.")
    ] = None,
    json: Json = False,
) -> int:
    """Merge the parts that clients of a live network wrote into one trace.

    Example:  [bold]gapless trace merge out/live out/trace --quiesced; gapless check out/trace[/bold]
    """
    from gapless.cli.trace_merge import merge

    return merge(directory, out, quiesced=quiesced, clock_skew_ms=clock_skew_ms, as_json=json)


# ---- filter ---------------------------------------------------------------------------------------------------


@filters.command("check", epilog=EPILOG.replace("0 valid", "0 valid or matches", 1))
def filter_check(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A condition as after WHERE.")],
    event: Annotated[
        str | None, typer.Option(metavar="JSON", help="Attributes: does the filter match them?")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Another filter: does this one cover or overlap it?")
    ] = None,
    json: Json = False,
) -> int:  # fmt: skip
    """Read a filter: its normal form, and whether it matches an event.

    Example:  [bold]gapless filter check "price < 10" --event '{"price": 7}'[/bold]

    Example:  [bold]gapless filter check "price < 10" --against "price < 5"[/bold]

    With an event, the exit code is the answer: 0 true, 1 false, 2 unknown.
    """
    from gapless.cli.filter_check import check_filter

    return check_filter(text, event, against, as_json=json)
