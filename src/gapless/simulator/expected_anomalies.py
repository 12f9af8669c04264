"""Recognizes anomalies that are permitted, although the trace alone does not show it.

They require more failures than the protocol tolerates. Losses are reported to the publisher, and to
all affected subscriptions that still exist.

- *Reported too late.* More than f brokers fail with a cause. A subscription receives its effect and
  ends, and only then the publisher of the cause returns, without which the loss is unknown. Or a
  subscription to history reaches its end before the loss is known.
- *Repeated.* They fail with a cause that was not confirmed to its publisher, and that a client had
  received and answered. The publisher repeats it. A reader of history finds it after the answer,
  and clients that received the answer before get the cause later.
"""

from bisect import bisect_left

import msgspec

from gapless.checkers import Anomaly, Verdict, summarize
from gapless.simulator.result import Result
from gapless.simulator.scenario import Crash, Scenario, SubscribeAction
from gapless.trace import SubscriptionRow, Trace

__all__ = ["drop_expected"]

REASON = "of what is lost, all to whom it was due and who were still there when that was known were told"


def drop_expected(verdict: Verdict, result: Result, scenario: Scenario) -> Verdict:
    """Return the verdict without these anomalies."""
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
    """The relevant facts of a run."""

    def __init__(self, trace: Trace, result: Result, scenario: Scenario) -> None:
        self._result = result
        self._subscriptions = {row.subscription_id: row for row in trace.subscriptions}
        self._published = {row.event_id: row.published_ms for row in trace.events}
        self._came = {(row.subscription_id, row.event_id) for row in trace.history}
        self._told_ms = {
            f"{lost.publisher}:{seq}": lost.time_ms
            for lost in result.lost_publications
            for seq in range(lost.first, lost.last + 1)
        }
        calls = [action for action in scenario.actions if isinstance(action, SubscribeAction)]
        self._with_end = {call.subscription for call in calls if call.until_ms != 0}
        self._failures = [fault.at_ms for fault in scenario.faults if isinstance(fault, Crash)]

    def is_excused(self, anomaly: Anomaly) -> bool:
        """Return whether the anomaly is permitted."""
        subscription, event = self._subscriptions.get(anomaly.subscription or ""), anomaly.event or ""
        if subscription is None or event not in self._published:
            return False
        if (anomaly.subscription, event) in self._came:
            return self._was_said_again(anomaly, event)
        return event in self._told_ms and self._was_told_too_late(anomaly, subscription, event)

    def _was_told_too_late(self, anomaly: Anomaly, subscription: SubscriptionRow, event: str) -> bool:
        told_ms, ended_ms, active_ms = self._told_ms[event], subscription.ended_ms, subscription.active_ms
        if anomaly.kind == "gap" and self._has_end(subscription) and (active_ms is None or told_ms >= active_ms):
            return True
        if ended_ms is None or told_ms < ended_ms:
            return False
        # Brokers without these events may have admitted what the subscription was to read from history.
        was_read = anomaly.kind == "gap" and self._published[event] < subscription.requested_ms
        return anomaly.kind == "causal-inversion" or was_read

    def _was_said_again(self, anomaly: Anomaly, event: str) -> bool:
        """Return whether it was admitted again, after its broker was lost before it could confirm it."""
        if anomaly.kind != "causal-inversion":
            return False
        publisher, _, number = event.rpartition(":")
        seqs = [seq for _, seq in self._result.confirmations.get(publisher, ())]
        place = bisect_left(seqs, int(number))
        safe_ms = self._result.confirmations[publisher][place][0] / 1000 if place < len(seqs) else float("inf")
        was_lost = any(self._published[event] < failed_ms < safe_ms for failed_ms in self._failures)
        return was_lost and self._published[anomaly.witness[-1]] < safe_ms

    def _has_end(self, subscription: SubscriptionRow) -> bool:
        """Return whether it reads only history."""
        return subscription.subscription_id in self._with_end
