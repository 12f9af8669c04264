"""Gapless FIFO delivery (definition 1 of the LoCaPS paper): `fifo-inversion` and `gap`.

Let H be the accepted history of a subscription S.

- `fifo-inversion`: e1 and e2 are events of one publisher, e1 has the lower number, and H has e2 before e1. It is
  reported once for each e1 that came late, against the highest number that had come before it.
- `gap`: e matches S and never came; its number is at or after the starting cut of its publisher, and either H has
  an event of that publisher with a higher number, or e is not after the publisher's ending cut.

Events that match and never came fall into three groups, by the publisher's cuts (`absences`). Those *before the
start* are none of this module's business: only causality can make them due. Those *within* are gaps. Those *after
the last* event that came may yet come; `causal_order` and `progress` say when they should have.
"""

from collections.abc import Iterator

import msgspec

from gapless.checkers.acceptance import AcceptedHistory
from gapless.checkers.verdict import Anomaly
from gapless.trace import EventRow

__all__ = ["Absences", "absences", "fifo_inversion", "find_fifo_inversions", "find_gaps", "gap_at"]


class Absences(msgspec.Struct, frozen=True):
    """Events that match a subscription and never came for it, in the order of publishers and numbers."""

    before_start: list[EventRow]
    """Before the starting cut of their publisher, or of a publisher without one."""
    within: list[EventRow]
    """From the starting cut on, and before the last event that came or up to the ending cut."""
    after_last: list[EventRow]
    """The others."""


def absences(history: AcceptedHistory) -> Absences:
    """What never came, by its place."""
    found = Absences([], [], [])
    for publisher, events in history.matching.items():
        start = history.start(publisher)
        last = max(history.highest.get(publisher, 0), history.end(publisher) or 0)
        for event in events:
            if event.event_id in history.came or history.is_skipped(event):
                continue
            if start is None or event.seq < start:
                found.before_start.append(event)
            elif event.seq <= last:
                found.within.append(event)
            else:
                found.after_last.append(event)
    return found


def find_fifo_inversions(history: AcceptedHistory) -> dict[str, Anomaly]:
    """Accepted events that came after a later one of their publisher, by id."""
    latest: dict[str, EventRow] = {}
    found = {}
    for event in history.events:
        before = latest.get(event.publisher)
        if before is not None and event.seq < before.seq:
            found[event.event_id] = fifo_inversion(history, event, before)
        else:
            latest[event.publisher] = event
    return found


def find_gaps(history: AcceptedHistory, missing: Absences) -> Iterator[Anomaly]:
    """One for each event that is missing within the cuts."""
    if missing.within:
        following = _Following(history)
        for event in missing.within:
            yield gap_at(history, event, following.accepted_after(event))


class _Following:
    """Finds the accepted event that follows a missing one. Missing events must be asked for in order."""

    def __init__(self, history: AcceptedHistory) -> None:
        self._descending: dict[str, list[EventRow]] = {}
        for event in sorted(history.events, key=lambda event: -event.seq):
            self._descending.setdefault(event.publisher, []).append(event)

    def accepted_after(self, missing: EventRow) -> EventRow | None:
        waiting = self._descending.get(missing.publisher, [])
        while waiting and waiting[-1].seq < missing.seq:
            waiting.pop()
        return waiting[-1] if waiting else None


def fifo_inversion(history: AcceptedHistory, late: EventRow, before: EventRow) -> Anomaly:
    """It came after a later one of its publisher."""
    client, subscription = history.row.client, history.row.subscription_id
    return Anomaly(
        kind="fifo-inversion",
        client=client,
        subscription=subscription,
        event=late.event_id,
        publisher=late.publisher,
        witness=(before.event_id, late.event_id),
        message=f"{client} was delivered {before.event_id} before {late.event_id} for {subscription}, "
        f"though {late.publisher} published them the other way round",
    )


def gap_at(history: AcceptedHistory, missing: EventRow, following: EventRow | None) -> Anomaly:
    """It never came, though the one that follows did, or the ending cut says so."""
    client, subscription, publisher = history.row.client, history.row.subscription_id, missing.publisher
    proof = [] if publisher in history.cuts else [f"{publisher}:{history.lowest[publisher]}"]
    proof.append(missing.event_id)
    if following is None:
        why = f"its ending cut is {publisher}:{history.end(publisher)}"
    else:
        why = f"it was delivered {following.event_id}"
        proof.append(following.event_id)
    return Anomaly(
        kind="gap",
        client=client,
        subscription=subscription,
        event=missing.event_id,
        publisher=publisher,
        witness=tuple(proof),
        message=f"{client} was never delivered {missing.event_id} for {subscription}, "
        f"though it starts at {publisher}:{history.start(publisher)} and {why}",
    )
