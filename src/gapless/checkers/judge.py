"""The judge: runs every rule that the run's guarantee calls for, and sums up.

It trusts `runs`, `events`, `subscriptions`, `cuts` and `history`, and nothing that a protocol says about its own
messages. The order in which rules are asked is their precedence: what one has named, the next is not shown.
"""

from gapless.checkers.acceptance import AcceptedHistory, accept, find_strays
from gapless.checkers.causal_order import CausalOrder, CausalOrders
from gapless.checkers.certificate import find_false_pasts
from gapless.checkers.evidence import Evidence
from gapless.checkers.gapless_fifo import absences, find_fifo_inversions, find_gaps
from gapless.checkers.happens_before import HappensBefore
from gapless.checkers.late_start import find_late_starts
from gapless.checkers.matching import Matching
from gapless.checkers.missing_effect import find_missing_effects
from gapless.checkers.progress import find_unobserved, silence
from gapless.checkers.told_loss import count_told, find_false_losses
from gapless.checkers.verdict import JUDGED, Anomaly, AnomalyKind, Status, Verdict, summarize
from gapless.trace import EventRow, Trace

__all__ = ["check", "check_all"]


def check(trace: Trace) -> Verdict:
    """Judge the one run that the trace holds, by the guarantee that it claims."""
    return _Judge(Evidence.of(trace)).verdict()


def check_all(trace: Trace) -> list[Verdict]:
    """Judge each run of the trace."""
    return [check(part) for part in trace.split()]


class _Judge:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._judged = JUDGED[evidence.run.guarantee]
        self._relation = HappensBefore(evidence.run.run, evidence.events, evidence.histories)
        self._matching = Matching(_due(evidence))
        self._anomalies: list[Anomaly] = []
        self._silences: list[str] = []
        self._accepted = 0
        self._told = 0
        self._order = CausalOrder(self._relation)
        self._orders: CausalOrders | None = None
        if self._forbids("missing-effect"):
            self._orders = CausalOrders.of_all_events(self._order)
        elif self._forbids("causal-inversion"):
            self._orders = CausalOrders.per_topic(evidence)

    def _forbids(self, kind: AnomalyKind) -> bool:
        return kind in self._judged

    def verdict(self) -> Verdict:
        evidence = self._evidence
        for subscription in evidence.subscriptions:
            history, anomalies = accept(subscription, evidence.events, self._matching.events(subscription.row.filter))
            self._anomalies += anomalies
            self._accepted += len(history.events)
            if history.skipped:
                self._told += count_told(history)
                self._anomalies += find_false_losses(history, evidence)
            if self._forbids("gap"):
                self._judge_delivery(history)
        self._anomalies += find_strays(evidence)
        self._anomalies += find_false_pasts(evidence, self._relation)
        status, reason = self._status()
        return Verdict(
            run=evidence.run.run,
            guarantee=evidence.run.guarantee,
            status=status,
            reason=reason + evidence.cut_short.reason(),
            anomalies=tuple(self._anomalies),
            events=len(evidence.events),
            subscriptions=len(evidence.subscriptions),
            deliveries=sum(len(subscription.deliveries) for subscription in evidence.subscriptions)
            + len(evidence.strays),
            cut_short=evidence.cut_short.sentences(),
            told_losses=self._told,
        )

    def _judge_delivery(self, history: AcceptedHistory) -> None:
        # What a client did after its part of the trace broke off is not known: for it, nothing is over.
        quiet = self._evidence.run.quiesced and history.row.client not in self._evidence.cut_short
        missing = absences(history)
        inversions = find_fifo_inversions(history)
        self._anomalies += inversions.values()
        self._anomalies += find_gaps(history, missing)
        causal: list[Anomaly] = []
        if self._orders is not None:
            causal = list(self._orders.find_inversions(history, missing.after_last, inversions))
        self._anomalies += causal
        if quiet:
            self._anomalies += find_unobserved(history, _without(missing.after_last, causal))
        late: list[Anomaly] = []
        if self._forbids("late-start"):
            skew = self._evidence.run.clock_skew_ms
            late = list(find_late_starts(history, missing.before_start, skew, quiet))
        self._anomalies += late
        if self._forbids("missing-effect"):
            left = _without(missing.before_start, late)
            self._anomalies += find_missing_effects(history, left, self._order, quiet)
        why = silence(history, missing, quiet)
        if why is not None:
            self._silences.append(why)

    def _status(self) -> tuple[Status, str]:
        if self._anomalies:
            return "invalid", summarize(self._anomalies)
        if not self._accepted:
            return "unknown", "nothing was delivered in the whole run"
        if self._silences:
            return "unknown", self._silences[0]
        return "valid", f"{self._accepted} deliveries are as promised"


def _due(evidence: Evidence) -> dict[str, list[EventRow]]:
    """Each publisher's events, without those that may never have left."""
    return {
        publisher: events if publisher not in evidence.cut_short else list(filter(evidence.cut_short.is_due, events))
        for publisher, events in evidence.by_publisher.items()
    }


def _without(events: list[EventRow], named: list[Anomaly]) -> list[EventRow]:
    if not named:
        return events
    ids = {anomaly.event for anomaly in named}
    return [event for event in events if event.event_id not in ids]
