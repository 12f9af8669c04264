"""Causal order of delivery: `causal-inversion`.

Let H be the accepted history of a subscription S, and let e1 happen before e2, of different publishers, with e2
in H. It is a `causal-inversion` of e1 if

- e1 is in H after e2, and no fifo-inversion; or
- e1 matches S and never came, though its number is at or after the starting cut of its publisher, and it is no
  gap: an effect was delivered without its cause. That is wrong at the moment the effect is delivered, so it does
  not matter whether the run went on until it was quiet, nor whether the subscription ended before the cause's
  turn: its ending cut is no consistent cut then.

It is reported once for each e1, against the first effect in H.

Under `gcd` (gapless causal) all of the run's events take part. Under `topic-causal` each topic (the string attribute
`topic`) is judged by itself: both events are of the topic, and so is every event of the chain that leads from one to
the other, for a barrier per topic knows of no other chains.

No pair is ever looked at. Walking along H, the entry for p of the *covered* vector is the highest number of p in
the past of anything delivered so far: e1 is late if that has reached its number already, and has an effect in H
if it does so in the end. Where each entry grew is noted, so that the first effect is found by bisection.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator

from gapless.checkers.acceptance import AcceptedHistory
from gapless.checkers.causal_chain import CausalChains
from gapless.checkers.evidence import Evidence
from gapless.checkers.happens_before import HappensBefore, Histories, Vector
from gapless.checkers.verdict import Anomaly
from gapless.trace import EventRow, attributes_from_text

__all__ = ["CausalOrder", "CausalOrders"]


class CausalOrder:
    """One relation, and the proofs that can be drawn from it."""

    def __init__(self, relation: HappensBefore) -> None:
        self.relation = relation
        self.chains = CausalChains(relation)


class CausalOrders:
    """The orders that a run is judged by, and which of them each event takes part in."""

    def __init__(self, order_of: Callable[[str], CausalOrder | None]) -> None:
        self._order_of = order_of

    @classmethod
    def of_all_events(cls, order: CausalOrder) -> "CausalOrders":
        """One order for the whole run."""
        return cls(lambda _: order)

    @classmethod
    def per_topic(cls, evidence: Evidence) -> "CausalOrders":
        """One order for each topic. Events without a topic take part in none."""
        topics = {event_id: _topic(event.attributes) for event_id, event in evidence.events.items()}
        events: dict[str, dict[str, EventRow]] = {}
        for event_id, topic in topics.items():
            if topic is not None:
                events.setdefault(topic, {})[event_id] = evidence.events[event_id]
        histories: dict[str, Histories] = {topic: {} for topic in events}
        for client, rows in evidence.histories.items():
            for row in rows:
                topic = topics.get(row.event_id)
                if topic is not None:
                    histories[topic].setdefault(client, []).append(row)
        run = evidence.run.run
        orders: dict[str | None, CausalOrder] = {
            topic: CausalOrder(HappensBefore(run, events[topic], histories[topic])) for topic in events
        }
        return cls(lambda event_id: orders.get(topics[event_id]))

    def find_inversions(
        self, history: AcceptedHistory, missing: list[EventRow], explained: dict[str, Anomaly]
    ) -> Iterator[Anomaly]:
        """Inversions of what came, save for what is explained already, and of what is missing."""
        lacking = self._by_order(missing)
        for order, delivered in self._by_order(history.events).items():
            covered = _Covered(delivered, order.relation)
            for event in covered.late:
                if event.event_id not in explained:
                    yield _inversion(history, event, covered.first_effect(event), "before", order)
            for event in lacking.get(order, []):
                if covered.has_effect(event):
                    yield _inversion(history, event, covered.first_effect(event), "without", order)

    def _by_order(self, events: list[EventRow]) -> dict[CausalOrder, list[EventRow]]:
        grouped: dict[CausalOrder, list[EventRow]] = {}
        for event in events:
            order = self._order_of(event.event_id)
            if order is not None:
                grouped.setdefault(order, []).append(event)
        return grouped


def _inversion(history: AcceptedHistory, cause: EventRow, effect: EventRow, how: str, order: CausalOrder) -> Anomaly:
    client, subscription = history.row.client, history.row.subscription_id
    return Anomaly(
        kind="causal-inversion",
        client=client,
        subscription=subscription,
        event=cause.event_id,
        publisher=cause.publisher,
        witness=order.chains.shortest([cause], effect),
        message=f"{client} was delivered {effect.event_id} {how} its cause {cause.event_id} for {subscription}",
    )


class _Covered:
    """The highest number of each publisher in the past of what was delivered, and where it grew."""

    def __init__(self, delivered: list[EventRow], relation: HappensBefore) -> None:
        self._delivered = delivered
        self._covered: Vector = {}
        self._growth: dict[str, tuple[list[int], list[int]]] = {}
        self.late: list[EventRow] = []
        merged: Vector = {}
        for place, event in enumerate(delivered):
            publisher, seq = event.publisher, event.seq
            if self._covered.get(publisher, 0) >= seq:
                self.late.append(event)
            # Right after its predecessor, an event adds only what its past knows beyond that one's.
            is_next = merged.get(publisher, 0) == seq - 1
            self._merge((relation.advances if is_next else relation.pasts)[event.event_id], place)
            merged[publisher] = seq

    def has_effect(self, cause: EventRow) -> bool:
        return self._covered.get(cause.publisher, 0) >= cause.seq

    def first_effect(self, cause: EventRow) -> EventRow:
        values, places = self._growth[cause.publisher]
        return self._delivered[places[bisect_left(values, cause.seq)]]

    def _merge(self, vector: Vector, place: int) -> None:
        covered = self._covered
        for publisher, seq in vector.items():
            if seq > covered.get(publisher, 0):
                covered[publisher] = seq
                values, places = self._growth.setdefault(publisher, ([], []))
                values.append(seq)
                places.append(place)


def _topic(attributes: str) -> str | None:
    topic = attributes_from_text(attributes).get("topic")
    return topic if isinstance(topic, str) else None
