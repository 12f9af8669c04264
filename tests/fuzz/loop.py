"""Generates, changes and runs inputs until the time is over, and evaluates the results.

All draws depend only on the seed. A pool keeps some inputs, new and changed, so that changes accumulate. A finding is
saved once for each place in the code that raised it.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.fuzz.target import Target

__all__ = ["LONG_S", "Finding", "Summary", "fuzz", "judge"]

LONG_S = 0.1
"""The maximum processor time of an input, as for a turn of the event loop."""
GROWTH_MAX_MB = 200
"""The maximum growth of memory after the first inputs."""
WARM = 2_000
LOOK_EVERY = 1_000
POOL = 200


@dataclass
class Finding:
    """An input that led to a forbidden result."""

    kind: str
    text: str
    data: bytes

    def save(self, directory: Path, target: str) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{target}-{hashlib.sha256(self.data).hexdigest()[:8]}"
        path.write_bytes(self.data)
        path.with_suffix(".txt").write_text(f"{self.kind}\n\n{self.text}", encoding="utf-8", errors="replace")
        return path


@dataclass
class Summary:
    """The results of a run of one target."""

    target: str
    inputs: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    growth_mb: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def line(self) -> str:
        rate = self.inputs / self.seconds if self.seconds else 0
        outcomes = ", ".join(f"{count:,} {word}" for word, count in self.outcomes.most_common(6))
        return (
            f"{self.target:16} {self.inputs:>12,} inputs {rate:>8,.0f}/s  slowest {self.slowest_s * 1000:5.1f} ms  "
            f"memory {self.growth_mb:+4.0f} MB  findings {len(self.findings)}  ({outcomes})"
        )


def judge(target: Target, data: bytes, summary: Summary) -> Finding | None:
    summary.inputs += 1
    begun = time.process_time()
    try:
        summary.outcomes[target.run(data)] += 1
    except Exception as error:
        return Finding(type(error).__name__, traceback.format_exc(), data)
    taken = time.process_time() - begun
    if taken > LONG_S:
        taken = min(taken, _time_again(target, data), _time_again(target, data))
        if taken > LONG_S:
            return Finding("slow", f"it takes {taken * 1000:.0f} ms", data)
    summary.slowest_s = max(summary.slowest_s, taken)
    return None


def _time_again(target: Target, data: bytes) -> float:
    begun = time.process_time()
    target.run(data)
    return time.process_time() - begun


def fuzz(
    target: Target, seed: int, *, inputs: int | None = None, seconds: float | None = None, corpus: Iterable[bytes] = ()
) -> Summary:
    """Run a number of inputs, or for some time. The pool starts with the corpus."""
    dice, pool, summary = Random(f"{target.name}/{seed}"), [b"", *corpus], Summary(target.name)
    places: set[str] = set()
    begun, base = time.monotonic(), 0.0
    while summary.inputs != inputs and (seconds is None or time.monotonic() - begun < seconds):
        data = _next(target, dice, pool)
        finding = judge(target, data, summary)
        if finding is not None and _place(finding) not in places:
            places.add(_place(finding))
            summary.findings.append(finding)
        if summary.inputs == WARM:
            base = _memory_mb()
        elif summary.inputs > WARM and summary.inputs % LOOK_EVERY == 0:
            summary.growth_mb = _memory_mb() - base
            if summary.growth_mb > GROWTH_MAX_MB and "memory" not in places:
                places.add("memory")
                summary.findings.append(Finding("memory", f"{summary.growth_mb:.0f} MB more than after {WARM}", data))
    summary.seconds = time.monotonic() - begun
    return summary


def _next(target: Target, dice: Random, pool: list[bytes]) -> bytes:
    share = dice.random()
    if share < 0.5:
        data = target.draw(dice)
        if share > 0.1:
            data = target.change(data, dice)
    else:
        data = target.change(dice.choice(pool), dice)
    if len(pool) < POOL:
        pool.append(data)
    elif dice.random() < 0.1:
        pool[dice.randrange(len(pool))] = data
    return data


def _place(finding: Finding) -> str:
    lines = [line.strip() for line in finding.text.splitlines() if line.strip().startswith("File ")]
    return finding.kind + "".join(lines[-2:])


def _memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6
