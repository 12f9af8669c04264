"""`gapless audit --live`: checks a running network from the trace parts that its clients write.

Anomalies are printed when they are found. On a terminal, a table shows how far each subscription
lags. The audit ends when it is interrupted, or when nothing more is written, with the verdict
on what was read.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gapless.checkers import Anomaly, Verdict
from gapless.cli.audit import FOR_SMALL
from gapless.cli.exit_codes import UNKNOWN, code_of
from gapless.cli.terminal import output_console, print_json_line, spinner
from gapless.cli.verdict_view import print_verdict, status_text
from gapless.errors import SparkError, TraceError

if TYPE_CHECKING:
    from gapless.checkers.live import SubscriptionReport
    from gapless_spark.live.query import Batch, LiveAudit

__all__ = ["View", "audit_live"]

ROWS_MAX = 20
"""Maximum number of subscriptions in the table. Those with anomalies come first, then those that lag most."""
LOOK_S = 0.5
TICKS = 3
"""The number of consecutive empty batches after which the run is considered finished."""


def audit_live(
    directory: str, *, master: str | None, every_s: float, quiet_s: float | None, clock_skew_ms: float | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Check the network until it is quiet or interrupted. Return the exit code of the verdict."""
    _must_take_parts(Path(directory))
    try:
        from gapless_spark.live.query import SETTINGS, LiveAudit
        from gapless_spark.session import spark_session
    except ModuleNotFoundError as error:
        raise SparkError(
            f"the audit needs {error.name}, which is not installed; install it with: pip install 'gapless[spark]'"
        ) from None
    view = _Lines() if as_json else View(directory)
    with ExitStack() as stack:
        with spinner("starting Spark"):
            spark = stack.enter_context(spark_session(master=master, settings={**FOR_SMALL, **SETTINGS}))
        was_interrupted = stack.enter_context(_interruptible())
        audit = stack.enter_context(LiveAudit(spark, directory, every_s=every_s, clock_skew_ms=clock_skew_ms))
        with view.shown():
            is_quiet = _watch(audit, view, quiet_s, was_interrupted)
        verdict = audit.verdict(quiesced=is_quiet)
    if verdict is None:
        view.end_without(f"no client has written to {directory} yet")
        return UNKNOWN
    view.end(verdict, sum(report.unjudged for report in audit.reports.values()))
    return code_of(verdict.status)


def _must_take_parts(place: Path) -> None:
    """Raise an error unless the directory exists and contains only trace parts. Clients may write theirs later."""
    if not place.is_dir():
        raise TraceError(
            f"there is no directory {place}; gapless up --trace {place} creates it, and makes clients write to it"
        )
    if (place / "runs").is_dir():
        raise TraceError(f"the trace at {place} is already merged; leave out --live")


def _watch(audit: "LiveAudit", view: "View | _Lines", quiet_s: float | None, is_over: Callable[[], bool]) -> bool:
    """Show each batch as it arrives. Return whether the watch ended because no more data was written."""
    last, idle = time.monotonic(), 0
    while not is_over():
        batch = audit.next(LOOK_S)
        if batch is not None:
            idle = 0 if batch.run.read else idle + 1
            last = last if idle else time.monotonic()
            view.show(batch, audit.reports.values())
        if quiet_s is not None and idle >= TICKS and time.monotonic() - last >= quiet_s:
            return True
    return False


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C and SIGTERM end the audit with a verdict, even while Spark is busy. Yield a function that returns
    whether such a signal arrived."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in _SIGNALS}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class _Lines:
    """Output for programs: one JSON line per batch, and the verdict as the last line."""

    def shown(self) -> AbstractContextManager[None]:
        return nullcontext()

    def show(self, batch: "Batch", reports: "Iterable[SubscriptionReport]") -> None:
        """Print new anomalies and the lag of all subscriptions."""
        every = list(reports)
        print_json_line({
            "batch": batch.number, "read": batch.run.read, "events": batch.run.events,
            "deliveries": sum(report.deliveries for report in every), "lag": sum(report.lag for report in every),
            "open": sum(report.open for report in every) + batch.run.held,
            "subscriptions": [_row(report) for report in batch.subscriptions],
            "anomalies": batch.anomalies, "withdrawn": batch.withdrawn,
        })  # fmt: skip

    def end_without(self, reason: str) -> None:
        """Print why nothing was read, as the last line."""
        print_json_line({"verdict": {"status": "unknown", "reason": reason}})

    def end(self, verdict: Verdict, unjudged: int) -> None:
        """Print the verdict as the last line."""
        document: dict[str, Any] = msgspec.to_builtins(verdict)
        print_json_line({"verdict": {**document, "counts": verdict.counts, "unjudged": unjudged}})


def _row(report: "SubscriptionReport") -> dict[str, Any]:
    return {
        "subscription": report.subscription, "client": report.client, "state": report.state,
        "deliveries": report.deliveries, "lag": report.lag, "behind_ms": report.behind_ms,
        "anomalies": len(report.anomalies) + sum(report.more.values()),
    }  # fmt: skip


class View:
    """Output for people: anomalies as text, and a live table on a terminal."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._console: Console = output_console()
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the live table inside the block."""
        if not self._console.is_terminal:
            yield
            return
        waiting = Text(f"reading {self._directory}; Ctrl-C ends it with the verdict", "dim")
        with Live(waiting, console=self._console, transient=True, auto_refresh=False) as self._live:
            yield

    def show(self, batch: "Batch", reports: "Iterable[SubscriptionReport]") -> None:
        """Print new anomalies and update the table."""
        for anomaly in batch.anomalies:
            self._console.print(_line(anomaly, batch.number))
        for anomaly in batch.withdrawn:
            line = (
                f"batch {batch.number}  {anomaly.event} arrived late for {anomaly.subscription}: not a {anomaly.kind}"
            )
            self._console.print(Text(line, "dim"))
        if self._live is not None:
            self._live.update(self._table(batch, list(reports)), refresh=True)

    def end_without(self, reason: str) -> None:
        """Print why nothing was read."""
        self._console.print(Text.assemble(status_text("unknown"), "  ", reason))

    def end(self, verdict: Verdict, unjudged: int) -> None:
        counted = f"{verdict.events:,} events, {verdict.subscriptions} subscriptions, {verdict.deliveries:,} deliveries"
        self._console.print(Text(f"{verdict.run}: {counted}"))
        print_verdict(self._console, verdict)
        if unjudged:
            line = (
                f"  {unjudged:,} deliveries could not be checked here, because they are too old or belong "
                "to durable subscriptions; run gapless trace merge, then gapless audit"
            )
            self._console.print(Text(line, "yellow"))

    def _table(self, batch: "Batch", reports: "list[SubscriptionReport]") -> RenderableType:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
        table.add_column("subscription", no_wrap=True, style="bold", max_width=28)
        table.add_column("", no_wrap=True)
        for heading in ("delivered", "lag", "behind", "anomalies"):
            table.add_column(heading, justify="right", no_wrap=True)
        worst = sorted(reports, key=lambda report: (-len(report.anomalies), -report.lag, report.subscription))
        for report in worst[:ROWS_MAX]:
            wrong = len(report.anomalies) + sum(report.more.values())
            behind = f"{report.behind_ms / 1000:,.1f} s" if report.lag else ""
            table.add_row(
                Text(report.subscription), report.state, f"{report.deliveries:,}", f"{report.lag:,}", behind,
                Text(f"{wrong:,}", "bold red" if wrong else "green"),
            )  # fmt: skip
        left = len(reports) - ROWS_MAX
        run = batch.run
        heading = f"{run.events:,} events, batch {batch.number}; Ctrl-C ends it with the verdict"
        lines = [Text(f"and {left:,} more", "dim")] if left > 0 else []
        return Group(Text(heading, "dim"), table, *lines)


def _line(anomaly: Anomaly, batch: int) -> Text:
    return Text.assemble((f"batch {batch}  ", "dim"), (anomaly.kind, "red"), "  ", anomaly.message)
