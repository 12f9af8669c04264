"""Checks gapless FIFO delivery (definition 1 of the LoCaPS paper), and finds `fifo-inversion` and `gap`.

Let H be the accepted history of a subscription S.

- `fifo-inversion`: e1 and e2 are events of one publisher, e1 has the lower number, and H has e2
  before e1. It is reported once for each late e1, with the highest number delivered before it.
- `gap`: e matches S and was never delivered; its number is at or after the starting cut of its publisher,
  and either H has an event of that publisher with a higher number, or e is not after the
  publisher's ending cut.

Matching events that were never delivered form three groups, by the publisher's cuts (`absences`). Events *before the
start* are not handled here: only causality can make them due. Events *within* are gaps. Events *after the last*
delivered one may still arrive; `causal_order` and `progress` define when they should have.
"""

from collections.abc import Mapping

import msgspec

from gapless.checkers.acceptance import History
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly

__all__ = ["Absences", "absences", "fifo_inversion", "gap_at"]


class Absences(msgspec.Struct, frozen=True):
    """The events that match a subscription and were never delivered to it, ordered by publisher and number."""

    before_start: list[Publication]
    """Events before the starting cut of their publisher, or of a publisher without one."""
    within: list[Publication]
    """Events from the starting cut on that are before the last delivered event or covered by the ending cut."""
    after_last: list[Publication]
    """All other events."""


def absences(history: History, missing: Mapping[str, Mapping[int, Publication]]) -> Absences:
    """Return the matching events that were never delivered, grouped by their relation to the cuts."""
    found = Absences([], [], [])
    for publisher in sorted(missing):
        start = history.start(publisher)
        last = max(history.highest.get(publisher, 0), history.end(publisher) or 0)
        of_publisher = missing[publisher]
        for seq in sorted(of_publisher):
            if publisher in history.skipped and history.is_skipped(publisher, seq):
                continue
            if start is None or seq < start:
                found.before_start.append(of_publisher[seq])
            elif seq <= last:
                found.within.append(of_publisher[seq])
            else:
                found.after_last.append(of_publisher[seq])
    return found


def fifo_inversion(history: History, late: Publication, before: int) -> Anomaly:
    """Return the anomaly of an event that was delivered after this later number of its publisher."""
    client, subscription, publisher = history.row.client, history.row.subscription_id, late.publisher
    return Anomaly(
        kind="fifo-inversion",
        client=client,
        subscription=subscription,
        event=late.event_id,
        publisher=publisher,
        witness=(f"{publisher}:{before}", late.event_id),
        message=f"{client} was delivered {publisher}:{before} before {late.event_id} for {subscription}, "
        f"although {publisher} published them in the other order",
    )


def gap_at(history: History, missing: Publication, following: int | None) -> Anomaly:
    """Return the anomaly of an event that was not delivered, although a later one was or the ending cut includes it."""
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    proof = [] if publisher in history.cuts else [f"{publisher}:{history.lowest[publisher]}"]
    proof.append(missing.event_id)
    if following is None:
        why = f"its ending cut is {publisher}:{history.end(publisher)}"
    else:
        why = f"it was delivered {publisher}:{following}"
        proof.append(f"{publisher}:{following}")
    return Anomaly(
        kind="gap",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=tuple(proof),
        message=f"{client} was never delivered {missing.event_id} for {subscription}, although it starts at "
        f"{publisher}:{history.start(publisher)} and {why}",
    )
