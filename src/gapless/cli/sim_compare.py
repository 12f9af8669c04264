"""`gapless sim compare`: runs several protocols on one scenario and prints them side by side."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.table import Table
from rich.text import Text

from gapless.checkers import Status
from gapless.cli.comparison_table import COSTS_LEGEND, PROMISES_LEGEND, cost_table, promise_table
from gapless.cli.exit_codes import code_of, worst
from gapless.cli.terminal import output_console, print_json, progress_bars
from gapless.cli.verdict_view import print_anomalies
from gapless.errors import ProtocolError
from gapless.protocol import GUARANTEE_NAMES, ProtocolSpec
from gapless.registry import find_protocol, protocol_names, protocols
from gapless.simulator import Entry, Scenario, compare, load_scenario
from gapless.simulator.networks import overlay_of

__all__ = ["compare_protocols"]


def compare_protocols(file: Path, names: str | None, seed: int | None, *, as_json: bool) -> int:
    """Run the comparison, print it, and return the exit code: the worst of the protocols that ran."""
    scenario = load_scenario(file)
    specs = _chosen(names)
    with _progress_bar(len(specs), hidden=as_json) as report_progress:
        entries = compare(scenario, specs, seed, on_start=report_progress)
    seed = scenario.run.seed if seed is None else seed
    status = worst(entry.status for entry in entries if entry.outcome is not None)
    if as_json:
        print_json(_document(scenario, seed, entries, status))
        return code_of(status)
    console = output_console()
    brokers = len(overlay_of(scenario.network).brokers)
    console.print(Text(f"{scenario.name}, seed {seed}: {brokers} brokers, f = {scenario.network.f}"))
    console.print()
    for lines, legend in ((promise_table(entries), PROMISES_LEGEND), (cost_table(entries), COSTS_LEGEND)):
        for line in lines:
            console.print(line, soft_wrap=True)
        console.print()
        console.print(Text(legend, "dim"))
        console.print()
    _print_remarks(console, entries)
    _print_breaches(console, entries)
    _print_failures(console, entries)
    return code_of(status)


def _chosen(names: str | None) -> list[ProtocolSpec]:
    """Return the requested protocols without duplicates, in the given order; all protocols if none are named."""
    if names is None:
        return list(protocols().values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise ProtocolError(f"--protocols names no protocol; choose some of: {', '.join(protocol_names())}")
    return [find_protocol(name) for name in dict.fromkeys(wanted)]


@contextmanager
def _progress_bar(number: int, *, hidden: bool) -> Iterator[Callable[[ProtocolSpec], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn())
    with progress_bars(*columns, hidden=hidden) as progress:
        task = progress.add_task("comparing", total=number)
        done = count()

        def report_progress(spec: ProtocolSpec) -> None:
            progress.update(task, description=f"{spec.name:<8}", completed=next(done))

        yield report_progress


def _document(scenario: Scenario, seed: int, entries: Sequence[Entry], status: Status) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "seed": seed,
        "brokers": len(overlay_of(scenario.network).brokers),
        "f": scenario.network.f,
        "status": status,
        "protocols": [_entry_document(entry) for entry in entries],
    }


def _entry_document(entry: Entry) -> dict[str, Any]:
    outcome = entry.outcome
    verdict = None if outcome is None else outcome.verdict
    return {
        "protocol": entry.protocol,
        "claims": entry.claims,
        "unfit": entry.unfit,
        "status": None if outcome is None else "broken" if outcome.status == "broken" else entry.status,
        "held": entry.held,
        "broke": entry.broke,
        "how": entry.how,
        "anomalies": {} if verdict is None else verdict.counts,
        "reason": "" if outcome is None else outcome.summary or (verdict.reason if verdict is not None else ""),
        "figures": None if entry.figures is None else msgspec.to_builtins(entry.figures),
    }


def _print_remarks(console: Console, entries: Sequence[Entry]) -> None:
    """Print facts that the tables omit."""
    for entry in entries:
        if entry.figures is not None and entry.figures.never_active:
            console.print(Text(f"{entry.protocol}: subscriptions never active: {entry.figures.never_active}", "yellow"))
        if entry.figures is not None and entry.figures.refused_calls:
            console.print(Text(f"{entry.protocol}: calls refused: {entry.figures.refused_calls}", "yellow"))


def _print_breaches(console: Console, entries: Sequence[Entry]) -> None:
    """Print the properties that protocols violated without having promised them."""
    kept = [entry for entry in entries if entry.broke is not None and entry.how and entry.status == "valid"]
    if not kept:
        return
    console.print(Text("Not promised, and violated:", "cyan"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    for entry in kept:
        assert entry.broke is not None
        table.add_row(entry.protocol, Text(f"not {GUARANTEE_NAMES[entry.broke]}: {entry.how}"))
    console.print(table)


def _print_failures(console: Console, entries: Sequence[Entry]) -> None:
    """Print the anomalies of protocols that violated a guarantee."""
    for entry in entries:
        verdict = None if entry.outcome is None else entry.outcome.verdict
        if verdict is None or entry.status == "valid":
            continue
        console.print()
        reason = f": {verdict.reason}" if verdict.status == "unknown" else ""
        if verdict.status == "valid" and entry.figures is not None:
            reason = f": {entry.figures.lost:,} of {entry.figures.due:,} due events were never delivered"
        console.print(Text.assemble((entry.protocol, "bold"), reason))
        print_anomalies(console, verdict)
