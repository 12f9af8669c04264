"""Which deliveries count: `spurious` and `duplicate`.

The deliveries for a subscription S are taken in the order of its client's steps. One of event e, number s of
publisher p, is judged by the first of these that applies:

1. `spurious` by what it is: e was never published; e does not match S; S has a cut for p and s < from_seq; S has
   an ending cut for p and s > to_seq.
2. `duplicate`: e was delivered for S before, and is not spurious by what it is.
3. `spurious` by when it came: before S was requested or after it had ended, by the client's own clock.

All others are *accepted*. They are the history of S, in order, for every other rule. Deliveries for a
subscription that does not exist, or that is another client's, are `spurious` too.

An event *came* if it was delivered for S at all, accepted or not: what came is never called missing as well.
"""

from collections.abc import Iterator

import msgspec

from gapless.checkers.evidence import Evidence, SubscriptionEvidence
from gapless.checkers.verdict import Anomaly
from gapless.trace import CutRow, EventRow, HistoryRow, SkippedRow, SubscriptionRow

__all__ = [
    "AcceptedHistory", "accept", "duplicate_delivery", "find_strays", "flaw_of_event", "flaw_of_time",
    "spurious_delivery",
]  # fmt: skip


class AcceptedHistory(msgspec.Struct, frozen=True):
    """The history of one subscription, without what is spurious or a duplicate."""

    row: SubscriptionRow
    cuts: dict[str, CutRow]
    matching: dict[str, list[EventRow]]
    events: list[EventRow]
    steps: list[int]
    """The client's step of each accepted event."""
    came: set[str]
    """Ids of all events that were delivered, accepted or not."""
    lowest: dict[str, int]
    """Per publisher, the lowest accepted number."""
    highest: dict[str, int]
    """Per publisher, the highest accepted number."""
    skipped: dict[str, list[SkippedRow]]
    """Per publisher, what the subscription was told that it will not get: that is not missing."""

    def start(self, publisher: str) -> int | None:
        """The starting cut: as it was fixed, or else the lowest accepted number, or else unknown."""
        cut = self.cuts.get(publisher)
        return cut.from_seq if cut is not None else self.lowest.get(publisher)

    def end(self, publisher: str) -> int | None:
        """The ending cut, where one is known."""
        cut = self.cuts.get(publisher)
        return cut.to_seq if cut is not None else None

    def is_skipped(self, event: EventRow) -> bool:
        """Whether the subscription was told that it will not get the event."""
        return any(row.from_seq <= event.seq <= row.to_seq for row in self.skipped.get(event.publisher, ()))

    def is_reached(self, event: EventRow, quiesced: bool) -> bool:
        """Whether the event, which never came, is not after its publisher's end, as far as that is known.

        Where the publisher has an ending cut, that says it; where the subscription has ended without one, something
        of the publisher came; where it lives, the publisher has a starting cut, or nothing can come any more.
        """
        end = self.end(event.publisher)
        if end is not None:
            return event.seq <= end
        if self.row.ended_ms is not None:
            return event.publisher in self.highest
        return quiesced or self.start(event.publisher) is not None


def accept(
    subscription: SubscriptionEvidence, events: dict[str, EventRow], matching: dict[str, list[EventRow]]
) -> tuple[AcceptedHistory, list[Anomaly]]:
    """Sort the deliveries of a subscription into those that count and those that are wrong."""
    history = AcceptedHistory(
        subscription.row, subscription.cuts, matching, [], [], set(), {}, {}, subscription.skipped
    )
    matches = {event.event_id for group in matching.values() for event in group}
    first_steps: dict[str, int] = {}
    anomalies = []
    for delivery in subscription.deliveries:
        event = events.get(delivery.event_id)
        flaw = flaw_of_event(event, delivery.event_id in matches, history)
        if flaw is None and delivery.event_id in first_steps:
            anomalies.append(duplicate_delivery(delivery, first_steps[delivery.event_id], event))
            continue
        flaw = flaw or flaw_of_time(delivery, history.row)
        history.came.add(delivery.event_id)
        first_steps.setdefault(delivery.event_id, delivery.step)
        if flaw is not None:
            anomalies.append(spurious_delivery(delivery, event, flaw))
        elif event is not None:
            _append(history, event, delivery.step)
    return history, anomalies


def find_strays(evidence: Evidence) -> Iterator[Anomaly]:
    """Deliveries for a subscription that does not exist or is another client's."""
    owners = {subscription.row.subscription_id: subscription.row.client for subscription in evidence.subscriptions}
    for delivery in evidence.strays:
        owner = owners.get(delivery.subscription_id or "")
        flaw = "the subscription was never requested" if owner is None else f"the subscription belongs to {owner}"
        yield spurious_delivery(delivery, evidence.events.get(delivery.event_id), flaw)


def _append(history: AcceptedHistory, event: EventRow, step: int) -> None:
    publisher, seq = event.publisher, event.seq
    history.events.append(event)
    history.steps.append(step)
    history.lowest[publisher] = min(seq, history.lowest.get(publisher, seq))
    history.highest[publisher] = max(seq, history.highest.get(publisher, seq))


def flaw_of_event(event: EventRow | None, matches: bool, history: AcceptedHistory) -> str | None:
    """What is wrong with what it is."""
    if event is None:
        return "it was never published"
    if not matches:
        return f"it does not match {history.row.filter!r}"
    cut = history.cuts.get(event.publisher)
    if cut is not None and event.seq < cut.from_seq:
        return f"it stands before the starting cut, {event.publisher}:{cut.from_seq}"
    if cut is not None and cut.to_seq is not None and event.seq > cut.to_seq:
        return f"it stands after the ending cut, {event.publisher}:{cut.to_seq}"
    return None


def flaw_of_time(delivery: HistoryRow, subscription: SubscriptionRow) -> str | None:
    """What is wrong with when it came."""
    if delivery.time_ms < subscription.requested_ms:
        return "the subscription was not requested yet"
    if subscription.ended_ms is not None and delivery.time_ms > subscription.ended_ms:
        return "the subscription had ended"
    return None


def spurious_delivery(delivery: HistoryRow, event: EventRow | None, flaw: str) -> Anomaly:
    """It was not asked for."""
    return Anomaly(
        kind="spurious",
        client=delivery.client,
        subscription=delivery.subscription_id,
        event=delivery.event_id,
        publisher=event.publisher if event is not None else None,
        witness=(delivery.event_id, f"{delivery.client}#{delivery.step}"),
        message=f"{delivery.client} was delivered {delivery.event_id} for {delivery.subscription_id}, but {flaw}",
    )


def duplicate_delivery(delivery: HistoryRow, first_step: int, event: EventRow | None) -> Anomaly:
    """It came before, in that step."""
    steps = (f"{delivery.client}#{first_step}", f"{delivery.client}#{delivery.step}")
    return Anomaly(
        kind="duplicate",
        client=delivery.client,
        subscription=delivery.subscription_id,
        event=delivery.event_id,
        publisher=event.publisher if event is not None else None,
        witness=(delivery.event_id, *steps),
        message=f"{delivery.client} was delivered {delivery.event_id} twice for {delivery.subscription_id}, "
        f"in steps {first_step} and {delivery.step}",
    )
