"""A sweep: all cases of an experiment that are not done yet, on Spark.

Cases go out in batches; each is a DataFrame with as many partitions as rows, so that Spark hands out one run at a time
to whoever is free. What comes back of a batch is kept at once, so whoever interrupts a sweep loses a batch or two. Two
batches are under way at any time, so that nobody waits for the slowest run of one; the longest runs go first. Small
runs go in larger batches: what takes no time is not worth a job of its own.

With `here_s` the sweep begins on this machine (`here`), and Spark is only started for what is left after that time.

A run that fails is reported and leaves the others alone. One that takes its worker along (out of memory, say) makes
Spark give up its batch; the cases of that batch are then tried one by one.
"""

import shlex
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from gapless_spark.lab.experiment import Experiment
from gapless_spark.lab.experiment_file import workload_of
from gapless_spark.lab.grid import Case
from gapless_spark.lab.here import run_here
from gapless_spark.lab.store import Failure, Store
from gapless_spark.lab.tasks import DONE, TODO, carrier

__all__ = ["Progress", "SweepReport", "repeat_line", "run_sweep"]

UNDER_WAY = 2
"""Batches at a time."""
BATCH_LEAST = 1
"""Runs of a batch for each core, to begin with: the first ones take the longest."""
BATCH_MOST = 64
SHORT_S = 10.0
"""A batch that took less makes the next ones larger."""
POLL_S = 0.5
REMOTE_CORES = 8
"""Assumed of a Spark that does not tell."""


class Progress(msgspec.Struct, frozen=True):
    """How far a sweep is."""

    done: int
    failed: int
    total: int


class SweepReport(msgspec.Struct, frozen=True):
    """What became of a sweep."""

    experiment: str
    runs: int
    """Asked for."""
    found: int
    """Of them, done before."""
    failures: tuple[Failure, ...]
    seconds: float
    run_seconds: float
    """What the runs took by themselves, one after the other."""


def repeat_line(experiment: Experiment, case: Case, *, quick: bool) -> str:
    """The command that runs this case again, alone."""
    line = ["gapless", "lab", "run", experiment.file, "--only", case.name]
    return shlex.join([*line, "--quick"] if quick else line)


def run_sweep(
    experiment: Experiment, cases: Sequence[Case], store: Store, spark: Callable[[], SparkSession], *,
    quick: bool = False, here_s: float = 0.0, on_progress: Callable[[Progress], None] = lambda progress: None,
) -> SweepReport:  # fmt: skip
    """Do what is not done, keep it, and make the tables. Spark is asked for if something is left after `here_s`."""
    start = time.perf_counter()
    todo = {case.key(): case for case in cases}
    found = [key for key in todo if store.has(key)]
    for key in found:
        del todo[key]
    store.clear_tables()
    sweep = _Sweep(experiment, store, quick, len(cases), len(found), on_progress)
    if todo and here_s:
        sweep.run_here(todo, here_s)
    if todo:
        sweep.run(spark(), todo)
    store.finish(cases, sweep.failures)
    return SweepReport(
        experiment.name, len(cases), len(found), tuple(sweep.failures), time.perf_counter() - start, sweep.run_seconds
    )


class _Sweep:
    """The runs of a sweep that are not done."""

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
        self._done = self._told = found
        self._on_progress = on_progress
        self._todo: dict[str, Case] = {}
        self._waiting: deque[str] = deque()
        self._alone: deque[str] = deque()
        """To be tried one by one."""

    def run_here(self, todo: dict[str, Case], seconds: float) -> None:
        """As many as this machine can do in the time; they are taken out of `todo`."""
        self._todo = dict(todo)
        for row in run_here(todo, self._store.runs, seconds):
            del todo[row["key"]]
            self._keep(row)
            self._told = self._done
            self._on_progress(Progress(self._told, len(self.failures), self._total))

    def run(self, spark: SparkSession, todo: dict[str, Case]) -> None:
        """All of them."""
        self._todo = todo
        self._waiting.extend(sorted(todo, key=lambda key: -workload_of(todo[key]).cost()))
        cores = _cores(spark)
        size = BATCH_LEAST * cores
        under_way: dict[Future[list[dict[str, Any]]], tuple[list[str], float]] = {}
        with ThreadPoolExecutor(UNDER_WAY, "sweep") as threads:
            try:
                while self._waiting or self._alone or under_way:
                    while (self._waiting or self._alone) and len(under_way) < UNDER_WAY:
                        batch = self._next_batch(size)
                        future = threads.submit(_run_batch, spark, self._todo_table(batch), self._store.runs)
                        under_way[future] = (batch, time.perf_counter())
                    for future in wait(under_way, POLL_S, FIRST_COMPLETED).done:
                        batch, began = under_way.pop(future)
                        self._take(future, batch)
                        if time.perf_counter() - began < SHORT_S:
                            size = min(2 * size, BATCH_MOST * cores)
                    self._tell(spark, {len(batch) for batch, _ in under_way.values()})
            except BaseException:
                with suppress(Exception):  # whatever ended us may have ended Spark, too
                    spark.interruptAll()
                raise

    def _next_batch(self, size: int) -> list[str]:
        if self._alone:
            return [self._alone.popleft()]
        return [self._waiting.popleft() for _ in range(min(size, len(self._waiting)))]

    def _todo_table(self, batch: list[str]) -> pa.Table:
        cases = [msgspec.json.encode(self._todo[key]).decode() for key in batch]
        return pa.table([pa.array(range(len(batch)), pa.int32()), batch, cases], schema=TODO)

    def _take(self, future: Future[list[dict[str, Any]]], batch: list[str]) -> None:
        """Keep what came back."""
        try:
            rows = future.result()
        except (PySparkException, Py4JJavaError) as error:
            if len(batch) > 1:
                self._alone.extend(batch)
            else:
                self._fail(batch[0], "the worker that ran it died, perhaps for want of memory", str(error))
            return
        for row in rows:
            self._keep(row)

    def _keep(self, row: dict[str, Any]) -> None:
        self.run_seconds += row["seconds"]
        if row["failure"] is None:
            self._store.keep(row["key"], row["metrics"], with_trace=self._todo[row["key"]].trace)
            self._done += 1
        else:
            self._fail(row["key"], row["failure"], row["details"])

    def _fail(self, key: str, reason: str, details: str) -> None:
        case = self._todo[key]
        line = repeat_line(self._experiment, case, quick=self._quick)
        self.failures.append(Failure(case.run, reason, line, details))

    def _tell(self, spark: SparkSession, sizes: set[int]) -> None:
        # What is known of tasks is a guess, and never takes back what was told before.
        guess = self._done + _tasks_done(spark, sizes)
        self._told = min(max(self._told, guess), self._total - len(self.failures))
        self._on_progress(Progress(self._told, len(self.failures), self._total))


def _run_batch(spark: SparkSession, todo: pa.Table, runs: Path) -> list[dict[str, Any]]:
    frame = spark.createDataFrame(todo).repartitionById(todo.num_rows, "place").drop("place")
    found: list[dict[str, Any]] = frame.mapInArrow(carrier(runs), from_arrow_schema(DONE)).toArrow().to_pylist()
    return found


def _cores(spark: SparkSession) -> int:
    """How many runs Spark can have under way, as far as it says."""
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except PySparkException:  # a client of Spark Connect is not told
        return REMOTE_CORES


def _tasks_done(spark: SparkSession, sizes: set[int]) -> int:
    """How many runs of the batches under way are over; of stages that are as large as a batch, for others move data."""
    try:
        tracker = spark.sparkContext.statusTracker()
    except PySparkException:
        return 0
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None and stage.numTasks in sizes)
