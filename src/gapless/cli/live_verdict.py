"""Checks the trace of a live network on Spark, or with the checkers in this process if Spark is not available.

Both give the same verdict in the same words. The result says which one was used.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from gapless.checkers import AnomalyKind, Status, check
from gapless.cli.audit import FOR_SMALL, judge_on_spark
from gapless.errors import SparkError
from gapless.trace import read_trace

__all__ = ["LiveVerdict", "judge_live"]

EXAMPLES_MAX = 100
ON_SPARK = "the audit on Spark"
HERE = "the checker in Python"


class LiveVerdict(msgspec.Struct, frozen=True):
    """The verdict on one run."""

    status: Status
    reason: str
    counts: dict[AnomalyKind, int]
    examples: list[str]
    """The first anomalies, one sentence each."""
    events: int
    deliveries: int
    subscriptions: int
    judge: str
    """The checker that was used."""
    without_spark: str
    """Why Spark was not used; empty if it was."""


def judge_live(
    trace: Path, *, is_small: bool = False, announce: Callable[[str], None] = lambda judge: None
) -> LiveVerdict:
    """Check the only run of a trace. `is_small` avoids the cost of compiling large Spark plans.

    `announce` is called with the name of the checker as soon as it is known.
    """
    settings = FOR_SMALL if is_small else None
    try:
        [found], anomalies = judge_on_spark(str(trace), settings=settings, on_start=lambda: announce(ON_SPARK))
    except SparkError as error:
        announce(HERE)
        return _judge_here(trace, str(error))
    return LiveVerdict(
        status=found["status"],
        reason=found["reason"],
        counts=found["counts"],
        examples=[row["message"] for row in anomalies[:EXAMPLES_MAX]],
        events=found["events"],
        deliveries=found["deliveries"],
        subscriptions=found["subscriptions"],
        judge=ON_SPARK,
        without_spark="",
    )


def _judge_here(trace: Path, reason: str) -> LiveVerdict:
    verdict = check(read_trace(trace))
    return LiveVerdict(
        status=verdict.status,
        reason=verdict.reason,
        counts=verdict.counts,
        examples=[anomaly.message for anomaly in verdict.anomalies[:EXAMPLES_MAX]],
        events=verdict.events,
        deliveries=verdict.deliveries,
        subscriptions=verdict.subscriptions,
        judge=HERE,
        without_spark=reason,
    )
