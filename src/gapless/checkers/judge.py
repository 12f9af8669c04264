"""Checks runs: indexes a trace, passes each subscription's rows to `SubscriptionChecker`, and combines the results.

It relies on `runs`, `events`, `subscriptions`, `cuts` and `history`, and not on a protocol's
statements about its own messages. A run can be checked in shares, each of some of its clients: see
`RunChecker`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from gapless.checkers.acceptance import Delivery, Known, spurious_delivery
from gapless.checkers.causal_chain import CausalChains, Chains
from gapless.checkers.certificate import find_false_pasts
from gapless.checkers.evidence import Evidence, SubscriptionEvidence
from gapless.checkers.happens_before import Acts, HappensBefore
from gapless.checkers.matching import Matching
from gapless.checkers.publications import TracedPublication
from gapless.checkers.subscription import Findings, SubscriptionChecker
from gapless.checkers.verdict import JUDGED, Anomaly, Status, Verdict
from gapless.trace import EventRow, HistoryRow, Trace, attributes_from_text

__all__ = ["RunChecker", "RunFindings", "acts_of", "check", "check_all", "check_run", "status_of"]


_NOTHING: dict[int, TracedPublication] = {}


class RunFindings(msgspec.Struct):
    """The anomalies found in a run, or in a share of it."""

    anomalies: list[Anomaly] = []
    first: int = 0
    """The index of the first anomaly's subscription. Anomalies without a subscription come last."""
    silence: tuple[int, str] | None = None
    """The first subscription that received nothing without proving an anomaly, and why that proves nothing."""
    accepted: int = 0
    reported_losses: int = 0


def check(trace: Trace) -> Verdict:
    """Check the only run in the trace against the guarantee that it claims."""
    evidence = Evidence.of(trace)
    found = check_run(evidence)
    first = found.anomalies[0].message if found.anomalies else None
    silence = found.silence[1] if found.silence is not None else None
    status, reason = status_of(first, len(found.anomalies), found.accepted, silence)
    return Verdict(
        run=evidence.run.run,
        guarantee=evidence.run.guarantee,
        status=status,
        reason=reason + evidence.cut_short.reason(),
        anomalies=tuple(found.anomalies),
        events=len(evidence.events),
        subscriptions=len(evidence.subscriptions),
        deliveries=evidence.deliveries,
        cut_short=evidence.cut_short.sentences(),
        reported_losses=found.reported_losses,
    )


def check_all(trace: Trace) -> list[Verdict]:
    """Check each run of the trace."""
    return [check(part) for part in trace.split()]


def check_run(evidence: Evidence) -> RunFindings:
    """Return all anomalies of a run."""
    acts = acts_of(evidence)
    relation = HappensBefore(evidence.run.run, evidence.listed, acts)
    found = RunChecker(evidence, relation.events, lambda: acts).findings()
    found.anomalies += find_false_pasts(evidence.pasts, relation, relation.events)
    return found


def acts_of(evidence: Evidence) -> Acts:
    """Return each client's actions, by the indices of events in `evidence.listed`."""
    numbers = {row.event_id: number for number, row in enumerate(evidence.listed)}
    return {client: _numbered(rows, numbers) for client, rows in evidence.histories.items()}


def status_of(first: str | None, anomalies: int, accepted: int, silence: str | None) -> tuple[Status, str]:
    """Return the status of a run and its reason, from its anomalies or the first subscription that received nothing."""
    if first is not None:
        return "invalid", first if anomalies == 1 else f"{first} (and {anomalies - 1} more)"
    if not accepted:
        return "unknown", "nothing was delivered in the whole run"
    if silence is not None:
        return "unknown", silence
    return "valid", f"{accepted} deliveries are as promised"


class RunChecker:
    """Checks the subscriptions of one run, one after the other.

    It needs the pasts of all events, and the acts of the clients whose subscriptions it checks. The
    acts of all clients are needed only for the proof of a causal anomaly, or if each topic has its
    own order.
    """

    def __init__(
        self,
        evidence: Evidence,
        events: Sequence[TracedPublication],
        acts: Callable[[], Acts],
        chains_max: int | None = None,
        clients: Callable[[str], bool] = lambda client: True,
    ) -> None:
        """Create the checker of a run. `chains_max` is the maximum number of proofs. `clients` are those whose
        subscriptions are checked."""
        self._evidence = evidence
        self._is_mine = clients
        self._chains: dict[str, Chains] = {}
        kinds = JUDGED[evidence.run.guarantee]
        rows = evidence.listed
        self._events = {event.event_id: event for event in events}
        if "missing-effect" in kinds:
            self._chains[""] = CausalChains(events, acts, chains_max)
        elif "causal-inversion" in kinds:
            self._split_by_topic(rows, acts(), chains_max)
        due = (
            (self._events[row.event_id], row.attributes)
            for publisher in evidence.by_publisher.values()
            for row in publisher
            if evidence.cut_short.is_due(row)
        )
        asked = [each.row.filter for each in evidence.subscriptions if clients(each.row.client)]
        self._matching = Matching(asked, due)
        self._last_seq = {
            publisher: listed[-1].seq
            for publisher, listed in evidence.by_publisher.items()
            if publisher not in evidence.cut_short
        }

    def _split_by_topic(self, rows: Sequence[EventRow], acts: Acts, chains_max: int | None) -> None:
        """Split the events by topic. Each takes part only in the causal order of its topic, if it has one."""
        topics = [_topic(row.attributes) for row in rows]
        numbers: dict[str, list[int]] = {}
        for number, topic in enumerate(topics):
            if topic is None:
                event = self._events[rows[number].event_id]
                event.order = None
            else:
                numbers.setdefault(topic, []).append(number)
        for topic, chosen in numbers.items():
            renumbered = {number: place for place, number in enumerate(chosen)}
            of_topic = {client: _chosen(each, renumbered) for client, each in acts.items()}
            relation = HappensBefore(self._evidence.run.run, [rows[number] for number in chosen], of_topic, topic)
            self._events.update((event.event_id, event) for event in relation.events)
            self._chains[topic] = CausalChains(relation.events, lambda acts=of_topic: acts, chains_max)  # type: ignore[misc]

    def findings(self) -> RunFindings:
        """Check all subscriptions of the clients, and deliveries for unknown subscriptions."""
        found = RunFindings(first=len(self._evidence.subscriptions))
        for place, subscription in enumerate(self._evidence.subscriptions):
            if not self._is_mine(subscription.row.client):
                continue
            result = self._judge(subscription)
            if result.anomalies and not found.anomalies:
                found.first = place
            found.anomalies += result.anomalies
            found.accepted += result.accepted
            found.reported_losses += result.reported_losses
            if result.silence is not None and found.silence is None:
                found.silence = place, result.silence
        found.anomalies += self._strays()
        return found

    def _judge(self, subscription: SubscriptionEvidence) -> Findings:
        evidence, row = self._evidence, subscription.row
        judge = SubscriptionChecker(row, evidence.run.guarantee, self._chains)
        judge.history.cuts.update(subscription.cuts)
        for rows in subscription.skipped.values():
            for skipped in rows:
                judge.skip(skipped)
        matches = self._matching.events(row.filter)
        for publisher, events in matches.items():
            judge.expect(publisher, events)
        known = self._events
        for act in subscription.deliveries:
            event = known.get(act.event_id)
            if event is None or not judge.deliver_due(event, act.step, act.time_ms):
                judge.deliver(self._delivery(act, matches))
        # The actions of a client after the end of its part are unknown, so the run is not quiet for it.
        quiet = evidence.run.quiesced and row.client not in evidence.cut_short
        return judge.findings(evidence.run.clock_skew_ms, self._last_seq, quiet=quiet)

    def _strays(self) -> Iterable[Anomaly]:
        """Yield an anomaly for each delivery to a subscription that does not exist or belongs to another client."""
        rows = (subscription.row for subscription in self._evidence.subscriptions)
        owners = {row.subscription_id: row.client for row in rows} if self._evidence.strays else {}
        for act in self._evidence.strays:
            owner = owners.get(act.subscription_id or "")
            flaw = "the subscription was never requested" if owner is None else f"the subscription belongs to {owner}"
            yield spurious_delivery(self._delivery(act, {}), flaw)

    def _delivery(self, act: HistoryRow, matches: Mapping[str, Mapping[int, TracedPublication]]) -> Delivery:
        event = self._events.get(act.event_id)
        publisher, seq = "", 0
        known: Known = "unpublished"
        if event is not None:
            publisher, seq = event.publisher, event.seq
            known = "match" if seq in matches.get(publisher, _NOTHING) else "no match"
        return Delivery(
            act.client, act.subscription_id or "", act.event_id, publisher, seq, act.step, act.time_ms, known
        )


def _numbered(rows: Sequence[HistoryRow], numbers: Mapping[str, int]) -> list[int]:
    acts = []
    for row in rows:
        number = numbers.get(row.event_id)
        if number is not None:
            acts.append(~number if row.subscription_id is None else number)
    return acts


def _chosen(acts: Sequence[int], places: Mapping[int, int]) -> list[int]:
    """Return the actions that concern the chosen events, with the new indices of these events."""
    chosen = []
    for number in acts:
        place = places.get(number if number >= 0 else ~number)
        if place is not None:
            chosen.append(place if number >= 0 else ~place)
    return chosen


def _topic(attributes: str) -> str | None:
    topic = attributes_from_text(attributes).get("topic")
    return topic if isinstance(topic, str) else None
