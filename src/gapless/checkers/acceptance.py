"""Which deliveries count: `spurious` and `duplicate`.

The deliveries for a subscription S are taken in the order of its client's steps. One of event e, number s of
publisher p, is judged by the first of these that applies:

1. `spurious` by what it is: e was never published; e does not match S; S has a cut for p and s < from_seq; S has
   an ending cut for p and s > to_seq.
2. `duplicate`: e was delivered for S before, and is not spurious by what it is.
3. `spurious` by when it came: before S was requested or after it had ended, by the client's own clock.

All others are *accepted*. They are the history of S, in order, for every other rule. Deliveries for a
subscription that does not exist, or that is another client's, are `spurious` too (*strays*).

An event *came* if it was delivered for S at all, accepted or not: what came is never called missing as well.
"""

from typing import Literal, TypeAlias

import msgspec

from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly
from gapless.trace import CutRow, SkippedRow, SubscriptionRow

__all__ = ["Delivery", "History", "Known", "duplicate_delivery", "flaw_of_event", "flaw_of_time", "spurious_delivery"]

Known: TypeAlias = Literal["match", "no match", "unpublished", "forgotten"]
"""What is known of a delivered event; `forgotten`: it was published, too long ago to be held."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """An event was handed to the application."""

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
        """The publisher, if it published the event."""
        return None if self.known == "unpublished" else self.publisher


class History(msgspec.Struct):
    """What a subscription promised, and the bounds of what was accepted for it."""

    row: SubscriptionRow
    cuts: dict[str, CutRow] = {}
    skipped: dict[str, list[SkippedRow]] = {}
    """Per publisher, what the subscription was told that it will not get: that is not missing."""
    lowest: dict[str, int] = {}
    """Per publisher, the lowest accepted number."""
    highest: dict[str, int] = {}
    """Per publisher, the highest accepted number."""
    accepted: int = 0

    def start(self, publisher: str) -> int | None:
        """The starting cut: as it was fixed, or else the lowest accepted number, or else unknown."""
        cut = self.cuts.get(publisher)
        return cut.from_seq if cut is not None else self.lowest.get(publisher)

    def end(self, publisher: str) -> int | None:
        """The ending cut, where one is known."""
        cut = self.cuts.get(publisher)
        return cut.to_seq if cut is not None else None

    def is_skipped(self, publisher: str, seq: int) -> bool:
        """Whether the subscription was told that it will not get the event."""
        return any(row.from_seq <= seq <= row.to_seq for row in self.skipped.get(publisher, ()))

    def is_reached(self, event: Publication, quiesced: bool) -> bool:
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


def flaw_of_event(delivery: Delivery, history: History) -> str | None:
    """What is wrong with what it is."""
    if delivery.known == "unpublished":
        return "it was never published"
    if delivery.known == "no match":
        return f"it does not match {history.row.filter!r}"
    cut = history.cuts.get(delivery.publisher)
    if cut is not None and delivery.seq < cut.from_seq:
        return f"it stands before the starting cut, {delivery.publisher}:{cut.from_seq}"
    if cut is not None and cut.to_seq is not None and delivery.seq > cut.to_seq:
        return f"it stands after the ending cut, {delivery.publisher}:{cut.to_seq}"
    return None


def flaw_of_time(time_ms: float, subscription: SubscriptionRow) -> str | None:
    """What is wrong with when it came."""
    if time_ms < subscription.requested_ms:
        return "the subscription was not requested yet"
    if subscription.ended_ms is not None and time_ms > subscription.ended_ms:
        return "the subscription had ended"
    return None


def spurious_delivery(delivery: Delivery, flaw: str) -> Anomaly:
    """It was not asked for."""
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
    """It came before, in that step if it is known in which."""
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
