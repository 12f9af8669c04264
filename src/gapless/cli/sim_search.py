"""`gapless sim search`: tries seed after seed on all cores until one violates the guarantee."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from gapless.checkers import Status
from gapless.cli.exit_codes import code_of
from gapless.cli.option_values import parse_options, search_line
from gapless.cli.sim_search_spark import SparkChoice, search_on_spark
from gapless.cli.terminal import check_file, output_console, print_json, progress_bars
from gapless.cli.verdict_view import print_anomalies, status_text
from gapless.errors import ScenarioError
from gapless.protocol import ProtocolSpec
from gapless.registry import find_protocol
from gapless.simulator import Finding, GeneratorLimits, Scenario, SearchReport, search
from gapless.simulator import Progress as SearchProgress
from gapless.simulator.fault_plan import IN_FLIGHT, fault_kinds
from gapless.simulator.networks import overlay_of
from gapless.simulator.priorities import LATENCY

__all__ = ["search_seeds"]


def search_seeds(
    protocol: str, runs: int, first_seed: int, faults: str, f: int | None, scale: str, words: Sequence[str],
    save: Path | None, *, invariants: bool, schedule: str = LATENCY, as_json: bool, spark: SparkChoice | None = None,
) -> int:  # fmt: skip
    """Search, here or on Spark, print what was found, and return the exit code."""
    spec = find_protocol(protocol)
    options = parse_options(spec, words)
    kinds = fault_kinds(faults)
    if save is not None:
        check_file(save)
    with _interruptible(), _progress_bar(runs, hidden=as_json) as report_progress:
        if spark is None:
            report = search(
                spec, runs, first_seed, faults, options, on_progress=report_progress,
                limits=GeneratorLimits(f=f), scale=scale, invariants=invariants, schedule=schedule,
            )  # fmt: skip
        elif schedule != LATENCY:
            raise ScenarioError("--spark orders deliveries by latency: leave out --schedule or --spark")
        else:
            report = search_on_spark(
                spec,
                runs,
                first_seed,
                faults,
                options,
                f,
                scale,
                invariants=invariants,
                where=spark,
                report_progress=report_progress,
            )
    finding = report.finding
    repeat = None if finding is None else search_line(spec.name, faults, finding.seed, words, f, scale, schedule)
    if save is not None and finding is not None:
        save.parent.mkdir(parents=True, exist_ok=True)
        save.write_text(finding.minimal.to_toml(), encoding="utf-8")
    if as_json:
        print_json(_document(report, repeat, save))
    else:
        console = output_console()
        _print_report(console, report)
        _print_claims(console, spec, kinds)
        if finding is not None and repeat is not None:
            _print_finding(console, finding, repeat, save)
    return code_of(_status(report))


def _status(report: SearchReport) -> Status:
    """Return the status of a search. It is unknown only if no run could be checked."""
    if report.finding is not None:
        return "invalid"
    return "valid" if report.valid else "unknown"


# ---- during the search ------------------------------------------------------------------------------------------


@contextmanager
def _interruptible() -> Iterator[None]:
    """Handle Ctrl-C only in this process, which then ends the worker processes. The signal reaches every process of the
    group."""
    here = os.getpid()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if os.getpid() == here:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress_bar(runs: int, *, hidden: bool) -> Iterator[Callable[[SearchProgress], None]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", style="yellow"),
    )
    with progress_bars(*columns, hidden=hidden) as progress:
        task = progress.add_task("searching", total=runs, note="")

        def report_progress(now: SearchProgress) -> None:
            note = f"{now.unknown} unknown" if now.unknown else ""
            if now.phase == "shrink":
                progress.update(task, description="reducing the scenario", note=f"{now.rows} rows left")
            else:
                progress.update(task, completed=now.runs, note=note)

        yield report_progress


# ---- results ----------------------------------------------------------------------------------------------------


def _document(report: SearchReport, repeat: str | None, save: Path | None) -> dict[str, Any]:
    finding = report.finding
    document: dict[str, Any] = {
        "protocol": report.protocol,
        "faults": report.faults,
        "first_seed": report.first_seed,
        "runs": report.runs,
        "valid": report.valid,
        "unknown": report.unknown,
        "status": _status(report),
        "finding": None,
    }
    if finding is not None:
        verdict = finding.verdict
        document["finding"] = {
            "seed": finding.seed,
            "symptom": finding.symptom,
            "verdict": None if verdict is None else {**msgspec.to_builtins(verdict), "counts": verdict.counts},
            "summary": finding.outcome.summary,
            "traceback": finding.outcome.traceback_text,
            "minimal_toml": finding.minimal.to_toml(),
            "repeat": repeat,
            "saved": None if save is None else str(save),
        }
    return document


def _print_report(console: Console, report: SearchReport) -> None:
    seeds = f"seeds {report.first_seed} to {report.first_seed + report.runs - 1}"
    seeds = seeds if report.runs > 1 else f"seed {report.first_seed}"
    unknown = f", {report.unknown} unknown" if report.unknown else ""
    text = f"  {report.protocol}, faults: {report.faults}, {seeds}: {report.valid} valid{unknown}"
    console.print(Text.assemble(status_text(_status(report)), text))


def _print_claims(console: Console, spec: ProtocolSpec, kinds: Sequence[str]) -> None:
    claimed = {*spec.copes_with, *([IN_FLIGHT] if "crash" in spec.copes_with else [])}
    beyond = [kind for kind in kinds if kind not in claimed]
    if beyond:
        console.print(Text(f"{spec.name} does not claim to tolerate: {', '.join(beyond)}", "yellow"))


def _print_finding(console: Console, finding: Finding, repeat: str, save: Path | None) -> None:
    console.print(f"seed {finding.seed} shows [bold red]{finding.symptom}[/]; smallest scenario that still shows it:")
    console.print(Text(f"  {_size_of(finding.minimal)}", "dim"))
    if finding.verdict is not None:
        print_anomalies(console, finding.verdict)
    else:
        console.print(Text.assemble(("BROKEN", "bold red"), "  ", finding.outcome.summary))
        console.print(Padding(Text(finding.outcome.traceback_text.rstrip(), "dim"), (0, 0, 0, 2)))
    console.print()
    console.print("repeat it:", style="cyan")
    console.print(Text(f"  {repeat}"), soft_wrap=True)
    if save is not None:
        console.print("or run the reduced scenario, which was saved:", style="cyan")
        console.print(Text(f"  gapless sim run {save}"), soft_wrap=True)
    else:
        console.print(Text("  (add --save FILE to keep the small scenario)", "dim"))


def _size_of(scenario: Scenario) -> str:
    sizes = {
        "brokers": len(overlay_of(scenario.network).brokers),
        "clients": len(scenario.clients),
        "actions": len(scenario.actions),
        "replies": len(scenario.replies),
        "faults": len(scenario.faults),
    }
    return ", ".join(f"{count} {kind if count != 1 else _SINGULAR[kind]}" for kind, count in sizes.items() if count)


_SINGULAR = {"brokers": "broker", "clients": "client", "actions": "action", "replies": "reply", "faults": "fault"}
