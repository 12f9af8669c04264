"""`make chaos`: a quarter of an hour of faults on a real network, then an audit of all deliveries.

    python -m trials.chaos_run
    python -m trials.chaos_run --minutes 3 --seed 2 --keep out/chaos
    python -m trials.chaos_run --minutes 3 --data
    python -m trials.chaos_run --hours 3 --data

Seven brokers run as processes on loopback, with proxies between them. Up to f neighbours at a time are killed,
paused, partitioned or slowed, and restarted, while clients request, answer, read, connect and leave (`chaos`). With
`--data`, brokers store their data on disk, which is sometimes busy, and sometimes more than f or all of them are
killed at once. The network is also cut in two, in one direction or both.

Then the clients' parts of the trace are merged and checked, on Spark or, without Java, by the checkers in this
process. Longer runs consist of rounds: the brokers continue, and each round has its own clients and verdict. The run
ends with the first round that is not valid.

Exit codes are those of `gapless`: 0 valid, 1 invalid, 2 unknown, 130 interrupted. A run that is not valid keeps its
trace and the brokers' logs, and prints their location.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from gapless.cli.exit_codes import INTERRUPTED, code_of
from gapless.cli.live_verdict import LiveVerdict, judge_live
from gapless.cli.terminal import output_console, progress_bars, spinner
from gapless.cli.verdict_view import status_text
from gapless.errors import GaplessError
from gapless.overlay import random_tree
from gapless.protocol import convert_options, largest_f
from gapless.registry import find_protocol
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import Fleet, local_network
from gapless.runtime.network_file import ProtocolEntry
from gapless.runtime.settings import RuntimeSettings
from gapless.trace import merge_parts, write_trace

from .chaos import Chaos, Load, Outcome
from .chaos_faults import KINDS as ALL_KINDS
from .chaos_faults import can_fake_clocks
from .cut_proxy import CutProxyProcess, proxied

KINDS = ("kill", "freeze", "cut", "slow")
DATA_KINDS = ("blackout", "beyond", "disk")
WAIT_KINDS = ("partition", "mute")
LOAD = Load(askers=4, rate=14.0, answerers=3, observers=9, visitors=1, readers=1)
"""About 170 events per second, and six times as many deliveries."""
DELIVERIES_A_MINUTE = 34_000
"""The run continues until it has this many deliveries per minute: half a million in a quarter of an hour, even on a
busy machine.
"""
TURN_MAX_MS = 100.0
"""The maximum turn of a broker's event loop."""
PEAK_MAX_MIB = 256
"""The memory limit of a broker under this load: in the worst handover, it keeps, sends and merges some ten thousand
events at once.
"""


def main(arguments: list[str]) -> int:
    """Run, check and print the verdict; return the exit code."""
    parser = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="how long a round lasts (default: 15)")
    parser.add_argument("--hours", type=float, default=0.0, help="how long there are rounds (default: one)")
    parser.add_argument("--brokers", type=int, default=7, help="how many brokers (default: 7)")
    parser.add_argument("--f", type=int, help="how many neighbours fail at the same time (default: 2, or what fits)")
    parser.add_argument("--seed", type=int, default=1, help="of the tree and of the faults (default: 1)")
    parser.add_argument(
        "--suspect-ms", type=float, default=2_000.0, metavar="MS",
        help="how long a broker is silent before it counts as dead (default: 2000); on a machine that is busy with "
        "other things less would add faults to those that are meant, of which f are allowed at a time",
    )  # fmt: skip
    parser.add_argument("--data", action="store_true", help="with data on disk, and blackouts among the faults")
    parser.add_argument("--protocol", default="gapless", help="what the brokers run (default: gapless)")
    parser.add_argument("--faults", nargs="+", choices=ALL_KINDS, metavar="KIND", help=f"of {', '.join(ALL_KINDS)}")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep trace and logs here, also if all is well")
    asked = parser.parse_args(arguments)
    place = Path(tempfile.mkdtemp(prefix="gapless-chaos.")) if asked.keep is None else asked.keep
    place.mkdir(parents=True, exist_ok=True)
    code = INTERRUPTED
    try:
        code = _run(asked, place)
    except KeyboardInterrupt:
        pass
    except (GaplessError, AssertionError) as error:
        print(f"chaos: {error}", file=sys.stderr)
        code = code_of("invalid")
    finally:
        if asked.keep is None and code in (0, INTERRUPTED):
            shutil.rmtree(place, ignore_errors=True)
        else:
            print(f"trace and logs: {place}", file=sys.stderr)
    return code


def _kinds(asked: argparse.Namespace) -> tuple[str, ...]:
    """Return the kinds of faults, in their order."""
    if asked.faults:
        return tuple(asked.faults)
    clocks = ("clock",) if can_fake_clocks() else ()
    return (*KINDS, *WAIT_KINDS, *(DATA_KINDS if asked.data else ()), *clocks)


def _run(asked: argparse.Namespace, place: Path) -> int:
    tree = random_tree(asked.brokers, seed=asked.seed, max_degree=3)
    settings = RuntimeSettings(suspect_ms=asked.suspect_ms, join_ms=2_000)
    data = place / "data" if asked.data else None
    protocol = ProtocolEntry(asked.protocol)
    if asked.f is None:
        spec = find_protocol(protocol.name)
        asked.f = largest_f(spec, tree, convert_options(spec, protocol.options), 2)
    config = proxied(local_network(tree, f=asked.f, name="chaos", protocol=protocol, runtime=settings, data=data))
    end = time.monotonic() + asked.hours * 3600
    with Fleet(config, place / "logs") as fleet, closing(CutProxyProcess(fleet.file)) as proxy:
        fleet.start_all()
        for number in count(1):
            begun = time.monotonic()
            here = place / f"round-{number}"
            outcome = run(_hurt(fleet, proxy, here, asked, asked.seed + number - 1))
            verdict = _judged(here)
            code = _show(output_console(), asked, number, outcome, verdict, time.monotonic() - begun)
            if code or time.monotonic() >= end:
                return code
            if asked.keep is None:
                shutil.rmtree(here)
    raise AssertionError("rounds have an end")


async def _hurt(
    fleet: Fleet, proxy: CutProxyProcess, place: Path, asked: argparse.Namespace, seed: int
) -> Outcome:  # fmt: skip
    seconds = asked.minutes * 60
    chaos = Chaos(fleet, place / "parts", seed=seed, load=LOAD, proxy=proxy)
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with progress_bars(*columns) as progress:
        task = progress.add_task("starting", total=seconds)
        start = time.monotonic()
        minutes = 0

        def told() -> None:
            nonlocal minutes
            passed = time.monotonic() - start
            now = f"{len(chaos.faults)} faults, {chaos.deliveries:,} deliveries"
            progress.update(task, completed=passed, description=now)
            if passed >= 60 * (minutes + 1) and not sys.stderr.isatty():
                minutes += 1
                print(f"{minutes} min: {now}", file=sys.stderr, flush=True)

        least = int(asked.minutes * DELIVERIES_A_MINUTE)
        return await chaos.run(seconds, deliveries=least, kinds=_kinds(asked), at_once=asked.f, told=told)


def _longest_turn(outcome: Outcome) -> str:
    broker, (milliseconds, what) = max(outcome.longest_turns.items(), key=lambda item: item[1])
    return f"{milliseconds:.0f} ms of the processor, of {broker}: {what} (bound: {TURN_MAX_MS:.0f})"


def _judged(place: Path) -> LiveVerdict:
    with spinner("putting the trace together") as announce:
        write_trace([merge_parts(place / "parts", quiesced=True)], place / "trace")
        return judge_live(place / "trace", announce=lambda judge: announce(f"{judge} judges"))


def _show(
    console: Console, asked: argparse.Namespace, number: int, outcome: Outcome, verdict: LiveVerdict, seconds: float
) -> int:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    kinds = Counter(fault.split()[0].rstrip(",") for fault in outcome.faults)
    peaks = {name: peak / 1024 for name, peak in sorted(outcome.peak_kib.items())}
    for name, told in {
        "network": f"{asked.brokers} brokers, f = {asked.f}, seed {asked.seed}, round {number}",
        "faults": f"{len(outcome.faults)}: " + ", ".join(f"{often} × {kind}" for kind, often in kinds.items()),
        "events": f"{verdict.events:,}",
        "deliveries": f"{verdict.deliveries:,}, to {outcome.subscriptions:,} subscriptions",
        "complaints": f"{len(outcome.failures)} of clients",
        "memory": ", ".join(f"{name} {peak:.0f}" for name, peak in peaks.items()) + f" MiB (bound: {PEAK_MAX_MIB})",
        "longest turn": _longest_turn(outcome),
        "took": f"{seconds / 60:.1f} minutes",
        "judge": verdict.judge + (f" ({verdict.without_spark})" if verdict.without_spark else ""),
    }.items():
        table.add_row(name, told)
    console.print(table)
    for complaint in outcome.failures[:5]:
        console.print(Text(complaint, "red"))
    status, reason = verdict.status, verdict.reason
    is_quick = max(outcome.longest_turns.values())[0] <= TURN_MAX_MS
    if status == "valid" and (outcome.failures or max(peaks.values()) > PEAK_MAX_MIB or not is_quick):
        status, reason = "invalid", "the trace is as it should be, but see the lines above"
    console.print(Text.assemble(status_text(status), "  ", reason))
    for example in verdict.examples[:5]:
        console.print(Text(f"  {example}", "red"))
    return code_of(status)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
