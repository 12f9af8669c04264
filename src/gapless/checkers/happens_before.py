"""Lamport's relation over clients, computed from `history` alone.

An event happens before another if the publisher of the second had published or delivered the first before it
published the second, and so on in chains. A publisher numbers its events in the order in which it publishes
them, so the past of an event holds, of every publisher, exactly the events up to some number. That vector is
the past: e1 happens before e2 if and only if past(e2)[publisher of e1] >= seq of e1, for events of different
publishers, and seq of e1 < seq of e2 for events of one.

The histories are replayed client by client. A client that delivers an event whose past is not known yet waits
until its publisher has got there; if in the end somebody still waits, the histories contradict each other.
A client merges what it was delivered only when it publishes, the latest delivery first: what it knows already
is skipped, and under causal delivery that is nearly everything. A past that did not grow is shared.

The relation can be taken over some of the events only, as if the others had not been: that is how causal order
per topic is judged, where a chain that leads through another topic does not count.
"""

from typing import TypeAlias

from gapless.errors import TraceError
from gapless.trace import EventRow, HistoryRow

__all__ = ["HappensBefore", "Histories", "Vector"]

Vector: TypeAlias = dict[str, int]
"""Per publisher, the highest number that is in the past; publishers of which nothing is are left out."""

Histories: TypeAlias = dict[str, list[HistoryRow]]
"""Per client, its acts in order."""


class HappensBefore:
    """The past of every event. The event's own publisher is left out: its earlier events are all in the past."""

    def __init__(self, run: str, events: dict[str, EventRow], histories: Histories) -> None:
        self.events = events
        self.histories = histories
        self.pasts: dict[str, Vector] = {}
        self.advances: dict[str, Vector] = {}
        """The entries of each past that are higher than in the publisher's previous event."""
        _Replay(self).run(run)


class _Replay:
    def __init__(self, relation: HappensBefore) -> None:
        self.events = relation.events
        self.histories = relation.histories
        self.pasts = relation.pasts
        self.advances = relation.advances
        self.known: dict[str, Vector] = {client: {} for client in self.histories}
        self.fresh: dict[str, dict[str, EventRow]] = {client: {} for client in self.histories}
        self.reached = dict.fromkeys(self.histories, 0)
        self.waiting: dict[str, list[str]] = {}

    def run(self, run: str) -> None:
        ready = list(self.histories)
        while ready:
            self._follow(ready.pop(), ready)
        if self.waiting:
            event_id = min(self.waiting)
            raise TraceError(
                f"run {run}: the histories contradict each other, for client {self.waiting[event_id][0]} delivers "
                f"{event_id} although its publication depends on that"
            )

    def _follow(self, client: str, ready: list[str]) -> None:
        """Replay the client's acts until it has to wait."""
        rows, fresh = self.histories[client], self.fresh[client]
        for place in range(self.reached[client], len(rows)):
            row = rows[place]
            event = self.events.get(row.event_id)
            if event is None:
                continue
            if row.kind == "publish":
                self._publish(client, row.event_id)
                ready.extend(self.waiting.pop(row.event_id, ()))
            elif row.event_id not in self.pasts:
                self.reached[client] = place
                self.waiting.setdefault(row.event_id, []).append(client)
                return
            elif event.publisher != client:
                before = fresh.pop(event.publisher, event)
                fresh[event.publisher] = event if event.seq >= before.seq else before

    def _publish(self, client: str, event_id: str) -> None:
        before, fresh = self.known[client], self.fresh[client]
        if not fresh:
            self.pasts[event_id], self.advances[event_id] = before, {}
            return
        after = before.copy()
        for publisher, event in reversed(fresh.items()):
            if event.seq > after.get(publisher, 0):
                after[publisher] = event.seq
                for other, last in self.pasts[event.event_id].items():
                    if last > after.get(other, 0):
                        after[other] = last
        after.pop(client, None)
        fresh.clear()
        self.known[client] = self.pasts[event_id] = after
        self.advances[event_id] = {name: last for name, last in after.items() if last > before.get(name, 0)}
