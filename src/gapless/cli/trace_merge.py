"""`gapless trace merge`: merges the trace parts of a live network's clients into the trace of one run."""

from pathlib import Path

from rich.text import Text

from gapless.checkers import incomplete_sentences
from gapless.cli.terminal import output_console, print_json
from gapless.trace import merge_parts, write_trace

__all__ = ["merge"]

SHOWN_MAX = 20
"""Maximum number of incomplete clients that are printed; `--json` lists all."""


def merge(directory: Path, out: Path, *, quiesced: bool, clock_skew_ms: float | None, as_json: bool) -> int:
    """Merge the parts and write the trace. Print the clients whose parts are incomplete."""
    trace = merge_parts(directory, quiesced=quiesced, clock_skew_ms=clock_skew_ms)
    write_trace(trace, out)
    said = incomplete_sentences(trace.cut_short)
    if as_json:
        print_json({
            "trace": str(out), "run": trace.runs[0].run, "events": len(trace.events), "acts": len(trace.history),
            "subscriptions": len(trace.subscriptions), "quiesced": quiesced,
            "clock_skew_ms": trace.runs[0].clock_skew_ms, "cut_short": list(said),
        })  # fmt: skip
        return 0
    console = output_console()
    summary = f"{len(trace.events):,} events, {len(trace.history):,} actions, {len(trace.subscriptions)} subscriptions"
    console.print(Text(f"{out}: {summary}; check it with  gapless check {out}"))
    for sentence in said[:SHOWN_MAX]:
        console.print(Text(sentence, "yellow"))
    if len(said) > SHOWN_MAX:
        console.print(Text(f"and {len(said) - SHOWN_MAX} more are incomplete; --json lists them all", "yellow"))
    return 0
