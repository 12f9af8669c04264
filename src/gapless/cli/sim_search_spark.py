"""`gapless sim search --spark`: runs seeds as Spark tasks, and stores the results in a directory."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from gapless.errors import SparkError
from gapless.protocol import ProtocolSpec
from gapless.simulator import GeneratorLimits, SearchReport, search
from gapless.simulator import Progress as SearchProgress

__all__ = ["SparkChoice", "search_on_spark"]


class SparkChoice(NamedTuple):
    """The Spark cluster to use, and the directory of the results."""

    master: str | None
    remote: str | None
    out: Path | None


def search_on_spark(
    spec: ProtocolSpec, runs: int, first_seed: int, faults: str, options: Mapping[str, Any], f: int | None, scale: str,
    *, invariants: bool, where: SparkChoice, report_progress: Callable[[SearchProgress], None],
) -> SearchReport:  # fmt: skip
    """Run all seeds that have no result yet. Shrink the lowest failing one in this process."""
    try:
        from gapless_spark.search import Frontier, Plan, Tried, try_seeds
        from gapless_spark.task_pool import SparkPool
    except ModuleNotFoundError as error:
        raise SparkError(
            f"a search on Spark needs {error.name}, which is not installed; install it with: pip "
            "install 'gapless[spark]'"
        ) from None
    limits = GeneratorLimits(f=f)
    search(spec, 1, first_seed, faults, options, 1, limits=limits, scale=scale, invariants=False, shrink_seconds=0.0)
    plan = Plan(spec.name, faults, dict(options), f, scale, invariants)
    seeds = range(first_seed, first_seed + runs)
    frontier = None if where.out is None else Frontier(where.out, plan)
    found: list[Tried] = [each for each in frontier.tried() if each.seed in seeds] if frontier is not None else []

    def unknown() -> int:
        return sum(each.status == "unknown" for each in found)

    with ExitStack() as stack:
        pool = stack.enter_context(SparkPool(where.master, where.remote))
        if frontier is not None:
            stack.callback(frontier.keep)  # also if the user interrupts the search
        known = {each.seed for each in found}
        trying = try_seeds(pool, plan, [seed for seed in seeds if seed not in known])
        stack.callback(trying.close)
        report_progress(SearchProgress("search", len(found), runs, unknown()))
        while not any(each.status == "failed" for each in found) and (tried := next(trying, None)) is not None:
            found += tried
            if frontier is not None:
                frontier.add(tried)
            report_progress(SearchProgress("search", len(found), runs, unknown()))
    failed = sorted(each.seed for each in found if each.status == "failed")
    valid = sum(each.status == "valid" for each in found)
    finding = None
    if failed:
        finding = search(
            spec, 1, failed[0], faults, options, 1, report_progress, limits=limits, scale=scale, invariants=invariants
        ).finding
    return SearchReport(spec.name, faults, first_seed, len(found), valid, len(found) - valid - bool(finding), finding)
