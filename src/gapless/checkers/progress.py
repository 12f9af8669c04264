"""Finds `unobserved` events, and decides when a verdict is `unknown`.

Consider a run that continued until it was quiet, with all faults healed. Let S be a subscription that did not end, of a
client whose part of the trace is complete (for incomplete clients, no run is quiet).

- If S never became active, that is `unobserved`, without an event. Nothing else is unobserved for S.
- Otherwise event e is `unobserved` if it matches S and was never delivered, its number is at or after the starting cut
  of its publisher and after all delivered events of that publisher, and it is not a causal-inversion.

A run without an anomaly is `unknown`, rather than `valid`, if

- no delivery was accepted for any subscription; or
- the run was not quiet, and some subscription received nothing at all although an event was due to it (an event
  that matches, from the starting cut of its publisher on, not after the end); or
- the run was quiet, and some active subscription received nothing at all, although a matching event was published
  after it became active: by a publisher without a cut, because otherwise the event would be unobserved.

For `best-effort` only the first of these applies, because such a protocol guarantees no delivery.
"""

from collections.abc import Iterator

from gapless.checkers.acceptance import History
from gapless.checkers.gapless_fifo import Absences
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly

__all__ = ["find_unobserved", "silence"]


def find_unobserved(history: History, missing: list[Publication]) -> Iterator[Anomaly]:
    """Yield the events that should have been delivered by the quiet end of the run. `missing` events are after all
    delivered ones.
    """
    if history.row.ended_ms is not None:
        return
    if history.row.active_ms is None:
        yield _never_active(history)
        return
    for event in missing:
        yield _unobserved(history, event)


def silence(history: History, missing: Absences, quiesced: bool) -> str | None:
    """Return why a subscription that received nothing proves nothing. Return None if it received events, or none were
    due."""
    row = history.row
    if history.accepted:
        return None
    if not quiesced:
        due = missing.after_last if row.ended_ms is None else []
        return f"{row.subscription_id} has received nothing yet, although {due[0].event_id} is due" if due else None
    if row.ended_ms is not None or row.active_ms is None:
        return None
    for event in missing.before_start:
        if event.published_ms > row.active_ms and event.publisher not in history.cuts:
            return (
                f"{row.subscription_id} has received nothing, not even {event.event_id}, of whose publisher "
                "it has no cut"
            )
    return None


def _never_active(history: History) -> Anomaly:
    client, subscription = history.row.client, history.row.subscription_id
    return Anomaly(
        kind="unobserved",
        client=client,
        subscription=subscription,
        event=None,
        publisher=None,
        witness=(),
        message=f"{client} subscribed with {subscription}, but it never became active, although the run ended quietly",
    )


def _unobserved(history: History, missing: Publication) -> Anomaly:
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    start = f"{publisher}:{history.start(publisher)}"
    return Anomaly(
        kind="unobserved",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=(missing.event_id,) if publisher in history.cuts else (start, missing.event_id),
        message=(
            f"{client} was never delivered {missing.event_id} for {subscription}, although it starts at "
            f"{start} and the run ended quietly"
        ),
    )
