"""`gapless sim run`: runs one scenario once, and prints its figures and the verdict."""

import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gapless.checkers import Verdict, check
from gapless.cli.exit_codes import code_of
from gapless.cli.latencies import SubscriptionLatency, subscription_latencies
from gapless.cli.terminal import output_console, print_json
from gapless.cli.verdict_view import print_verdict
from gapless.protocol import GUARANTEE_NAMES
from gapless.simulator import Result, Scenario, drop_expected, load_scenario, run_scenario
from gapless.trace import RunRow, must_be_free, write_trace

__all__ = ["run_file"]

_LATENCIES_MAX = 12
"""The maximum number of subscriptions that are listed individually. More are summarized in one line."""


def run_file(file: Path, seed: int | None, trace_directory: Path | None, *, as_json: bool) -> int:
    """Run the file, print the result, and return the exit code."""
    scenario = load_scenario(file)
    if trace_directory is not None:
        must_be_free(trace_directory)
    start = time.perf_counter()
    result = run_scenario(scenario, seed, with_messages=trace_directory is not None)
    seconds = time.perf_counter() - start
    trace = result.trace
    assert trace is not None
    verdict = drop_expected(check(trace), result, scenario)
    if trace_directory is not None:
        write_trace(trace, trace_directory)
    latencies = subscription_latencies(scenario, trace)
    if as_json:
        print_json(_document(trace.runs[0], result, verdict, latencies, trace_directory))
        return code_of(verdict.status)
    console = output_console()
    _print_figures(console, trace.runs[0], scenario, result, verdict, latencies, seconds)
    _print_latencies(console, latencies)
    _print_refusals(console, result)
    console.print()
    print_verdict(console, verdict)
    if trace_directory is not None:
        console.print(Text(f"trace   {trace_directory}", "dim"), soft_wrap=True)
    if verdict.status == "invalid":
        console.print(Text(f"repeat  gapless sim run {file} --seed {trace.runs[0].seed}", "dim"), soft_wrap=True)
    return code_of(verdict.status)


def _document(
    run: RunRow, result: Result, verdict: Verdict, latencies: list[SubscriptionLatency], trace_directory: Path | None
) -> dict[str, Any]:
    return {
        "run": run.run,
        "scenario": run.scenario,
        "protocol": run.protocol,
        "guarantee": run.guarantee,
        "seed": run.seed,
        "brokers": run.brokers,
        "f": run.f,
        "events": verdict.events,
        "deliveries": verdict.deliveries,
        "virtual_ms": result.time_us / 1000,
        "quiesced": result.quiesced,
        "subscriptions": latencies,
        "messages": result.message_counts,
        "messages_lost": result.messages_lost,
        "state": result.state_sizes,
        "refusals": result.refusals,
        "verdict": {**msgspec.to_builtins(verdict), "counts": verdict.counts},
        "trace": None if trace_directory is None else str(trace_directory),
    }


def _print_figures(
    console: Console, run: RunRow, scenario: Scenario, result: Result, verdict: Verdict,
    latencies: list[SubscriptionLatency], seconds: float,
) -> None:  # fmt: skip
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    network = [_many(run.brokers, "broker"), f"f = {run.f}", _many(len(scenario.clients), "client")]
    network += [_many(len(scenario.faults), "fault")] if scenario.faults else []
    rows = {
        "scenario": f"{run.scenario}, seed {run.seed}",
        "protocol": f"{run.protocol}, which guarantees {GUARANTEE_NAMES[run.guarantee]}",
        "network": ", ".join(network),
        "events": f"{verdict.events:,} published, {verdict.deliveries:,} deliveries",
        "subscribing": _latency_summary(latencies),
        "messages": _counts({"in all": result.messages, **_by_size(result.message_counts)}),
        "lost": _many(result.messages_lost, "message") if result.messages_lost else "",
        "state": _counts({kind: size.max for kind, size in result.state_sizes.items()}, "maximum at one broker: "),
        "time": f"{result.time_us / 1_000_000:g} s of virtual time, {seconds:.2f} s of real time",
    }
    for name, text in rows.items():
        if text:
            table.add_row(name, Text(text))
    console.print(table)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _by_size(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _counts(counts: dict[str, int], before: str = "") -> str:
    return before + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) if counts else ""


def _latency_summary(latencies: list[SubscriptionLatency]) -> str:
    times = [row.ms for row in latencies if row.ms is not None]
    if not latencies:
        return "there are no subscriptions"
    if not times:
        return f"none of {len(latencies)} subscriptions became active"
    silent = len(latencies) - len(times)
    late = f"; {silent} never became active" if silent else ""
    kinds = Counter(row.ready for row in latencies if row.ms is not None)
    meaning = next(iter(kinds)) if len(kinds) == 1 else ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{len(times)} active ({meaning}) after {median(times):g} ms (median), {max(times):g} ms (most){late}"


def _print_latencies(console: Console, latencies: list[SubscriptionLatency]) -> None:
    if not 0 < len(latencies) <= _LATENCIES_MAX:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    table.add_column("subscription", no_wrap=True, max_width=20)
    table.add_column("client", no_wrap=True, max_width=14)
    table.add_column("active", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("hops", justify="right", no_wrap=True)
    table.add_column("starts with event")
    for row in latencies:
        cut = ", ".join(f"{publisher}:{seq}" for publisher, seq in row.cut.items())
        ms = "never" if row.ms is None else f"{row.ms:g}"
        hops = "–" if row.hops is None else str(row.hops)
        table.add_row(row.subscription, row.client, f"({row.ready})", ms, hops, Text(cut))
    console.print()
    console.print(table)


def _print_refusals(console: Console, result: Result) -> None:
    if result.refusals:
        first = result.refusals[0]
        text = f"{_many(len(result.refusals), 'call')} refused; first at {first.time_us / 1000:g} ms, {first.client}, "
        console.print()
        console.print(Text(f"{text}{first.call}: {first.reason}", "yellow"))
