"""Computes metrics of a run from its trace, so that they mean the same for every protocol.

- *subscribing*: from the call until the subscription is active;
- *delivering*: from the publication to each delivery of it;
- *lost*: events that match a subscription, were published while it was active, and never came. For
  an ended subscription, only events count that precede another one of the same publisher, or that
  its ending cut includes: others may have been in flight. A guarantee may allow such a loss, as it
  says nothing about events before a starting cut; the client misses it all the same;
- *state*: the largest number of entries, of all kinds, that a broker kept.
"""

from collections.abc import Iterable, Mapping
from math import ceil

import msgspec

from gapless.checkers.evidence import Evidence, SubscriptionEvidence
from gapless.checkers.matching import Matching
from gapless.simulator.result import Result
from gapless.trace import EventRow

__all__ = ["Figures", "Times", "metrics_of_run"]


class Times(msgspec.Struct, frozen=True):
    """Statistics of a duration. The values are None if it never occurred."""

    count: int
    mean_ms: float | None
    p99_ms: float | None
    """The 99th percentile."""
    max_ms: float | None

    @classmethod
    def of(cls, times: Iterable[float]) -> "Times":
        """Return the statistics of these durations."""
        ordered = sorted(times)
        if not ordered:
            return cls(0, None, None, None)
        rank = ceil(len(ordered) * 0.99) - 1
        mean = sum(ordered) / len(ordered)
        return cls(len(ordered), *(round(value, 3) for value in (mean, ordered[rank], ordered[-1])))


class Figures(msgspec.Struct, frozen=True):
    """The metrics of one run."""

    subscribing: Times
    never_active: int
    """The number of requested subscriptions that neither became active nor ended."""
    delivering: Times
    due: int
    """The number of events that were due to active subscriptions."""
    lost: int
    """The number of due events that were never delivered."""
    messages: int
    bytes: int
    state_mean: float
    """The largest amount of state that a broker kept, averaged over all brokers."""
    state_most: int
    """The largest amount of state that any broker kept."""
    refused_calls: int


def metrics_of_run(result: Result) -> Figures:
    """Return the metrics of a run. Messages must have been recorded."""
    trace = result.trace
    assert trace is not None, "a run without a trace has no metrics"
    evidence = Evidence.of(trace)
    asked = [subscription.row for subscription in evidence.subscriptions]
    active = [row.active_ms - row.requested_ms for row in asked if row.active_ms is not None]
    due, lost = _losses(evidence)
    peaks = [sum(kinds.values()) for kinds in result.state_sizes_by_broker.values()]
    return Figures(
        subscribing=Times.of(active),
        never_active=sum(row.active_ms is None and row.ended_ms is None for row in asked),
        delivering=Times.of(_delivery_times(evidence)),
        due=due,
        lost=lost,
        messages=result.messages,
        bytes=sum(row.bytes for row in trace.messages),
        state_mean=round(sum(peaks) / len(peaks), 1) if peaks else 0.0,
        state_most=max(peaks, default=0),
        refused_calls=len(result.refusals),
    )


def _delivery_times(evidence: Evidence) -> Iterable[float]:
    for subscription in evidence.subscriptions:
        for delivery in subscription.deliveries:
            event = evidence.events.get(delivery.event_id)
            if event is not None:
                yield delivery.time_ms - event.published_ms


def _losses(evidence: Evidence) -> tuple[int, int]:
    """Return how many deliveries were due, and how many of them were lost."""
    listed = [row for rows in evidence.by_publisher.values() for row in rows]
    matching = Matching((each.row.filter for each in evidence.subscriptions), ((row, row.attributes) for row in listed))
    due = lost = 0
    for subscription in evidence.subscriptions:
        came = {delivery.event_id for delivery in subscription.deliveries}
        wanted = _due(subscription, matching.events(subscription.row.filter), came)
        due += len(wanted)
        lost += sum(event.event_id not in came for event in wanted)
    return due, lost


def _due(
    subscription: SubscriptionEvidence, matching: Mapping[str, Mapping[int, EventRow]], came: set[str]
) -> list[EventRow]:
    row = subscription.row
    if row.active_ms is None:
        return []
    wanted = []
    for publisher, events in matching.items():
        later = [event for event in events.values() if event.published_ms > row.active_ms]
        if row.ended_ms is not None:
            cut = subscription.cuts.get(publisher)
            got = [event.seq for event in later if event.event_id in came]
            last = max([*got, (cut.to_seq if cut is not None else None) or 0])
            later = [event for event in later if event.seq <= last]
        wanted += later
    return wanted
