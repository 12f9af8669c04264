"""Checks one subscription of a running network: a `SubscriptionChecker` that accepts late facts, in bounded memory.

A gap becomes a `fifo-inversion` if the event arrives later. A cut may become known after events that it excludes have
arrived: these events are then spurious, and their deliveries are revoked.

The state is therefore the open events, one or two numbers for each publisher, and the anomalies. The last `RECENT`
deliveries are remembered, so that the report of a duplicate can name the first delivery. An event before the start of
its publisher is dropped when it can no longer become due: it was published before the subscription was active, and none
of its causes can still arrive.

A witness lists only the cause and its effect. A chain through other clients would require the history of all of them.
"""

from collections import Counter

import msgspec

from gapless.checkers.acceptance import Delivery, Known, duplicate_delivery, flaw_of_event, spurious_delivery
from gapless.checkers.live import facts
from gapless.checkers.live.replay import HORIZON_MS
from gapless.checkers.live.reports import SubscriptionReport
from gapless.checkers.missing_effect import cause_of
from gapless.checkers.publications import Publication
from gapless.checkers.subscription import SubscriptionChecker
from gapless.checkers.verdict import Anomaly, AnomalyKind
from gapless.protocol import Guarantee
from gapless.trace import CutRow, SkippedRow, SubscriptionRow

__all__ = ["KEPT_MAX", "LiveChecker"]

RECENT = 200
"""The number of deliveries whose position in the history is remembered."""
KEPT_MAX = 1_000
"""Maximum number of anomalies of one subscription that are listed; more are counted."""


class LiveChecker:
    """Checks the subscription with one id, whether or not the subscription exists.

    For a durable subscription it only counts the deliveries. Which events are due to one client depends on what all
    others acknowledge, so only the merged trace can be checked.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._judge: _BoundedJudge | None = None
        self._strays: list[Anomaly] = []
        self._more: Counter[AnomalyKind] = Counter()
        self._deliveries = 0

    def take(self, fact: facts.Fact) -> None:
        """Process the next fact about the subscription."""
        match fact:
            case facts.Requested():
                row = SubscriptionRow(
                    fact.run, self._name, fact.client, fact.filter, fact.time_ms, None, None, fact.ready
                )
                self._judge = _BoundedJudge(row, fact.guarantee)
            case facts.Stray():
                self._stray(fact)
            case facts.Refused():
                self._judge = None
            case _ if self._judge is not None:
                self._judge.take(fact)

    def _stray(self, fact: facts.Stray) -> None:
        owner = fact.owner
        flaw = "the subscription was never requested" if owner is None else f"the subscription belongs to {owner}"
        publisher, _, seq = fact.event_id.rpartition(":")
        known: Known = "match" if fact.is_published else "unpublished"
        self._deliveries += 1
        outcome = spurious_delivery(
            Delivery(fact.client, self._name, fact.event_id, publisher, int(seq), fact.step, fact.time_ms, known), flaw
        )
        if len(self._strays) < KEPT_MAX:
            self._strays.append(outcome)
        else:
            self._more[outcome.kind] += 1

    def report(self, skew_ms: float = 0.0) -> SubscriptionReport:
        """Return the report, and drop data that is no longer needed."""
        if self._judge is not None:
            outcome = self._judge.report(skew_ms)
            return msgspec.structs.replace(
                outcome,
                deliveries=outcome.deliveries + self._deliveries,
                anomalies=[*self._strays, *outcome.anomalies][:KEPT_MAX],
                at_rest=[*self._strays, *outcome.at_rest][:KEPT_MAX],
                more=dict(self._more + Counter(outcome.more)),
            )
        return SubscriptionReport(
            self._name, "", "", False, "asked", self._deliveries, 0, 0, 0.0, 0, 0, list(self._strays),
            list(self._strays), dict(self._more), None, None,
        )  # fmt: skip


class _BoundedJudge(SubscriptionChecker):
    """Checks a subscription that exists."""

    def __init__(self, row: SubscriptionRow, guarantee: Guarantee) -> None:
        super().__init__(row, guarantee)
        self._dropped: dict[str, int] = {}
        """For each publisher, the number up to which events have been dropped."""
        self._seen: dict[str, int] = {}
        """For each publisher, the last number that was due."""
        self._more: Counter[AnomalyKind] = Counter()
        self._unjudged = 0
        self._is_durable = False
        self._now_ms = row.requested_ms

    def take(self, fact: facts.Fact) -> None:
        """Process the next fact about the subscription."""
        row = self.history.row
        match fact:
            case facts.Activated():
                if row.active_ms is None:
                    self.history.row = msgspec.structs.replace(row, active_ms=self._at(fact.time_ms))
            case facts.Attached():
                self._is_durable = True
                self._open.clear()
            case facts.Delivered() if self._is_durable:
                self._at(fact.time_ms)
                self._deliveries += 1
                self._unjudged += 1
            case facts.Skipped() if self._is_durable:
                pass
            case facts.Cut():
                cut = CutRow(row.run, row.subscription_id, fact.publisher, fact.from_seq, None)
                self.history.cuts[fact.publisher] = cut
                self._revoke(fact.publisher)
            case facts.Voided():
                self.history.cuts.clear()
            case facts.Skipped():
                for publisher, ranges in fact.lost.items():
                    for first, last in ranges:
                        self.skip(SkippedRow(row.run, row.subscription_id, publisher, first, last))
            case facts.Due():
                self._at(fact.published_ms)
                self._seen[fact.publisher] = max(fact.seq, self._seen.get(fact.publisher, 0))
                self.expect(fact.publisher, {fact.seq: fact})
            case facts.Delivered():
                self._at(fact.time_ms)
                self.deliver(
                    Delivery(
                        row.client, row.subscription_id, fact.event_id, fact.publisher, fact.seq, fact.step,
                        fact.time_ms, fact.known,
                    )
                )  # fmt: skip
                if len(self._steps) > RECENT:
                    del self._steps[next(iter(self._steps))]
            case facts.Ended():
                self._end(fact)
            case _:
                raise AssertionError(f"{fact} does not concern a subscription that was requested")

    def _at(self, time_ms: float) -> float:
        self._now_ms = max(self._now_ms, time_ms)
        return time_ms

    def _end(self, fact: facts.Ended) -> None:
        history = self.history
        history.row = msgspec.structs.replace(history.row, ended_ms=self._at(fact.time_ms))
        for publisher, last in fact.last_seq.items():
            cut = history.cuts.get(publisher)
            if cut is not None:
                history.cuts[publisher] = msgspec.structs.replace(cut, to_seq=last)
                self._revoke(publisher)

    def _deliver_again(self, delivery: Delivery) -> None:
        """Process a delivery that matches and is not due: it is a duplicate, or too old."""
        first = self._steps.get(delivery.event_id)
        if first is not None:
            self._note(duplicate_delivery(delivery, first if first >= 0 else ~first))
        elif delivery.seq <= self._dropped.get(delivery.publisher, 0) or delivery.publisher not in self._seen:
            self._unjudged += 1
        elif delivery.known == "match":
            self._note(duplicate_delivery(delivery, None))
        else:
            self._unjudged += 1

    def _note(self, anomaly: Anomaly) -> None:
        if len(self._found) < KEPT_MAX:
            self._found.append(anomaly)
        else:
            self._more[anomaly.kind] += 1

    # ---- late cuts -------------------------------------------------------------------------------------------------

    def _revoke(self, publisher: str) -> None:
        """Revoke deliveries that a cut excludes which became known later. They are spurious."""
        row = self.history.row
        came = [
            (int(seq), step)
            for name, _, seq, step in ((*event_id.rpartition(":"), step) for event_id, step in self._steps.items())
            if name == publisher and step >= 0
        ]
        left = [seq for seq, _ in came]
        for seq, step in came:
            event_id = f"{publisher}:{seq}"
            delivery = Delivery(row.client, row.subscription_id, event_id, publisher, seq, step, 0.0, "match")
            flaw = flaw_of_event(delivery, self.history)
            if flaw is not None:
                left.remove(seq)
                self._steps[event_id] = ~step
                self._revoke_one(delivery, flaw, left)

    def _revoke_one(self, delivery: Delivery, flaw: str, left: list[int]) -> None:
        """Revoke one delivery. `left` are the other accepted numbers of its publisher."""
        history, publisher, event_id = self.history, delivery.publisher, delivery.event_id
        history.accepted -= 1
        about = [found for found in self._found if found.event == event_id]
        again = [int(found.witness[-1].rpartition("#")[2]) for found in about if found.kind == "duplicate"]
        dropped = ("fifo-inversion", "causal-inversion", "duplicate")
        self._found = [found for found in self._found if found not in about or found.kind not in dropped]
        for step in (delivery.step, *again):
            self._note(spurious_delivery(msgspec.structs.replace(delivery, step=step), flaw))
        for covered in self._covered.values():
            covered.revoke(event_id)
        self._found = [found for found in self._found if not _is_void(found, delivery, left)]
        for bound, choose in ((history.lowest, min), (history.highest, max)):
            if left:
                bound[publisher] = choose(left)
            else:
                bound.pop(publisher, None)

    # ---- reports ---------------------------------------------------------------------------------------------------

    def report(self, skew_ms: float) -> SubscriptionReport:
        """Return the report, and drop data that is no longer needed."""
        history, row = self.history, self.history.row
        self._forget(skew_ms)
        waiting = self._absences().after_last if row.ended_ms is None else []
        oldest_ms = min((event.published_ms for event in waiting), default=self._now_ms)
        now, at_rest = (self.findings(skew_ms, {}, quiet=quiet) for quiet in (False, True))
        return SubscriptionReport(
            subscription=row.subscription_id,
            client=row.client,
            filter=row.filter,
            exists=True,
            state="ended" if row.ended_ms is not None else "asked" if row.active_ms is None else "active",
            deliveries=self._deliveries,
            accepted=history.accepted,
            lag=len(waiting),
            behind_ms=max(0.0, self._now_ms - oldest_ms),
            open=sum(map(len, self._open.values())),
            unjudged=self._unjudged,
            anomalies=now.anomalies[:KEPT_MAX],
            at_rest=at_rest.anomalies[:KEPT_MAX],
            more=dict(self._more),
            silence=now.silence,
            silence_at_rest=at_rest.silence,
        )

    # ---- forgetting ------------------------------------------------------------------------------------------------

    def _forget(self, skew_ms: float) -> None:
        self._absences()  # records the consequences for open events, before accepted numbers are dropped
        self._drop_before_start(skew_ms)
        self._drop_skipped()
        if self.history.row.ended_ms is not None:
            self._drop_after_end()
        for covered in self._covered.values():
            covered.forget(self._lowest_open)
        for publisher in [publisher for publisher, waiting in self._open.items() if not waiting]:
            del self._open[publisher]
        for publisher, following in list(self._following.items()):
            waiting = self._open.get(publisher, {})
            self._following[publisher] = {seq: after for seq, after in following.items() if seq in waiting}

    def _lowest_open(self, publisher: str) -> int:
        waiting = self._open.get(publisher)
        return min(waiting) if waiting else self._seen.get(publisher, 0) + 1

    def _drop_before_start(self, skew_ms: float) -> None:
        history, row = self.history, self.history.row
        if row.active_ms is None:
            return
        may_come = {
            publisher: min(seqs)
            for publisher, waiting in self._open.items()
            if (seqs := [seq for seq in waiting if seq >= self._first(publisher)])
        }
        for publisher, waiting in self._open.items():
            start = history.start(publisher)
            for seq, event in list(waiting.items()):
                if start is not None and seq >= start:
                    continue
                is_promised = row.ready == "whole" and event.published_ms > row.active_ms + skew_ms
                is_old = event.published_ms < self._now_ms - HORIZON_MS
                if is_promised or (publisher not in history.cuts and not is_old):
                    continue
                may_be_due = any(may_come.get(other, last + 1) <= last for other, last in event.past.items())
                if cause_of(history, event) is None and (is_old or not may_be_due):
                    self._drop(waiting, event)

    def _drop_skipped(self) -> None:
        """Drop events that were reported as lost. They can still be delivered for a while."""
        for publisher in self.history.skipped:
            waiting = self._open.get(publisher, {})
            for seq, event in list(waiting.items()):
                is_old = event.published_ms < self._now_ms - HORIZON_MS
                if is_old and self.history.is_skipped(publisher, seq):
                    self._drop(waiting, event)

    def _drop(self, waiting: dict[int, Publication], event: Publication) -> None:
        del waiting[event.seq]
        self._dropped[event.publisher] = max(event.seq, self._dropped.get(event.publisher, 0))

    def _first(self, publisher: str) -> int:
        cut = self.history.cuts.get(publisher)
        return cut.from_seq if cut is not None else 0

    def _drop_after_end(self) -> None:
        """Drop events after the ending cut, which are not missing."""
        history = self.history
        for publisher, waiting in self._open.items():
            end = history.end(publisher)
            covered = [each.reached[publisher] for each in self._covered.values()]
            last = max([end if end is not None else 0, history.highest.get(publisher, 0), *covered])
            if end is None and publisher not in history.cuts:
                continue
            for seq in [seq for seq in waiting if seq > last]:
                del waiting[seq]


def _is_void(found: Anomaly, revoked: Delivery, left: list[int]) -> bool:
    """Return whether an inversion was found only in relation to a delivery that was revoked."""
    if found.kind != "fifo-inversion" or found.witness[0] != revoked.event_id:
        return False
    late = int(str(found.event).rpartition(":")[2])
    return not any(late < number < revoked.seq for number in left)
