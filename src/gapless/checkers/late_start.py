"""Checks the guarantee that a returned `subscribe()` gives, and finds `late-start`.

A subscription S that is ready with the *whole* cut promises every matching event whose `publish()`
began, anywhere in the network, after its `subscribe()` had returned. Event e of publisher p is a
`late-start` if

- S states that it is ready with the whole cut;
- e matches S and never came;
- it is before the starting cut of p, or p has no starting cut, so that it is neither a gap nor
  unobserved: S starts too late for it;
- it was published while S was active: after `active_ms` and before `ended_ms`, by more than the
  clocks of two clients may differ;
- it is not after the end of p, as far as that is known (`History.is_reached`): where p has no
  starting cut and S is active, this requires a quiet end of the run, because until then it may
  come.

The first activation counts. A subscription that is reset before `subscribe()` returns has promised
nothing yet; one that is reset later keeps its promise, whatever cuts it gets then.

Publishers that advertise later are no exception: their first event is published later still, and S
was active.
"""

from collections.abc import Iterator

from gapless.checkers.acceptance import History
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly
from gapless.trace import SubscriptionRow

__all__ = ["find_late_starts"]


def find_late_starts(
    history: History, before_start: list[Publication], clock_skew_ms: float, quiesced: bool
) -> Iterator[Anomaly]:
    """Yield an anomaly for each event that was published while the subscription was active, and is
    before its start.
    """
    if history.row.ready != "whole":
        return
    for event in before_start:
        if _is_promised(history.row, event, clock_skew_ms) and history.is_reached(event, quiesced):
            yield _late_start(history, event)


def _is_promised(subscription: SubscriptionRow, event: Publication, clock_skew_ms: float) -> bool:
    """Return whether the event was certainly published while the subscription was active."""
    active_ms, ended_ms = subscription.active_ms, subscription.ended_ms
    if active_ms is None or event.published_ms <= active_ms + clock_skew_ms:
        return False
    return ended_ms is None or event.published_ms < ended_ms - clock_skew_ms


def _late_start(history: History, missing: Publication) -> Anomaly:
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    start = history.start(publisher)
    where = f"no event of {publisher} was ever delivered" if start is None else f"it starts at {publisher}:{start} only"
    is_assumed = start is not None and publisher not in history.cuts
    return Anomaly(
        kind="late-start",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=(f"{publisher}:{start}", missing.event_id) if is_assumed else (missing.event_id,),
        message=f"{client} was never delivered {missing.event_id} for {subscription}, although it was "
        f"published when the subscription was active: {where}",
    )
