"""Formats a verdict: one coloured line, and for each kind of anomaly one example with its evidence."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from gapless.checkers import Anomaly, Status, Verdict

__all__ = ["STYLES", "print_anomalies", "print_cut_short", "print_verdict", "status_text"]

CUT_SHORT_MAX = 10
"""Maximum number of incomplete clients that are listed."""

STYLES: dict[Status, str] = {"valid": "bold green", "invalid": "bold red", "unknown": "bold yellow"}


def status_text(status: Status) -> Text:
    """Return the status in its colour."""
    return Text(status.upper(), STYLES[status])


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Print the verdict, with evidence for one anomaly of each kind."""
    if verdict.status == "invalid":
        found = ", ".join(f"{count} {kind}" for kind, count in verdict.counts.items())
        console.print(Text.assemble(status_text("invalid"), "  ", (found, "red")))
        print_anomalies(console, verdict)
    else:
        console.print(Text.assemble(status_text(verdict.status), "  ", verdict.reason))
    if verdict.reported_losses:
        summary = f"{verdict.reported_losses:,} losses were reported to the subscriptions that they concern"
        console.print(Padding(Text(summary, "yellow"), (0, 0, 0, 2)))
    print_cut_short(console, verdict.cut_short)


def print_cut_short(console: Console, sentences: Sequence[str]) -> None:
    """Print the clients whose part of the trace is incomplete."""
    for sentence in sentences[:CUT_SHORT_MAX]:
        console.print(Padding(Text(sentence, "yellow"), (0, 0, 0, 2)))
    if len(sentences) > CUT_SHORT_MAX:
        console.print(
            Text(f"  and {len(sentences) - CUT_SHORT_MAX} more are incomplete; --json lists them all", "yellow")
        )


def print_anomalies(console: Console, verdict: Verdict) -> None:
    """Print the first anomaly of each kind."""
    for anomaly in _first_of_each_kind(verdict):
        lines = Text.assemble((anomaly.kind, "red"), "  ", anomaly.message)
        lines.append(f"\nwitness: {' → '.join(anomaly.witness)}" if anomaly.witness else "", "dim")
        console.print(Padding(lines, (0, 0, 0, 2)))
    left = len(verdict.anomalies) - len(verdict.counts)
    if left > 0:
        console.print(Text(f"  and {left} more of the same kind; --json lists them all", "dim"))


def _first_of_each_kind(verdict: Verdict) -> Iterator[Anomaly]:
    for kind in verdict.counts:
        yield next(anomaly for anomaly in verdict.anomalies if anomaly.kind == kind)
