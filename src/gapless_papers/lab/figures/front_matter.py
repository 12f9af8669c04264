"""The parts of the report that come before its chapters: abstract, method, environment, and threats to validity."""

import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path

import msgspec

from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.figures.claims import RUNS_LEAST, Judgement
from gapless_papers.lab.figures.estimate import CONFIDENCE

__all__ = ["Environment", "abstract", "environment_of_this_machine", "environment_table", "method", "threats"]

_LIBRARIES = ("msgspec", "numpy", "matplotlib", "pyarrow")
"""The libraries that take part in a run or in a drawing."""

_THREATS = (
    (
        "Construct",
        "A simulated hop has the latency that the experiment states and no bandwidth, unless its setup says so. "
        "Processing takes no time. Latencies in milliseconds of virtual time therefore compare protocols, and "
        "predict no machine.",
    ),
    (
        "Readings",
        "Papers leave choices open. Each claim names the reading by which it is judged. A reading with choices that "
        "were made so that the numbers fit confirms nothing about the numbers to which it was fitted.",
    ),
    (
        "Implementation",
        "All protocols were written from the papers by the authors of one of them. The checker that judges "
        "deliveries shares no code with the protocols. A defect in a protocol that the checker cannot see can still "
        "shift a latency.",
    ),
    (
        "Statistics",
        f"Intervals are Student's, of means over independent seeds. Judging many claims at {CONFIDENCE:.0%} means "
        "that some intervals miss the true mean. No correction is made for that.",
    ),
    (
        "Scope",
        "Workloads and networks are those of the papers. They say little about other workloads, larger "
        "networks, or real machines.",
    ),
)


class Environment(msgspec.Struct, frozen=True):
    """The machine and the software that made a report."""

    machine: str
    processors: int
    system: str
    python: str
    libraries: tuple[tuple[str, str], ...]


def environment_of_this_machine() -> Environment:
    """Return the machine and the software of this process."""
    return Environment(
        machine=_processor_name(),
        processors=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        libraries=tuple((name, version(name)) for name in _LIBRARIES),
    )


def _processor_name() -> str:
    """Return the processor's model if the system reports it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def abstract(judgements: Sequence[Judgement], runs: int, papers: int) -> str:
    """Return the result in one paragraph."""
    counts = Counter(judgement.verdict for judgement in judgements)
    numbers = sum(judgement.claim.paper is not None for judgement in judgements)
    source = "one paper" if papers == 1 else f"{papers} papers"
    return (
        f"<p>This report repeats the measurements of {source} in {runs:,} simulated runs and compares "
        f"{len(judgements):,} statements of the papers with the results: {numbers:,} numbers and "
        f"{len(judgements) - numbers:,} shapes of curves. {counts['agrees']:,} agree, {counts['differs']:,} differ, "
        f"{counts['uncertain']:,} cannot be decided with these runs, and {counts['unmeasured']:,} were not "
        "measured.</p>"
    )


def method() -> str:
    """Return the section that explains how runs become verdicts."""
    return (
        "<p>Each protocol is a deterministic state machine that runs in a discrete-event simulator. A run is a "
        "function of the experiment's file, its place in the grid, the seed, and the code. Repetitions differ in the "
        f"seed only.</p><p>A number is the mean over all seeds, with its interval of {CONFIDENCE:.0%} confidence. It "
        "<em>agrees</em> with the paper's number if the difference is within the tolerance of the claim, which is a "
        "share of the effect that the paper reports: of 97.5 % delivered, a share of the missing 2.5 %. The verdict "
        f"is <em>cannot tell</em> with fewer than {RUNS_LEAST} runs, with an interval wider than the tolerance, or "
        "if the intervals of both numbers together are wider than the difference. Otherwise the number "
        "<em>differs</em>, and the table gives the reason, if it is known. A shape (flat, grows, falls) must hold on "
        f"every line of its figure, with at least {RUNS_LEAST} runs behind each point. A reading in which nothing is "
        "random, such as one with constant latencies, is judged with fewer runs if these give equal numbers.</p>"
    )


def threats() -> str:
    """Return the section on threats to validity."""
    items = "".join(f"<li><strong>{name}.</strong> {escape(text)}</li>" for name, text in _THREATS)
    return f'<ul class="threats">{items}</ul>'


def environment_table(environment: Environment, experiments: Iterable[Experiment]) -> str:
    """Return the machine, the software, and the seeds as a table."""
    libraries = ", ".join(f"{name} {number}" for name, number in environment.libraries)
    rows = (
        ("Processor", f"{environment.machine}, {environment.processors} logical processors"),
        ("System", environment.system),
        ("Python", environment.python),
        ("Libraries", libraries),
        ("Seeds", "; ".join(f"{item.name}: {_seeds_text(item)}" for item in experiments)),
    )
    body = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f'<table class="environment"><tbody>{body}</tbody></table>'


def _seeds_text(experiment: Experiment) -> str:
    kinds = [grid.get("seeds", experiment.seeds) for grid in experiment.grid]
    texts = (_range_text(kind) if isinstance(kind, int) else ", ".join(map(str, kind)) for kind in kinds)
    return " and ".join(dict.fromkeys(texts))


def _range_text(seeds: int) -> str:
    return "0" if seeds == 1 else f"0 to {seeds - 1}"
