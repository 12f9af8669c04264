"""Recognizes the one anomaly that is permitted although the trace alone does not show why.

More than f brokers fail with a cause that was not confirmed to its publisher, and that a client had received and
answered. The publisher repeats it, so that it is admitted again, after its answer. Clients that received the answer
before get the cause later.
"""

from bisect import bisect_left

import msgspec

from gapless.checkers import Anomaly, Verdict, summarize
from gapless.simulator.result import Result
from gapless.simulator.scenario import Crash, Scenario
from gapless.trace import Trace

__all__ = ["drop_expected"]

REASON = "an unconfirmed event was lost with more than f brokers after it was answered, and was then published again"


def drop_expected(verdict: Verdict, result: Result, scenario: Scenario) -> Verdict:
    """Return the verdict without permitted anomalies."""
    if not verdict.anomalies or result.trace is None or not (result.lost_publications or scenario.run.may_lose):
        return verdict
    facts = _Facts(result.trace, result, scenario)
    left = tuple(anomaly for anomaly in verdict.anomalies if not facts.is_excused(anomaly))
    if len(left) == len(verdict.anomalies):
        return verdict
    if left:
        return msgspec.structs.replace(verdict, anomalies=left, reason=summarize(left))
    return msgspec.structs.replace(verdict, anomalies=(), status="valid", reason=REASON)


class _Facts:
    """The facts of a run that excuse an anomaly."""

    def __init__(self, trace: Trace, result: Result, scenario: Scenario) -> None:
        self._result = result
        self._published = {row.event_id: row.published_ms for row in trace.events}
        self._came = {(row.subscription_id, row.event_id) for row in trace.history}
        self._failures = [fault.at_ms for fault in scenario.faults if isinstance(fault, Crash)]

    def is_excused(self, anomaly: Anomaly) -> bool:
        """Return whether the cause was delivered late because its broker crashed before confirming it."""
        event = anomaly.event or ""
        if anomaly.kind != "causal-inversion" or (anomaly.subscription, event) not in self._came:
            return False
        publisher, _, number = event.rpartition(":")
        seqs = [seq for _, seq in self._result.confirmations.get(publisher, ())]
        place = bisect_left(seqs, int(number))
        confirmed_ms = self._result.confirmations[publisher][place][0] / 1000 if place < len(seqs) else float("inf")
        was_lost = any(self._published[event] < failed_ms < confirmed_ms for failed_ms in self._failures)
        return was_lost and self._published[anomaly.witness[-1]] < confirmed_ms
