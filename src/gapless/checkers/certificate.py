"""Checks the certificate of causality, and finds `false-past` anomalies where it differs from the computed pasts.

The table `pasts` claims, for each event, the last event of each other publisher in its past. It has a row only where
that differs from the same publisher's previous event. It is compared with the pasts computed from `history`. There is a
`false-past` of event e about publisher q

- if a row claims a number that is not the highest of q in the past of e;
- if there is no row, though the past of e reaches further for q than that of its publisher's previous event;
- if a row is about e's own publisher (its earlier events are in the past by their numbers, and are not written)
  or about an event that was never published.

A row that repeats the past of the previous event is superfluous, but not wrong. Each wrong or missing row is reported
once: later rows are compared with the computed pasts, not with the wrong claim.

**A run can be checked without replaying all of its histories.** All claims are true if two conditions hold. First, the
claims about each publisher's events follow from its deliveries and from the claims about the delivered events
(`Certificate.follows`). Second, no event is in its own past. Each past then follows from earlier ones. So a worker that
has some of the clients checks the claims about their events, and relies on the other claims. If one claim does not
follow, the run has to be replayed.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gapless.checkers.happens_before import HappensBefore, Knowledge
from gapless.checkers.publications import TracedPublication, Vector
from gapless.checkers.verdict import Anomaly
from gapless.trace import EventRow

__all__ = ["Certificate", "find_false_pasts"]

CHECKPOINT_EVERY = 64
"""The number of events of a publisher between two pasts that are stored completely."""

CACHED_MAX = 4_000_000
"""The maximum number of entries in other stored pasts, about 250 megabytes."""

_NOTHING: dict[str, int] = {}


class Certificate:
    """The past of every event as the certificate claims it. It takes sixteen bytes per entry, and a cache of recent
    pasts.
    """

    def __init__(
        self,
        events: Sequence[EventRow],
        names: Sequence[str],
        at: Iterable[int],
        about: Sequence[int],
        reach: Sequence[int],
    ) -> None:
        """`events` are ordered by publisher and number. An entry belongs to the event `at`, concerns the publisher with
        index `about` in `names`, and says that the past goes up to `reach`. Entries are in the order of events.
        """
        self.events = [
            TracedPublication(row.event_id, row.publisher, row.seq, row.published_ms, "", self, number)
            for number, row in enumerate(events)
        ]
        self._names, self._about, self._reach = names, about, reach
        self._first = array("q", bytes(8 * (len(events) + 1)))
        for number in at:
            self._first[number + 1] += 1
        for number in range(len(events)):
            self._first[number + 1] += self._first[number]
        self._cached: dict[int, Vector] = {}
        self._entries = 0
        self._checkpoints = dict(self._whole_pasts())

    def past(self, number: int) -> Vector:
        """Return the past of the event with this index."""
        found = self._cached.get(number)
        if found is None:
            found = self._cached[number] = self._walk(number)
            self._entries += len(found)
            if self._entries > CACHED_MAX:
                self._cached = {number: found}
                self._entries = len(found)
        return found

    def advances(self, number: int) -> Vector:
        """Return the certificate's entries for the event with this index."""
        first, end = self._first[number], self._first[number + 1]
        return {self._names[self._about[place]]: self._reach[place] for place in range(first, end)}

    def follows(self, client: str, acts: Sequence[int]) -> bool:
        """Return whether the claims about the client's events follow from its actions and from the claims about other
        clients' events."""
        known: Knowledge[TracedPublication] = Knowledge(client)
        published = 0
        for number in acts:
            event = self.events[number if number >= 0 else ~number]
            if number >= 0:
                if event.publisher != client:
                    known.deliver(event)
                elif event.seq > published:
                    return False
            else:
                published = event.seq
                if known.has_received(published):
                    return False
                advanced, claimed = known.publish(), self.advances(~number)
                if advanced != claimed and not _is_true(claimed, advanced, known.past):
                    return False
        return True

    def _walk(self, number: int) -> Vector:
        """Compute a past from the nearest stored one."""
        start = number
        while start not in self._cached and start not in self._checkpoints:
            start -= 1
        held = self._cached.get(start)
        past = dict(held if held is not None else self._checkpoints[start])
        for place in range(self._first[start + 1], self._first[number + 1]):
            past[self._names[self._about[place]]] = self._reach[place]
        return past

    def _whole_pasts(self) -> Iterator[tuple[int, Vector]]:
        """Yield the past of the first event of each publisher, and of some later ones."""
        past: dict[str, int] = {}
        publisher, since = "", 0
        for number, event in enumerate(self.events):
            if event.publisher != publisher:
                past, publisher, since = {}, event.publisher, 0
            past.update(self.advances(number))
            if since % CHECKPOINT_EVERY == 0:
                yield number, past.copy()
            since += 1


def _is_true(claimed: Vector, advanced: Vector, past: Vector) -> bool:
    """Return whether the entries claimed for an event are correct and complete."""
    return advanced.keys() <= claimed.keys() and all(past.get(name, 0) == seq for name, seq in claimed.items())


def find_false_pasts(
    claims: Mapping[str, Vector], relation: HappensBefore, events: Sequence[TracedPublication]
) -> Iterator[Anomaly]:
    """Yield an anomaly for each wrong or missing entry of the certificate. `claims` has the entries by event."""
    for event in events:
        claimed = claims.get(event.event_id, _NOTHING)
        if claimed != event.advances:
            yield from _differences(event, claimed, event.advances, event.past)
    known = {event.event_id for event in relation.events}
    for event_id, claimed in claims.items():
        if event_id not in known:
            for publisher, seq in claimed.items():
                yield _about_nothing(event_id, publisher, seq)


def _differences(event: TracedPublication, claimed: Vector, advanced: Vector, past: Vector) -> Iterator[Anomaly]:
    for publisher in sorted(claimed.keys() | advanced.keys()):
        truth = past.get(publisher, 0)
        if publisher == event.publisher:
            yield _false_past(event, publisher, f"has an entry for its own publisher, {publisher}")
        elif publisher not in claimed:
            yield _false_past(event, publisher, f"has no entry for {publisher}, but reaches up to {publisher}:{truth}")
        elif claimed[publisher] != truth:
            up_to = f"up to {publisher}:{truth}" if truth else "none of its events"
            said = f"{publisher}:{claimed[publisher]}"
            yield _false_past(event, publisher, f"is claimed to reach up to {said}, but reaches {up_to}")


def _false_past(event: TracedPublication, publisher: str, flaw: str) -> Anomaly:
    return Anomaly(
        kind="false-past",
        client=event.publisher,
        subscription=None,
        event=event.event_id,
        publisher=publisher,
        witness=(event.event_id,),
        message=f"the past of {event.event_id} {flaw}",
    )


def _about_nothing(event_id: str, publisher: str, seq: int) -> Anomaly:
    return Anomaly(
        kind="false-past",
        client=event_id.rpartition(":")[0],
        subscription=None,
        event=event_id,
        publisher=publisher,
        witness=(event_id,),
        message=f"the past of {event_id} is claimed to reach up to {publisher}:{seq}, but that was never published",
    )
