"""Indexes the rows of one run for the checkers.

Nothing is checked here, but a `TraceError` rejects a trace that no run can have left: steps that are not 0, 1, 2…, an
event that is published twice, by another client, out of its publisher's order, or listed but never published, and rows
with invalid references. A delivery of an event that was never published, or for a subscription that was never
requested, does not make a trace invalid: a faulty protocol can cause it, and the checker reports it.
"""

from operator import attrgetter

import msgspec

from gapless.checkers.incomplete_clients import IncompleteClient
from gapless.errors import TraceError
from gapless.trace import CutRow, EventRow, HistoryRow, RunRow, SkippedRow, SubscriptionRow, Trace

__all__ = ["Evidence", "SubscriptionEvidence", "check_count"]


class SubscriptionEvidence(msgspec.Struct, frozen=True):
    """One subscription, with its cuts by publisher and its deliveries in the order of its client's steps."""

    row: SubscriptionRow
    cuts: dict[str, CutRow]
    deliveries: list[HistoryRow]
    skipped: dict[str, list[SkippedRow]]
    """For each publisher, the events that were reported to the subscription as lost."""


class Evidence(msgspec.Struct, frozen=True):
    """The rows of one run, by event, publisher, client and subscription."""

    run: RunRow
    events: dict[str, EventRow]
    by_publisher: dict[str, list[EventRow]]
    """Each publisher's events in the order of their numbers."""
    histories: dict[str, list[HistoryRow]]
    """Each client's actions in the order of their steps."""
    subscriptions: list[SubscriptionEvidence]
    strays: list[HistoryRow]
    """Deliveries for subscriptions that do not exist or belong to another client."""
    pasts: dict[str, dict[str, int]]
    """The certificate's entries, by event and publisher."""
    cut_short: IncompleteClient
    """The clients whose part of the trace is incomplete."""
    published: int
    """The number of publications among the actions."""

    @property
    def listed(self) -> list[EventRow]:
        """Return all events in the order of publishers and numbers."""
        return [row for rows in self.by_publisher.values() for row in rows]

    @property
    def deliveries(self) -> int:
        """Return the number of deliveries among the actions."""
        return sum(map(len, self.histories.values())) - self.published

    @classmethod
    def of(cls, trace: Trace, *, is_share: bool = False) -> "Evidence":
        """Index the trace of one run. The `history` of a share contains all actions of some clients."""
        if len(trace.runs) != 1:
            raise TraceError(f"the trace contains {len(trace.runs)} runs; check them with check_all, or split it first")
        run = trace.runs[0]
        histories = _histories(trace, run.run)
        events = _events(trace, run.run)
        published = _check_publications(events, histories, run.run)
        if not is_share:
            check_count(run.run, len(events), published)
        subscriptions = _subscriptions(trace, run.run)
        strays = _hand_out_deliveries(subscriptions, histories)
        cut_short = IncompleteClient(trace.cut_short, run.run)
        cut_short.check_deliveries(histories, run.run)
        return cls(
            run=run,
            events=events,
            by_publisher=_by_publisher(events),
            histories=histories,
            subscriptions=list(subscriptions.values()),
            strays=strays,
            pasts=_pasts(trace, run.run),
            cut_short=cut_short,
            published=published,
        )


def _histories(trace: Trace, run: str) -> dict[str, list[HistoryRow]]:
    histories: dict[str, list[HistoryRow]] = {}
    for row in trace.history:
        if row.client in histories:
            histories[row.client].append(row)
        else:
            histories[row.client] = [row]
    for client, rows in histories.items():
        rows.sort(key=attrgetter("step"))
        for expected, row in enumerate(rows):
            if row.step != expected:
                raise TraceError(f"run {run}: client {client} has no single step {expected}; number its acts 0, 1, 2…")
            if (row.kind == "deliver") != (row.subscription_id is not None):
                raise TraceError(
                    f"run {run}: step {expected} of client {client} must name a subscription exactly if it delivers"
                )
    return histories


def _events(trace: Trace, run: str) -> dict[str, EventRow]:
    events: dict[str, EventRow] = {}
    for row in trace.events:
        if row.event_id != f"{row.publisher}:{row.seq}" or row.seq < 1:
            raise TraceError(f"run {run}: event {row.event_id} is not named publisher:seq, with numbers from 1")
        if row.event_id in events:
            raise TraceError(f"run {run}: event {row.event_id} is listed twice")
        events[row.event_id] = row
    return events


def check_count(run: str, listed: int, published: int) -> None:
    """Check that every listed event was published."""
    if published != listed:
        raise TraceError(
            f"run {run}: {listed} events are listed, but {published} published; record each publication as a step"
        )


def _check_publications(events: dict[str, EventRow], histories: dict[str, list[HistoryRow]], run: str) -> int:
    """Check the publications of all clients, and return their number."""
    published = 0
    for client, rows in histories.items():
        last_seq = 0
        for row in rows:
            if row.kind == "deliver":
                continue
            event = events.get(row.event_id)
            if event is None or event.publisher != client:
                raise TraceError(
                    f"run {run}: client {client} publishes {row.event_id}, which is not an event of its own"
                )
            if event.seq <= last_seq:
                raise TraceError(f"run {run}: client {client} publishes {row.event_id} out of order")
            last_seq = event.seq
            published += 1
    return published


def _by_publisher(events: dict[str, EventRow]) -> dict[str, list[EventRow]]:
    grouped: dict[str, list[EventRow]] = {}
    for row in events.values():
        grouped.setdefault(row.publisher, []).append(row)
    for rows in grouped.values():
        rows.sort(key=attrgetter("seq"))
    return dict(sorted(grouped.items()))


def _subscriptions(trace: Trace, run: str) -> dict[str, SubscriptionEvidence]:
    found: dict[str, SubscriptionEvidence] = {}
    for row in trace.subscriptions:
        if row.subscription_id in found:
            raise TraceError(f"run {run}: subscription {row.subscription_id} is listed twice")
        found[row.subscription_id] = SubscriptionEvidence(row, {}, [], {})
    for skip in trace.skipped:
        if skip.subscription_id not in found:
            raise TraceError(
                f"run {run}: events were skipped for subscription {skip.subscription_id}, which is not listed"
            )
        found[skip.subscription_id].skipped.setdefault(skip.publisher, []).append(skip)
    for cut in trace.cuts:
        owner = found.get(cut.subscription_id)
        if owner is None:
            raise TraceError(f"run {run}: a cut belongs to subscription {cut.subscription_id}, which is not listed")
        if cut.publisher in owner.cuts:
            raise TraceError(
                f"run {run}: subscription {cut.subscription_id} has two cuts for publisher {cut.publisher}"
            )
        if cut.to_seq is not None and owner.row.ended_ms is None:
            raise TraceError(f"run {run}: subscription {cut.subscription_id} has an ending cut, but did not end")
        owner.cuts[cut.publisher] = cut
    return found


def _hand_out_deliveries(
    subscriptions: dict[str, SubscriptionEvidence], histories: dict[str, list[HistoryRow]]
) -> list[HistoryRow]:
    strays = []
    for client, rows in histories.items():
        for row in rows:
            if row.subscription_id is None:
                continue
            owner = subscriptions.get(row.subscription_id)
            if owner is not None and owner.row.client == client:
                owner.deliveries.append(row)
            else:
                strays.append(row)
    return strays


def _pasts(trace: Trace, run: str) -> dict[str, dict[str, int]]:
    pasts: dict[str, dict[str, int]] = {}
    for row in trace.pasts:
        entries = pasts.setdefault(row.event_id, {})
        if row.publisher in entries:
            raise TraceError(f"run {run}: the past of {row.event_id} has two entries for publisher {row.publisher}")
        entries[row.publisher] = row.seq
    return pasts
