"""`gapless check`: checks every run of a recorded trace."""

from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from gapless.checkers import check_all
from gapless.cli.exit_codes import code_of, worst
from gapless.cli.terminal import output_console, print_json
from gapless.cli.verdict_view import print_anomalies, print_verdict, status_text
from gapless.protocol import GUARANTEE_NAMES
from gapless.trace import read_trace

__all__ = ["check_trace"]

_SHOWN_MAX = 3
"""Maximum number of invalid runs that are shown with their anomalies."""


def check_trace(directory: Path, *, as_json: bool) -> int:
    """Check the trace, print the result, and return the exit code: the worst of all runs."""
    verdicts = check_all(read_trace(directory))
    status = worst(verdict.status for verdict in verdicts)
    if as_json:
        runs = [{**msgspec.to_builtins(verdict), "counts": verdict.counts} for verdict in verdicts]
        print_json({"trace": str(directory), "status": status, "runs": runs})
        return code_of(status)
    console = output_console()
    if not verdicts:
        console.print(Text.assemble(status_text("unknown"), "  the trace contains no run"))
        return code_of(status)
    if len(verdicts) == 1:
        only = verdicts[0]
        promised = GUARANTEE_NAMES[only.guarantee]
        console.print(Text(f"{only.run}: {only.events:,} events, {only.subscriptions} subscriptions, {promised}"))
        print_verdict(console, only)
        return code_of(status)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for heading in ("run", "promised", "events", "deliveries", "verdict", ""):
        table.add_column(heading, justify="right" if heading in ("events", "deliveries") else "left")
    for verdict in verdicts:
        found = ", ".join(f"{count} {kind}" for kind, count in verdict.counts.items())
        found += f"{', ' if found else ''}{len(verdict.cut_short)} cut short" if verdict.cut_short else ""
        numbers = (f"{verdict.events:,}", f"{verdict.deliveries:,}")
        table.add_row(
            Text(verdict.run), GUARANTEE_NAMES[verdict.guarantee], *numbers, status_text(verdict.status), Text(found)
        )
    console.print(table)
    for verdict in [verdict for verdict in verdicts if verdict.anomalies][:_SHOWN_MAX]:
        console.print(Text(f"\n{verdict.run}", "bold"))
        print_anomalies(console, verdict)
    return code_of(status)
