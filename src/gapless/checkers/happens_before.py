"""Computes Lamport's happens-before relation over clients from `history`.

An event happens before another if the publisher of the second had published or received the first before it published
the second, and so on in chains. A publisher numbers its events in the order in which it publishes them, so the past of
an event contains, of every publisher, exactly the events up to some number. That vector represents the past: e1 happens
before e2 if and only if past(e2)[publisher of e1] >= seq of e1, for events of different publishers, and seq of e1 < seq
of e2 for events of one publisher.

The histories are replayed client by client. A client that received an event whose past is not known yet waits until the
replay of the event's publisher has reached that event. If some client still waits at the end, the histories contradict
each other. A client merges the pasts of delivered events only when it publishes, the latest delivery first
(`Knowledge`): entries that it knows already are skipped, and under causal delivery these are nearly all. A past that
did not grow is shared.

The relation can be restricted to some of the events, as if the others had not been published. Causal order per topic is
checked that way, because a chain that leads through another topic does not count.

An *act* is a number: that of a delivered event, or `~number` of a published one.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from gapless.checkers.publications import Publication, TracedPublication, Vector
from gapless.errors import TraceError
from gapless.trace import EventRow

__all__ = ["Acts", "HappensBefore", "Knowledge"]

Acts: TypeAlias = Mapping[str, Sequence[int]]
"""For each client, its actions in order, without deliveries of unpublished events."""

P = TypeVar("P", bound=Publication)
_NOTHING: Vector = {}


class Knowledge(Generic[P]):
    """The knowledge of one client in one causal order, as a vector."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.past: Vector = _NOTHING
        """The past of the client's last event."""
        self._fresh: dict[str, P] = {}
        """For each other publisher, the highest event delivered since the client's last publication; the latest
        delivery is last."""

    def deliver(self, event: P) -> None:
        """Record the delivery of another client's event."""
        before = self._fresh.pop(event.publisher, event)
        self._fresh[event.publisher] = event if event.seq >= before.seq else before

    def has_received(self, seq: int) -> bool:
        """Return whether the client received an event whose past contains the client's own event `seq`, or a
        later one."""
        return any(event.past.get(self.client, 0) >= seq for event in self._fresh.values())

    def publish(self) -> Vector:
        """Publish an event of the client, whose past is then `past`. Return the entries that are higher than before."""
        if not self._fresh:
            return _NOTHING
        before = self.past
        after = dict(before)
        for publisher, event in reversed(self._fresh.items()):
            if event.seq > after.get(publisher, 0):
                after[publisher] = event.seq
                for other, last in event.past.items():
                    if last > after.get(other, 0):
                        after[other] = last
        after.pop(self.client, None)
        self._fresh.clear()
        self.past = after
        return {name: last for name, last in after.items() if last > before.get(name, 0)}


class HappensBefore:
    """The past of every event, computed from the histories of all clients."""

    def __init__(self, run: str, events: Sequence[EventRow], acts: Acts, order: str | None = "") -> None:
        self.acts = acts
        self.events = [
            TracedPublication(row.event_id, row.publisher, row.seq, row.published_ms, order, self, number)
            for number, row in enumerate(events)
        ]
        self._pasts: dict[int, Vector] = {}
        self._advances: dict[int, Vector] = {}
        self._replay(run)

    def past(self, number: int) -> Vector:
        """Return the past of the event with this index."""
        return self._pasts[number]

    def advances(self, number: int) -> Vector:
        """Return the entries of the event's past that are higher than in its publisher's previous event."""
        return self._advances[number]

    def _replay(self, run: str) -> None:
        ready = list(self.acts)
        known = {client: Knowledge[TracedPublication](client) for client in ready}
        reached = dict.fromkeys(ready, 0)
        waiting: dict[int, list[str]] = {}
        while ready:
            client = ready.pop()
            reached[client] = self._follow(client, known[client], reached[client], ready, waiting)
        if waiting:
            event_id, client = min((self.events[number].event_id, names[0]) for number, names in waiting.items())
            raise TraceError(
                f"run {run}: the histories contradict each other, because client {client} delivers "
                f"{event_id} although its publication depends on that"
            )

    def _follow(
        self,
        client: str,
        known: Knowledge[TracedPublication],
        start: int,
        ready: list[str],
        waiting: dict[int, list[str]],
    ) -> int:
        """Replay the client's actions until it has to wait. Return the index at which it stopped."""
        acts, pasts, events = self.acts[client], self._pasts, self.events
        for place in range(start, len(acts)):
            number = acts[place]
            if number < 0:
                number = ~number
                self._advances[number] = known.publish()
                pasts[number] = known.past
                if number in waiting:
                    ready.extend(waiting.pop(number))
            elif number not in pasts:
                waiting.setdefault(number, []).append(client)
                return place
            else:
                event = events[number]
                if event.publisher != client:
                    known.deliver(event)
        return len(acts)
