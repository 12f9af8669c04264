"""Checks the losses that were reported to a subscription: counts them, and finds wrong reports (`false-loss`).

If more than f brokers fail, or history is dropped, events are lost. The affected subscriptions
receive a report. A reported event is not a gap (`gapless_fifo`): it is counted separately. Not
every reported event has to match, because its content may be lost as well. A report is a
`false-loss` if

- the subscription received the event, before or after; or
- the publisher never published it: its events in this run end before it (unless its part of the
  trace is incomplete).

Each delivered event is named once, and of each range the first number that was never published.
"""

from collections.abc import Iterator, Mapping

from gapless.checkers.acceptance import History
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly

__all__ = ["count_reported", "delivered_loss", "unpublished_losses"]


def count_reported(history: History, missing: Mapping[str, Mapping[int, Publication]]) -> int:
    """Return how many matching events from the starting cut on were reported to the subscription as lost."""
    count = 0
    for publisher in history.skipped:
        start = history.start(publisher) or 1
        count += sum(seq >= start and history.is_skipped(publisher, seq) for seq in missing.get(publisher, ()))
    return count


def delivered_loss(history: History, publisher: str, event_id: str) -> Anomaly:
    """Return the anomaly of an event that was both reported as lost and delivered."""
    return _false_loss(history, publisher, event_id, "was delivered")


def unpublished_losses(history: History, last_seq: Mapping[str, int]) -> Iterator[Anomaly]:
    """Yield losses that were reported beyond the last number of their publisher, where that is known."""
    for publisher in sorted(history.skipped):
        last = last_seq.get(publisher)
        if last is None:
            continue
        for row in sorted(history.skipped[publisher], key=lambda row: row.from_seq):
            if row.to_seq > last:
                unknown = f"{publisher}:{max(row.from_seq, last + 1)}"
                yield _false_loss(history, publisher, unknown, "was never published")


def _false_loss(history: History, publisher: str, event: str, flaw: str) -> Anomaly:
    client, subscription = history.row.client, history.row.subscription_id
    return Anomaly(
        kind="false-loss",
        client=client,
        subscription=subscription,
        event=event,
        publisher=publisher,
        witness=(event,),
        message=f"{event} was reported to {client} as lost for {subscription}, but it {flaw}",
    )
