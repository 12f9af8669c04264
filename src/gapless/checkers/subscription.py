"""Checks one subscription incrementally, processing its events in order.

An event is *open* if it matches and has not been delivered. Anomalies of deliveries are known at once, and are final
(`acceptance`, `gapless_fifo`, `causal_order`, `reported_loss`). Anomalies of missing events follow from the open ones,
so they are computed for each report.

A batch check (`judge`) passes the complete trace of one subscription: its cuts, all due events, and every delivery;
then it asks for the result once. A live check (`live.subscription`) asks repeatedly, and drops what is no longer
needed.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping

import msgspec

from gapless.checkers.acceptance import (
    Delivery,
    History,
    duplicate_delivery,
    flaw_of_event,
    flaw_of_time,
    spurious_delivery,
)
from gapless.checkers.causal_chain import Chains
from gapless.checkers.causal_order import Covered, causal_inversion
from gapless.checkers.gapless_fifo import Absences, absences, fifo_inversion, gap_at
from gapless.checkers.late_start import find_late_starts
from gapless.checkers.missing_effect import find_missing_effects
from gapless.checkers.progress import find_unobserved, silence
from gapless.checkers.publications import Publication
from gapless.checkers.reported_loss import count_reported, delivered_loss, unpublished_losses
from gapless.checkers.verdict import JUDGED, Anomaly, AnomalyKind
from gapless.protocol import Guarantee
from gapless.trace import SkippedRow, SubscriptionRow

__all__ = ["Findings", "SubscriptionChecker"]

_RANK: dict[AnomalyKind, int] = {"spurious": 0, "duplicate": 0, "false-loss": 1, "fifo-inversion": 2}
"""The order in which anomalies of deliveries are shown. Those of missing events follow."""


class Findings(msgspec.Struct, frozen=True):
    """The result of the check of one subscription."""

    anomalies: list[Anomaly]
    accepted: int
    reported_losses: int
    silence: str | None
    """If the subscription received nothing: why that proves nothing."""


class SubscriptionChecker:
    """Checks one subscription of any client."""

    def __init__(self, row: SubscriptionRow, guarantee: Guarantee, chains: Mapping[str, Chains] | None = None) -> None:
        """`chains` proves causal anomalies, by causal order. Without it, the proof consists of cause and effect."""
        self.history = History(row)
        self._kinds = JUDGED[guarantee]
        self._chains = chains
        self._is_causal = "causal-inversion" in self._kinds
        self._open: dict[str, dict[int, Publication]] = {}
        self._steps: dict[str, int] = {}
        """For each delivered event, the first step, or `~step` if it was not accepted."""
        self._lost: set[str] = set()
        """The events that were delivered although they were reported as lost."""
        self._numbers: dict[str, list[int]] = {}
        """For each publisher, the numbers accepted since the last update of `_following`."""
        self._following: dict[str, dict[int, int]] = {}
        """For each open event, the lowest accepted number of its publisher that is larger."""
        self._covered: dict[str, Covered] = {}
        self._found: list[Anomaly] = []
        self._deliveries = 0

    # ---- input ----------------------------------------------------------------------------------------------

    def expect(self, publisher: str, events: Mapping[int, Publication]) -> None:
        """Add matching events of the publisher."""
        self._open.setdefault(publisher, {}).update(events)

    def skip(self, row: SkippedRow) -> None:
        """Record events that were reported as lost."""
        self.history.skipped.setdefault(row.publisher, []).append(row)

    def deliver_due(self, event: Publication, step: int, time_ms: float) -> bool:
        """Process a delivery of an open event that causes no anomaly, and return True. If it returns False, call
        `deliver`.
        """
        history, publisher, seq = self.history, event.publisher, event.seq
        waiting, row = self._open.get(publisher), history.row
        if waiting is None or seq not in waiting or history.skipped:
            return False
        cut = history.cuts.get(publisher)
        if cut is not None and (seq < cut.from_seq or (cut.to_seq is not None and seq > cut.to_seq)):
            return False
        if time_ms < row.requested_ms or (row.ended_ms is not None and time_ms > row.ended_ms):
            return False
        self._deliveries += 1
        del waiting[seq]
        self._steps[event.event_id] = step
        self._accept(event)
        return True

    def deliver(self, delivery: Delivery) -> None:
        """Process the next delivery, and record its anomalies."""
        history, publisher, seq = self.history, delivery.publisher, delivery.seq
        self._deliveries += 1
        waiting = self._open.get(publisher)
        event = waiting.get(seq) if waiting is not None else None
        flaw = flaw_of_event(delivery, history)
        if publisher in history.skipped and delivery.known != "unpublished" and history.is_skipped(publisher, seq):
            self._deliver_lost(delivery)
        if flaw is None and event is None:
            self._deliver_again(delivery)
            return
        flaw = flaw or flaw_of_time(delivery.time_ms, history.row)
        if waiting is not None and event is not None:
            del waiting[seq]
        if delivery.known == "match" or delivery.known == "forgotten":
            self._steps.setdefault(delivery.event_id, delivery.step if flaw is None else ~delivery.step)
        if flaw is not None:
            self._note(spurious_delivery(delivery, flaw))
        elif event is not None:
            self._accept(event)

    def _deliver_lost(self, delivery: Delivery) -> None:
        if delivery.event_id not in self._lost:
            self._lost.add(delivery.event_id)
            self._note(delivered_loss(self.history, delivery.publisher, delivery.event_id))

    def _deliver_again(self, delivery: Delivery) -> None:
        """Process a delivery of an event that matches and is not open."""
        first = self._steps[delivery.event_id]
        self._note(duplicate_delivery(delivery, first if first >= 0 else ~first))

    def _accept(self, event: Publication) -> None:
        history, publisher, seq = self.history, event.publisher, event.seq
        history.accepted += 1
        highest = history.highest.get(publisher)
        if highest is None:
            history.lowest[publisher] = history.highest[publisher] = seq
        elif seq > highest:
            history.highest[publisher] = seq
        else:
            history.lowest[publisher] = min(seq, history.lowest[publisher])
            if "fifo-inversion" in self._kinds:
                self._note(fifo_inversion(history, event, highest))
        self._numbers.setdefault(publisher, []).append(seq)
        if self._is_causal and event.order is not None:
            covered = self._covered.get(event.order)
            if covered is None:
                covered = self._covered[event.order] = Covered()
            if covered.has_effect(event) and (highest is None or seq > highest):
                self._note(self._inversion(event, covered, "before"))
            covered.merge(event)

    def _note(self, anomaly: Anomaly) -> None:
        self._found.append(anomaly)

    # ---- results --------------------------------------------------------------------------------------------

    def findings(self, skew_ms: float, last_seq: Mapping[str, int], *, quiet: bool) -> Findings:
        """Return the result if the run ended here. `last_seq` has the last numbers of completely known publishers."""
        history = self.history
        reported = 0
        found = list(self._found)
        if history.skipped:
            reported = count_reported(history, self._open)
            found += unpublished_losses(history, last_seq)
        found.sort(key=lambda anomaly: _RANK.get(anomaly.kind, len(_RANK)))
        why = None
        if "gap" in self._kinds:
            missing = self._absences()
            late = [anomaly for anomaly in found if anomaly.kind == "causal-inversion"]
            found = found[: len(found) - len(late)] + list(self._missing(missing, late, skew_ms, quiet=quiet))
            why = silence(history, missing, quiet)
        return Findings(found, history.accepted, reported, why)

    def _absences(self) -> Absences:
        for publisher, numbers in self._numbers.items():
            waiting = self._open.get(publisher)
            if waiting:
                self._bring_up_to_date(publisher, waiting, sorted(numbers))
        self._numbers.clear()
        return absences(self.history, self._open)

    def _bring_up_to_date(self, publisher: str, waiting: Mapping[int, Publication], numbers: list[int]) -> None:
        following = self._following.setdefault(publisher, {})
        for seq in waiting:
            place = bisect_right(numbers, seq)
            if place < len(numbers):
                following[seq] = min(numbers[place], following.get(seq, numbers[place]))

    def _missing(self, missing: Absences, late: list[Anomaly], skew_ms: float, *, quiet: bool) -> Iterator[Anomaly]:
        """Yield the anomalies of missing events, merged with `late` ones. Each event gets the first kind that
        applies.
        """
        for event in missing.within:
            yield gap_at(self.history, event, self._following.get(event.publisher, {}).get(event.seq))
        yield from late
        inverted = {anomaly.event: anomaly for anomaly in self._inverted(missing.after_last)}
        yield from inverted.values()
        if quiet:
            left = [event for event in missing.after_last if event.event_id not in inverted]
            yield from find_unobserved(self.history, left)
        if "late-start" not in self._kinds:
            return
        unstarted = {
            anomaly.event: anomaly for anomaly in find_late_starts(self.history, missing.before_start, skew_ms, quiet)
        }
        yield from unstarted.values()
        left = [event for event in missing.before_start if event.event_id not in unstarted]
        covered = self._covered.get("")
        accepted = covered.accepted if covered is not None else []
        yield from find_missing_effects(self.history, left, quiet, accepted, self._chains_of(""))

    def _inverted(self, missing: list[Publication]) -> Iterator[Anomaly]:
        if not self._is_causal:
            return
        for event in missing:
            covered = self._covered.get(event.order) if event.order is not None else None
            if covered is not None and covered.has_effect(event):
                yield self._inversion(event, covered, "without")

    def _inversion(self, cause: Publication, covered: Covered, how: str) -> Anomaly:
        effect = covered.first_effect(cause)
        return causal_inversion(self.history, cause, effect, how, self._chains_of(cause.order))

    def _chains_of(self, order: str | None) -> Chains | None:
        return self._chains.get(order) if self._chains is not None and order is not None else None
