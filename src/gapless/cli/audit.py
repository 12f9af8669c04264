"""`gapless audit`: checks every run of a trace, in this process or on Spark."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gapless.checkers.verdict_rows import Row, first_anomalies
from gapless.cli.audit_here import fits_here, judge_here
from gapless.cli.exit_codes import code_of, worst
from gapless.cli.terminal import output_console, print_json, spinner
from gapless.cli.verdict_view import print_cut_short, status_text
from gapless.errors import SparkError
from gapless.protocol import GUARANTEE_NAMES
from gapless.trace.results import must_take_results

__all__ = ["audit_trace", "judge_on_spark"]

RUNS_SHOWN_MAX = 40
"""Maximum number of rows in the table of runs. If there are more, runs that are not valid come first."""

EXAMPLES_MAX = 3
"""Maximum number of invalid runs that are shown with their anomalies."""

LISTED_MAX = 1000
"""Maximum number of anomalies in the JSON document. The tables that --out writes have all of them."""

RESULTS = ("verdicts", "anomalies")
"""The tables that --out writes."""

FOR_SMALL = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for small traces: with thousands of rows, Spark spends most of its time on compiling plans that run once."""


def audit_trace(trace: str, *, master: str | None, remote: str | None, out: Path | None, as_json: bool) -> int:
    """Check the trace, print the result, and return the exit code: the worst of all runs.

    Spark is used if the user names a master, or if the trace is remote or too large for this
    process.
    """
    here = None if master or remote else _place_here(trace)
    if out is not None:
        must_take_results(out, RESULTS)  # before a long audit, so that its results can be written
    if here is not None and fits_here(here):
        verdicts, found = judge_here(here, out)
        found = first_anomalies(found, LISTED_MAX)
    else:
        with spinner("starting Spark") as announce:
            verdicts, found = judge_on_spark(trace, master, remote, out, on_start=lambda: announce("checking on Spark"))
    status = worst(verdict["status"] for verdict in verdicts)
    if as_json:
        print_json(_document(trace, status, verdicts, found))
    else:
        _show(verdicts, found)
    return code_of(status)


def judge_on_spark(
    trace: str,
    master: str | None = None,
    remote: str | None = None,
    out: Path | None = None,
    settings: Mapping[str, str] | None = None,
    on_start: Callable[[], None] = lambda: None,
) -> tuple[list[Row], list[Row]]:
    """Return the verdict on each run, and the first anomalies; raise a `SparkError` if Spark or
    Java is missing.

    `on_start` is called when Spark has started. If Spark runs on this machine and workers can check
    the whole trace, it is started with settings for small work, unless `settings` override them.
    """
    try:
        from gapless_spark.audit import audit
        from gapless_spark.session import spark_session
        from gapless_spark.tables import read_tables, write_tables
    except ModuleNotFoundError as error:
        raise SparkError(
            f"the audit needs {error.name}, which is not installed; install it with: pip install 'gapless[spark]'"
        ) from None
    is_local = remote is None and (master or "local").startswith("local")
    here = _place_here(trace) if is_local else None
    if settings is None and here is not None and fits_here(here):
        settings = FOR_SMALL
    with spark_session(master=master, remote=remote, settings=settings) as spark:
        on_start()
        result = audit(spark, read_tables(spark, trace))
        if out is not None:
            write_tables(dict(zip(RESULTS, (result.verdicts, result.anomalies), strict=True)), out)
        verdicts, found = result.summary(LISTED_MAX)
        return verdicts, found


def _place_here(trace: str) -> Path | None:
    """Return the directory of a trace on this machine, or None if it is elsewhere."""
    path = re.sub(r"^file:/+", "/", trace)
    return None if "://" in path else Path(path)


def _document(trace: str, status: str, verdicts: Sequence[Row], found: Sequence[Row]) -> Row:
    by_run: dict[str, list[Row]] = {}
    for row in found:
        by_run.setdefault(row["run"], []).append({key: value for key, value in row.items() if key != "run"})
    total = sum(verdict["anomalies"] for verdict in verdicts)
    runs = [{**verdict, "anomalies": by_run.get(verdict["run"], [])} for verdict in verdicts]
    return {"trace": trace, "status": status, "runs": runs, "anomalies_not_listed": total - len(found)}


def _show(verdicts: Sequence[Row], found: Sequence[Row]) -> None:
    console = output_console()
    if not verdicts:
        console.print(Text.assemble(status_text("unknown"), "  the trace contains no run"))
        return
    ordered = sorted(verdicts, key=lambda verdict: ("invalid", "unknown", "valid").index(verdict["status"]))
    shown = verdicts if len(verdicts) <= RUNS_SHOWN_MAX else ordered[:RUNS_SHOWN_MAX]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="cyan")
    for heading in ("run", "promised", "events", "deliveries", "verdict", ""):
        table.add_column(heading, justify="right" if heading in ("events", "deliveries") else "left")
    for verdict in shown:
        numbers = (f"{verdict['events']:,}", f"{verdict['deliveries']:,}")
        promised = GUARANTEE_NAMES[verdict["guarantee"]]
        why = _counted(verdict) if verdict["status"] == "invalid" else verdict["reason"]
        table.add_row(Text(verdict["run"]), promised, *numbers, status_text(verdict["status"]), Text(why))
    console.print(table)
    if len(shown) < len(verdicts):
        console.print(Text(f"and {len(verdicts) - len(shown):,} more runs", "dim"))
    for verdict in [verdict for verdict in ordered if verdict["anomalies"]][:EXAMPLES_MAX]:
        console.print(Text(f"\n{verdict['run']}", "bold"))
        _show_examples(console, verdict, [row for row in found if row["run"] == verdict["run"]])
    for verdict in shown:
        print_cut_short(console, verdict["cut_short"])
    if len(verdicts) > 1:
        counts = {status: sum(v["status"] == status for v in verdicts) for status in ("valid", "unknown", "invalid")}
        console.print(Text("\n" + ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)))


def _counted(verdict: Row) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in verdict["counts"].items())


def _show_examples(console: Any, verdict: Row, found: Sequence[Row]) -> None:
    examples = {row["kind"]: row for row in reversed(found)}
    for kind in verdict["counts"]:
        row = examples.get(kind)
        if row is not None:
            lines = Text.assemble((kind, "red"), "  ", row["message"])
            lines.append(f"\nwitness: {' → '.join(row['witness'])}" if row["witness"] else "", "dim")
            console.print(Padding(lines, (0, 0, 0, 2)))
    left = verdict["anomalies"] - len(examples)
    if left > 0:
        console.print(Text(f"  and {left:,} more of the same kind; --out keeps them all", "dim"))
