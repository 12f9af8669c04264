"""The total of all runs, in `out/fuzz/tally.json`, so that millions of inputs can be tried in several runs."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import msgspec

from tests.fuzz.loop import Summary

__all__ = ["Tally"]


class Total(msgspec.Struct):
    """The total of one target."""

    inputs: int = 0
    seconds: float = 0.0
    slowest_ms: float = 0.0
    growth_mb: float = 0.0
    """The largest growth of memory in one run."""
    findings: int = 0
    outcomes: dict[str, int] = {}

    def add(self, summary: Summary) -> None:
        self.inputs += summary.inputs
        self.seconds += summary.seconds
        self.slowest_ms = max(self.slowest_ms, summary.slowest_s * 1000)
        self.growth_mb = max(self.growth_mb, summary.growth_mb)
        self.findings += len(summary.findings)
        self.outcomes = dict(Counter(self.outcomes) + summary.outcomes)


class Tally:
    """The totals in one file. Each run is written as soon as it is over."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.totals: dict[str, Total] = {}
        if file.exists():
            self.totals = msgspec.json.decode(file.read_bytes(), type=dict[str, Total])

    def add(self, summary: Summary) -> None:
        self.totals.setdefault(summary.target, Total()).add(summary)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_bytes(msgspec.json.format(msgspec.json.encode(self.totals)))
        os.replace(new, self._file)

    def text(self) -> str:
        """Return a line for each target, and one for the total."""
        lines = [
            f"{name:16} {total.inputs:>12,} inputs  slowest {total.slowest_ms:5.1f} ms  "
            f"memory {total.growth_mb:+4.0f} MB  findings {total.findings}  ("
            + ", ".join(f"{count:,} {word}" for word, count in Counter(total.outcomes).most_common(6))
            + ")"
            for name, total in self.totals.items()
        ]
        totals = self.totals.values()
        inputs, found = sum(total.inputs for total in totals), sum(total.findings for total in totals)
        slowest = max((total.slowest_ms for total in totals), default=0.0)
        return "\n".join([*lines, f"{inputs:,} inputs in all, {found} findings, the slowest took {slowest:.1f} ms"])
