"""`gapless trace merge`: the parts that clients of a live network wrote, as the trace of one run."""

from pathlib import Path

from rich.text import Text

from gapless.cli.terminal import output_console, print_json
from gapless.trace import merge_parts, write_trace

__all__ = ["merge"]


def merge(directory: Path, out: Path, *, quiesced: bool, as_json: bool) -> int:
    """Put the parts together, and write them."""
    trace = merge_parts(directory, quiesced=quiesced)
    write_trace(trace, out)
    if as_json:
        print_json({
            "trace": str(out), "run": trace.runs[0].run, "events": len(trace.events), "acts": len(trace.history),
            "subscriptions": len(trace.subscriptions), "quiesced": quiesced,
        })  # fmt: skip
    else:
        told = f"{len(trace.events):,} events, {len(trace.history):,} acts, {len(trace.subscriptions)} subscriptions"
        output_console().print(Text(f"{out}: {told}; judge it with  gapless check {out}"))
    return 0
