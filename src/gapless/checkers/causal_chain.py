"""The shortest chain of events that leads from a cause to an effect: the proof that one happens before the other.

Each link of a chain is one that a reader can check in `history`: the publisher of the later event had published
or delivered the earlier one before. The search goes backwards from the effect, level by level. At each event it
follows, of every publisher, only the latest event that its own publisher had been delivered: what leads to an
earlier one leads to that one as well. Events that have no cause in their past are not followed, so no step is
lost. The index of the histories is built when the first chain is asked for: a valid run never pays for it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from gapless.checkers.happens_before import HappensBefore, Vector
from gapless.trace import EventRow

__all__ = ["CausalChains"]

_Arrivals = tuple[list[int], list[EventRow]]
"""Places in a client's history at which the highest number of one publisher grew, and the events that made it."""


class CausalChains:
    """Finds chains in one relation."""

    def __init__(self, relation: HappensBefore) -> None:
        self._relation = relation
        self._published_at: dict[str, int] = {}
        self._delivered_at: dict[str, dict[str, int]] = {}
        self._arrivals: dict[str, dict[str, _Arrivals]] = {}

    def shortest(self, causes: Sequence[EventRow], effect: EventRow) -> tuple[str, ...]:
        """Ids from one of the causes to the effect, as few as possible. One of the causes must be in its past."""
        self._build_index()
        lowest: Vector = {}
        for cause in causes:
            lowest[cause.publisher] = min(cause.seq, lowest.get(cause.publisher, cause.seq))
        level: list[tuple[EventRow, ...]] = [(effect,)]
        followed: Vector = {}
        while level:
            for chain in level:
                found = self._direct_cause(causes, chain[0])
                if found is not None:
                    return tuple(event.event_id for event in (found, *chain))
            level = [(event, *chain) for chain in level for event in self._leads(chain[0], lowest, followed)]
        raise AssertionError(f"nothing leads to {effect.event_id}")

    def _direct_cause(self, causes: Sequence[EventRow], event: EventRow) -> EventRow | None:
        place = self._published_at[event.event_id]
        delivered_at = self._delivered_at.get(event.publisher, {})
        for cause in causes:
            if cause.publisher == event.publisher:
                if cause.seq < event.seq:
                    return cause
            elif delivered_at.get(cause.event_id, place) < place:
                return cause
        return None

    def _leads(self, event: EventRow, lowest: Vector, followed: Vector) -> Iterator[EventRow]:
        """The latest event of each publisher that was delivered before this one was published, if it can lead on."""
        place = self._published_at[event.event_id]
        for publisher, (places, arrived) in self._arrivals.get(event.publisher, {}).items():
            count = bisect_left(places, place)
            if count == 0:
                continue
            before = arrived[count - 1]
            if before.seq > followed.get(publisher, 0) and self._has_cause(before, lowest):
                followed[publisher] = before.seq
                yield before

    def _has_cause(self, event: EventRow, lowest: Vector) -> bool:
        if lowest.get(event.publisher, event.seq) < event.seq:
            return True
        past = self._relation.pasts[event.event_id]
        return any(past.get(publisher, 0) >= seq for publisher, seq in lowest.items() if publisher != event.publisher)

    def _build_index(self) -> None:
        if self._published_at:
            return
        for client, rows in self._relation.histories.items():
            delivered_at = self._delivered_at[client] = {}
            arrivals: dict[str, _Arrivals] = {}
            self._arrivals[client] = arrivals
            for place, row in enumerate(rows):
                event = self._relation.events.get(row.event_id)
                if event is None:
                    continue
                if row.kind == "publish":
                    self._published_at[row.event_id] = place
                elif event.publisher != client:
                    delivered_at.setdefault(row.event_id, place)
                    places, arrived = arrivals.setdefault(event.publisher, ([], []))
                    if not arrived or arrived[-1].seq < event.seq:
                        places.append(place)
                        arrived.append(event)
