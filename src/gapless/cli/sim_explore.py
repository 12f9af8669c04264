"""`gapless sim explore`: runs all schedules of a small scenario within bounds, until one violates the guarantee."""

from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import TextColumn
from rich.text import Text

from gapless.checkers import Status
from gapless.cli.exit_codes import code_of
from gapless.cli.terminal import check_file, output_console, print_json, progress_bars
from gapless.cli.verdict_view import print_anomalies, status_text
from gapless.simulator import load_scenario
from gapless.simulator.explorer import Bounds, Report, explore, load_schedule, run_schedule, save_schedule
from gapless.simulator.scenario import Scenario

__all__ = ["explore_file"]


def explore_file(
    file: Path, delays: str | None, ticks: int | None, seconds: float, save: Path | None, *, as_json: bool
) -> int:
    """Explore the schedules, print the violation if there is one, and return the exit code."""
    scenario = load_scenario(file)
    if scenario.explore.schedule:
        return _repeat(scenario, as_json=as_json)
    if save is not None:
        check_file(save)
    bounds = Bounds(
        delays=scenario.explore.delays if delays is None else -1 if delays == "all" else int(delays),
        ticks=scenario.explore.ticks if ticks is None else ticks,
        seconds=seconds,
    )
    from_ms = scenario.explore.from_ms
    with progress_bars(TextColumn("exploring: {task.description}"), hidden=as_json) as progress:
        task = progress.add_task("")

        def report_progress(states: int, transitions: int) -> None:
            progress.update(task, description=f"{states:,} states, {transitions:,} transitions")

        report = explore(scenario, from_ms, bounds, report_progress)
    if report.symptom and save is not None:
        save_schedule(save, scenario, from_ms, report.schedule)
    if as_json:
        print_json({**msgspec.to_builtins(report), "status": _status(report)})
    else:
        _print(output_console(), scenario, report, bounds, save)
    return code_of(_status(report))


def _status(report: Report) -> Status:
    return "invalid" if report.symptom else "valid" if report.is_complete else "unknown"


def _print(console: Console, scenario: Scenario, report: Report, bounds: Bounds, save: Path | None) -> None:
    rate = report.transitions / max(report.seconds, 0.001)
    orders = "every order" if report.delays < 0 else f"up to {report.delays} delays"
    within = "all schedules" if report.is_complete else "some schedules"
    text = f"  {scenario.name}: {within} with {orders} and {bounds.ticks} timers"
    console.print(Text.assemble(status_text(_status(report)), text))
    console.print(
        f"  {report.states:,} states, {report.transitions:,} transitions ({rate:,.0f}/s), {report.schedules:,} ends"
    )
    console.print(f"  {report.node_states:,} states of single nodes; their code ran {report.node_steps:,} times")
    console.print(Text(f"  delivered: {', '.join(report.kinds)}", "dim"))
    if report.symptom:
        console.print(Text(f"{report.symptom}, after {len(report.schedule)} transitions", "bold red"))
        if save is None:
            console.print(Text("  (add --save FILE to keep the schedule)", "dim"))
        else:
            console.print("repeat it:", style="cyan")
            console.print(Text(f"  gapless sim explore {save}"), soft_wrap=True)


def _repeat(scenario: Scenario, *, as_json: bool) -> int:
    symptom, verdict = run_schedule(scenario, scenario.explore.from_ms, load_schedule(scenario))
    status: Status = "invalid" if symptom else "valid"
    if as_json:
        print_json({"status": status, "symptom": symptom, "transitions": len(scenario.explore.schedule)})
        return code_of(status)
    console = output_console()
    console.print(Text.assemble(status_text(status), f"  {scenario.name}: one schedule  {symptom}"))
    if verdict is not None and symptom:
        print_anomalies(console, verdict)
    return code_of(status)
