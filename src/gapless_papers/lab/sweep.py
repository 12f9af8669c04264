"""A sweep: runs all unfinished cases of an experiment in a pool of workers.

One kind of pool is the processes of this machine (`process_pool`), another is a Spark cluster
(`gapless_spark.task_pool`). A sweep depends on neither: it hands out cases, the longest first, and stores each result
as soon as it arrives. An interrupted sweep loses only the cases that were running.

A failing case is reported and does not affect the others, even if it kills its worker (out of memory, for example).
"""

import shlex
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Protocol, TypeAlias

import msgspec
import pyarrow as pa

from gapless_papers.lab.experiment import Experiment
from gapless_papers.lab.experiment_file import workload_of
from gapless_papers.lab.grid import Case
from gapless_papers.lab.store import Failure, Store
from gapless_papers.lab.tasks import DONE, carry_out

__all__ = ["Found", "Pool", "Progress", "SweepReport", "Work", "repeat_line", "run_sweep"]

Work: TypeAlias = Callable[[str, str], dict[str, Any]]
"""Takes the key and the text of a task; returns a row."""
Found: TypeAlias = Generator[tuple[str, dict[str, Any] | None], None, None]
"""The key of each task with its row, in order of completion; without a row if the task's worker died."""


class Pool(Protocol):
    """Workers that run tasks."""

    def run(
        self, work: Work, tasks: Sequence[tuple[str, str]], schema: pa.Schema, on_done: Callable[[int], None]
    ) -> Found:
        """Run the tasks, started in the given order. The rows have the schema.

        `on_done` can be called with the number of finished tasks before their rows arrive; that number is an estimate.
        """
        ...


class Progress(msgspec.Struct, frozen=True):
    """The progress of a sweep."""

    done: int
    failed: int
    total: int


class SweepReport(msgspec.Struct, frozen=True):
    """The outcome of a sweep."""

    experiment: str
    runs: int
    """The number of runs that the experiment asks for."""
    found: int
    """The number of runs that were finished already."""
    failures: tuple[Failure, ...]
    seconds: float
    run_seconds: float
    """The sum of the durations of all runs."""


def repeat_line(experiment: Experiment, case: Case, *, quick: bool) -> str:
    """Return the command that repeats this case alone."""
    line = ["gapless", "lab", "run", experiment.file, "--only", case.name]
    return shlex.join([*line, "--quick"] if quick else line)


def run_sweep(
    experiment: Experiment, cases: Sequence[Case], store: Store, pool: Pool, *, quick: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> SweepReport:  # fmt: skip
    """Run and store the unfinished cases, and make the tables. The pool is not used if every case is finished."""
    start = time.perf_counter()
    todo = {case.key(): case for case in cases}
    found = [key for key in todo if store.has(key)]
    for key in found:
        del todo[key]
    store.clear_tables()
    sweep = _Sweep(experiment, store, quick, len(cases), len(found), on_progress)
    if todo:
        sweep.run(pool, todo)
    store.finish(cases, sweep.failures)
    return SweepReport(
        experiment.name, len(cases), len(found), tuple(sweep.failures), time.perf_counter() - start, sweep.run_seconds
    )


class _Sweep:
    """The unfinished runs of a sweep."""

    def __init__(
        self, experiment: Experiment, store: Store, quick: bool, total: int, found: int,
        on_progress: Callable[[Progress], None],
    ) -> None:  # fmt: skip
        self.failures: list[Failure] = []
        self.run_seconds = 0.0
        self._experiment = experiment
        self._store = store
        self._quick = quick
        self._total = total
        self._done = self._reported = found
        self._on_progress = on_progress

    def run(self, pool: Pool, todo: dict[str, Case]) -> None:
        """Run all unfinished cases."""
        longest_first = sorted(todo, key=lambda key: -workload_of(todo[key]).cost())
        tasks = [(key, msgspec.json.encode(todo[key]).decode()) for key in longest_first]
        with closing(pool.run(partial(carry_out, str(self._store.runs)), tasks, DONE, self._report)) as rows:
            for key, row in rows:
                self._take(key, todo[key], row)
                self._report(0)

    def _take(self, key: str, case: Case, row: dict[str, Any] | None) -> None:
        if row is None:
            self._fail(case, "its worker process died, possibly because memory was exhausted", "")
            return
        self.run_seconds += row["seconds"]
        if row["failure"] is None:
            self._store.keep(key, row["metrics"], with_trace=case.trace)
            self._done += 1
        else:
            self._fail(case, row["failure"], row["details"])

    def _fail(self, case: Case, reason: str, details: str) -> None:
        line = repeat_line(self._experiment, case, quick=self._quick)
        self.failures.append(Failure(case.run, reason, line, details))

    def _report(self, further: int) -> None:
        """Report progress; an estimate by the pool never lowers a number that was reported before."""
        guess = self._done + further
        self._reported = min(max(self._reported, guess), self._total - len(self.failures))
        self._on_progress(Progress(self._reported, len(self.failures), self._total))
