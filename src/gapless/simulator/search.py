"""Searches for a violation: tries one seed after another on all cores, and shrinks the first failing scenario.

Seeds are distributed in small chunks and their outcomes processed in order, so the reported seed is
the lowest that fails, whatever the number of processes. A run with the verdict `unknown` is counted
but not reported.
"""

import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from gapless.checkers import Verdict
from gapless.errors import ScenarioError
from gapless.protocol import ProtocolSpec
from gapless.registry import find_protocol
from gapless.simulator.deletion_plan import DELETE
from gapless.simulator.disk_plan import DISK_KINDS
from gapless.simulator.fault_plan import LINK_KINDS, fault_kinds
from gapless.simulator.generator import GeneratorLimits, generate
from gapless.simulator.generator_scales import GRAPH, LARGE_GRAPH, MIXED, SMALL
from gapless.simulator.graph_scenarios import LASTING_KINDS, choose_graph_scale, generate_on_graph
from gapless.simulator.options import convert_options, refusal
from gapless.simulator.over_budget_plan import BEYOND
from gapless.simulator.partition_plan import PARTITION
from gapless.simulator.priorities import depth_of
from gapless.simulator.scenario import Scenario
from gapless.simulator.shrink import shrink
from gapless.simulator.trial import Outcome, is_invariant, try_scenario

__all__ = ["Finding", "Progress", "SearchReport", "search"]

_CHUNK = 8
"""The number of seeds in one chunk: few, so that a failure is reported soon."""

_COLLECT_EVERY = 32
"""The number of runs between garbage collections of nodes, which contain cycles. Automatic collection is reduced."""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a search."""

    phase: Literal["search", "shrink"]
    runs: int
    """The number of completed runs."""
    of: int
    unknown: int
    rows: int = 0
    """The number of rows that remain of the failing scenario: clients, actions, replies and faults."""


class Finding(msgspec.Struct, frozen=True):
    """A violation, with the scenario that shows it."""

    seed: int
    symptom: str
    """The symptom: the kind of anomaly, `exception …`, `runaway` or `bad trace`."""
    outcome: Outcome
    """The outcome of the minimal scenario: its verdict, or the traceback of the node that failed."""
    scenario: Scenario
    """The generated scenario."""
    minimal: Scenario
    """The smallest scenario found with the same symptom."""
    repeat: str
    """The command that reproduces the violation."""

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict on the minimal scenario, or None if its run failed."""
        return self.outcome.verdict


class SearchReport(msgspec.Struct, frozen=True):
    """The result of a search."""

    protocol: str
    faults: str
    first_seed: int
    runs: int
    """The number of completed runs, up to and including the first violation."""
    valid: int
    unknown: int
    finding: Finding | None


def search(
    protocol: str | ProtocolSpec, runs: int, first_seed: int = 0, faults: str = "none",
    options: Mapping[str, Any] | None = None, processes: int | None = None,
    on_progress: Callable[[Progress], None] | None = None, *, limits: GeneratorLimits | None = None,
    shrink_seconds: float = 60.0, scale: str = SMALL, invariants: bool = True, schedule: str = "latency",
) -> SearchReport:  # fmt: skip
    """Try `runs` seeds from `first_seed` on, and stop at the first violation. `scale` is explained in
    `generator_scales`.

    With `invariants`, those of the protocol are checked after every step; that takes about twice as long.
    `schedule`: see `priorities`.
    """
    spec = find_protocol(protocol) if isinstance(protocol, str) else protocol
    convert_options(spec, options or {})
    depth_of(schedule)
    make = partial(
        _draw, scale=scale, schedule=schedule, lasting=_excludes_for_ever(spec, faults), protocol=spec.name,
        faults=faults, options=dict(options or {}), limits=limits,
    )  # fmt: skip
    _refuse_unclaimed(spec, faults)
    make(first_seed)
    report_progress = on_progress or (lambda _: None)
    done = unknown = 0
    finding = None
    seeds = range(first_seed, first_seed + runs)
    chunks = [seeds[start : start + _CHUNK] for start in range(0, runs, _CHUNK)]
    task = partial(_try_seeds, make, spec, invariants)
    with _mapper(min(processes or os.cpu_count() or 1, len(chunks)), task) as apply:
        for statuses, failure in apply(task, chunks):
            done += len(statuses)
            unknown += statuses.count("unknown")
            report_progress(Progress("search", done, runs, unknown))
            if failure is not None:
                finding = failure
                break
    if finding is not None:
        seed, outcome = finding
        report = partial(Progress, "shrink", done, runs, unknown)
        return SearchReport(
            spec.name, faults, first_seed, done, done - unknown - 1, unknown,
            _shrunk(
                make(seed), seed, outcome, spec, _repeat(spec, faults, seed, options or {}, limits, scale, schedule),
                shrink_seconds, lambda n: report_progress(report(n)),
            ),
        )  # fmt: skip
    return SearchReport(spec.name, faults, first_seed, done, done - unknown, unknown, None)


def _excludes_for_ever(spec: ProtocolSpec, faults: str) -> bool:
    """Return whether all faults of brokers are permanent, because the protocol tolerates crashes but not restarts."""
    kinds = set(fault_kinds(faults))
    return "crash" in spec.copes_with and "restart" not in spec.copes_with and bool(kinds) and kinds <= LASTING_KINDS


def _draw(seed: int, *, scale: str, schedule: str, lasting: bool, faults: str, **how: Any) -> Scenario:
    """Return the scenario of a seed. It is on a graph if the scale says so, or if brokers do not return."""
    if lasting:
        scale = choose_graph_scale(scale, seed, faults)
    if scale in (GRAPH, LARGE_GRAPH):
        scenario = generate_on_graph(seed, faults=faults, scale=scale, **how)
    else:
        scenario = generate(seed, faults=faults, scale=scale, **how)
    return replace(scenario, run=replace(scenario.run, schedule=schedule))


def _refuse_unclaimed(spec: ProtocolSpec, faults: str) -> None:
    """Raise an error for faults of links that the protocol does not support. Crashes, cuts and suspicions are allowed
    for any protocol.
    """
    for kind in fault_kinds(faults):
        if kind in LINK_KINDS and kind not in spec.copes_with:
            raise ScenarioError(f"faults: {refusal(spec, kind)}")
        if kind in DISK_KINDS and not spec.keeps_disks:
            raise ScenarioError(f"faults: {kind} is for protocols that use disks, which {spec.name!r} does not")
        if kind == PARTITION and kind not in spec.copes_with:
            raise ScenarioError(f"faults: {refusal(spec, kind)}")
        if kind == DELETE and not spec.deletes:
            raise ScenarioError(f"faults: {kind} is for protocols that keep history, which {spec.name!r} does not")
        if kind == BEYOND and not spec.forgets:
            raise ScenarioError(f"faults: {kind} is for protocols that report losses, which {spec.name!r} does not")


def _try_seeds(
    make: Callable[[int], Scenario], spec: ProtocolSpec, invariants: bool, seeds: Iterable[int]
) -> tuple[list[str], tuple[int, Outcome] | None]:
    """Return the symptoms of these seeds up to the first failure, and the failing seed with its outcome."""
    statuses: list[str] = []
    for seed in seeds:
        if seed % _COLLECT_EVERY == 0:
            gc.collect()
        outcome = try_scenario(make(seed), spec, invariants=invariants)
        statuses.append(outcome.status)
        if outcome.failed:
            return statuses, (seed, outcome)
    return statuses, None


@contextmanager
def _mapper(processes: int, task: Callable[..., Any]) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a function that maps in order with this number of processes. One stands for this process.

    A process with threads must not be forked, because a lock that a thread holds stays locked in
    the child. Then the others are spawned, if the task can be pickled.
    """
    method = "spawn" if threading.active_count() > 1 else "fork"
    if processes <= 1 or (method == "spawn" and not _can_be_sent(task)):
        yield map
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the pool exists, which ends its workers
    try:
        pool = multiprocessing.get_context(method).Pool(processes, initializer=_restore_signal_handlers)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with pool:
        yield pool.imap


def _restore_signal_handlers() -> None:
    """Restore default signal handlers in a forked worker, so that the pool can stop it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _can_be_sent(task: Callable[..., Any]) -> bool:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _shrunk(
    scenario: Scenario, seed: int, outcome: Outcome, spec: ProtocolSpec, repeat: str, seconds: float,
    report_progress: Callable[[int], None],
) -> Finding:  # fmt: skip
    symptom = outcome.symptoms[0]
    minimal = shrink(
        scenario, symptom, protocol=spec, seconds=seconds, on_progress=lambda smaller: report_progress(_rows(smaller))
    )
    return Finding(
        seed=seed,
        symptom=symptom,
        outcome=try_scenario(minimal, spec, invariants=is_invariant(symptom)),
        scenario=scenario,
        minimal=minimal,
        repeat=repeat,
    )


def _repeat(
    spec: ProtocolSpec,
    faults: str,
    seed: int,
    options: Mapping[str, Any],
    limits: GeneratorLimits | None,
    scale: str,
    schedule: str,
) -> str:
    """Return the command that reproduces the violation of a seed."""
    given = "".join(f" --option {key}={value}" for key, value in options.items())
    if limits is not None and limits.f is not None:
        given = f" --f {limits.f}{given}"
    if schedule != "latency":
        given = f" --schedule {schedule}{given}"
    if scale != MIXED:
        given = f" --scale {scale}{given}"
    return f"gapless sim search --protocol {spec.name} --faults {faults} --first-seed {seed} --runs 1{given}"


def _rows(scenario: Scenario) -> int:
    return len(scenario.clients) + len(scenario.actions) + len(scenario.replies) + len(scenario.faults)
