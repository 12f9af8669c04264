"""Decides which deliveries of a subscription are valid, and finds `spurious` and `duplicate` ones.

The deliveries for a subscription S are processed in the order of its client's steps. A delivery of event e, number s of
publisher p, is classified by the first of these rules that applies:

1. `spurious` by its content: e was never published; e does not match S; S has a cut for p and s < from_seq; S has
   an ending cut for p and s > to_seq.
2. `duplicate`: e was delivered for S before, and is not spurious by its content.
3. `spurious` by its time: before S was requested or after it had ended, by the client's own clock.

All others are *accepted*. They are the history of S, in order, for all other rules. Deliveries for a subscription that
does not exist, or that belongs to another client, are `spurious` too (*strays*).

A delivered event is never reported as missing, even if the delivery was not accepted.
"""

from typing import Literal, TypeAlias

import msgspec

from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly
from gapless.trace import CutRow, SkippedRow, SubscriptionRow

__all__ = ["Delivery", "History", "Known", "duplicate_delivery", "flaw_of_event", "flaw_of_time", "spurious_delivery"]

Known: TypeAlias = Literal["match", "no match", "unpublished", "forgotten"]
"""The relation of a delivered event to the subscription; `forgotten` means that it was published too long ago to be
kept."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """An event that was passed to the application."""

    client: str
    subscription: str
    event_id: str
    publisher: str
    seq: int
    step: int
    time_ms: float
    known: Known

    @property
    def published_by(self) -> str | None:
        """Return the publisher, or None if it never published the event."""
        return None if self.known == "unpublished" else self.publisher


class History(msgspec.Struct):
    """The cuts of a subscription, and the bounds of its accepted events."""

    row: SubscriptionRow
    cuts: dict[str, CutRow] = {}
    skipped: dict[str, list[SkippedRow]] = {}
    """For each publisher, the events that were reported to the subscription as lost, which are not missing."""
    lowest: dict[str, int] = {}
    """For each publisher, the lowest accepted number."""
    highest: dict[str, int] = {}
    """For each publisher, the highest accepted number."""
    accepted: int = 0

    def start(self, publisher: str) -> int | None:
        """Return the publisher's starting cut: the fixed one, or else the lowest accepted number, or None."""
        cut = self.cuts.get(publisher)
        return cut.from_seq if cut is not None else self.lowest.get(publisher)

    def end(self, publisher: str) -> int | None:
        """Return the ending cut of a publisher, or None if it is unknown."""
        cut = self.cuts.get(publisher)
        return cut.to_seq if cut is not None else None

    def is_skipped(self, publisher: str, seq: int) -> bool:
        """Return whether the event was reported to the subscription as lost."""
        return any(row.from_seq <= seq <= row.to_seq for row in self.skipped.get(publisher, ()))

    def is_reached(self, event: Publication, quiesced: bool) -> bool:
        """Return whether an undelivered event is within the events that its publisher's known end makes due.

        If the publisher has an ending cut, the event must not be after it. If the subscription has ended without one,
        some event of the publisher must have been delivered. If the subscription is active, the publisher must have a
        starting cut, or the run must have ended quietly.
        """
        end = self.end(event.publisher)
        if end is not None:
            return event.seq <= end
        if self.row.ended_ms is not None:
            return event.publisher in self.highest
        return quiesced or self.start(event.publisher) is not None


def flaw_of_event(delivery: Delivery, history: History) -> str | None:
    """Return why the event itself is spurious for this subscription, or None."""
    if delivery.known == "unpublished":
        return "it was never published"
    if delivery.known == "no match":
        return f"it does not match {history.row.filter!r}"
    cut = history.cuts.get(delivery.publisher)
    if cut is not None and delivery.seq < cut.from_seq:
        return f"it is before the starting cut, {delivery.publisher}:{cut.from_seq}"
    if cut is not None and cut.to_seq is not None and delivery.seq > cut.to_seq:
        return f"it is after the ending cut, {delivery.publisher}:{cut.to_seq}"
    return None


def flaw_of_time(time_ms: float, subscription: SubscriptionRow) -> str | None:
    """Return why the time of the delivery is spurious, or None."""
    if time_ms < subscription.requested_ms:
        return "the subscription was not requested yet"
    if subscription.ended_ms is not None and time_ms > subscription.ended_ms:
        return "the subscription had ended"
    return None


def spurious_delivery(delivery: Delivery, flaw: str) -> Anomaly:
    """Return the anomaly of a delivery that was not requested."""
    client, event, subscription = delivery.client, delivery.event_id, delivery.subscription
    return Anomaly(
        kind="spurious",
        client=client,
        subscription=subscription,
        event=event,
        publisher=delivery.published_by,
        witness=(event, f"{client}#{delivery.step}"),
        message=f"{client} was delivered {event} for {subscription}, but {flaw}",
    )


def duplicate_delivery(delivery: Delivery, first_step: int | None) -> Anomaly:
    """Return the anomaly of an event that was delivered before, in step `first_step` if that is known."""
    client, event, subscription, step = delivery.client, delivery.event_id, delivery.subscription, delivery.step
    how, steps = f"again for {subscription}, in step {step}", [step]
    if first_step is not None:
        how, steps = f"twice for {subscription}, in steps {first_step} and {step}", [first_step, step]
    return Anomaly(
        kind="duplicate",
        client=client,
        subscription=subscription,
        event=event,
        publisher=delivery.published_by,
        witness=(event, *(f"{client}#{step}" for step in steps)),
        message=f"{client} was delivered {event} {how}",
    )
