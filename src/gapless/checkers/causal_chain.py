"""Finds the shortest chain of events from a cause to an effect, which proves that one happens before the other.

Readers can check each link of a chain in `history`: the publisher of the later event had published or received the
earlier one before. The search goes backwards from the effect, level by level. At each event it follows only the latest
delivered event of every publisher: a chain that leads to an earlier one also leads to the latest. Events without the
cause in their past are not followed. The index of the histories is built when the first chain is requested, so the
check of a valid run never builds it.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from gapless.checkers.happens_before import Acts
from gapless.checkers.publications import Publication

__all__ = ["CausalChains", "Chains", "NoChainError"]

_Arrivals = tuple[list[int], list[Publication]]
"""The indices in a client's history at which the highest number of one publisher grew, with the events."""


class NoChainError(Exception):
    """Raised when the claimed pasts contain a cause from which no chain leads to the effect, so that they are false."""


class Chains(Protocol):
    """Finds the shortest proof of a causal anomaly."""

    def shortest(self, causes: Sequence[Publication], effect: Publication) -> tuple[str, ...] | None:
        """Return the ids of a shortest chain from one of the causes to the effect, or None if the maximum number of
        chains was reached."""


class CausalChains:
    """Finds chains in one causal order."""

    def __init__(self, events: Sequence[Publication], acts: Callable[[], Acts], at_most: int | None = None) -> None:
        """`acts` is called for the first chain. After `at_most` chains, no more are searched for."""
        self._events = events
        self._acts = acts
        self._left = at_most
        self._published_at: dict[str, int] = {}
        self._delivered_at: dict[str, dict[str, int]] = {}
        self._arrivals: dict[str, dict[str, _Arrivals]] = {}

    def shortest(self, causes: Sequence[Publication], effect: Publication) -> tuple[str, ...] | None:
        """Return the ids of a shortest chain from one of the causes to the effect. One of the causes must be in its
        past.
        """
        if self._left is not None:
            if not self._left:
                return None
            self._left -= 1
        self._build_index()
        lowest: dict[str, int] = {}
        for cause in causes:
            lowest[cause.publisher] = min(cause.seq, lowest.get(cause.publisher, cause.seq))
        level: list[tuple[Publication, ...]] = [(effect,)]
        followed: dict[str, int] = {}
        while level:
            for chain in level:
                found = self._direct_cause(causes, chain[0])
                if found is not None:
                    return tuple(event.event_id for event in (found, *chain))
            level = [(event, *chain) for chain in level for event in self._leads(chain[0], lowest, followed)]
        raise NoChainError(f"no chain leads to {effect.event_id}")

    def _direct_cause(self, causes: Sequence[Publication], event: Publication) -> Publication | None:
        place = self._published_at[event.event_id]
        delivered_at = self._delivered_at.get(event.publisher, {})
        for cause in causes:
            if cause.publisher == event.publisher:
                if cause.seq < event.seq:
                    return cause
            elif delivered_at.get(cause.event_id, place) < place:
                return cause
        return None

    def _leads(self, event: Publication, lowest: dict[str, int], followed: dict[str, int]) -> Iterator[Publication]:
        """Yield, for each publisher, its latest event delivered before the given one was published, if a chain through
        it can lead to the cause."""
        place = self._published_at[event.event_id]
        for publisher, (places, arrived) in self._arrivals.get(event.publisher, {}).items():
            count = bisect_left(places, place)
            if count == 0:
                continue
            before = arrived[count - 1]
            if before.seq > followed.get(publisher, 0) and _has_cause(before, lowest):
                followed[publisher] = before.seq
                yield before

    def _build_index(self) -> None:
        if self._published_at:
            return
        for client, acts in self._acts().items():
            if any(number < 0 for number in acts):
                self._index(client, acts)

    def _index(self, client: str, acts: Sequence[int]) -> None:
        """Index the actions of a client that publishes. Chains pass through no other clients."""
        delivered_at = self._delivered_at[client] = {}
        arrivals = self._arrivals[client] = {}
        for place, number in enumerate(acts):
            event = self._events[number if number >= 0 else ~number]
            if number < 0:
                self._published_at[event.event_id] = place
            elif event.publisher != client:
                delivered_at.setdefault(event.event_id, place)
                places, arrived = arrivals.setdefault(event.publisher, ([], []))
                if not arrived or arrived[-1].seq < event.seq:
                    places.append(place)
                    arrived.append(event)


def _has_cause(event: Publication, lowest: dict[str, int]) -> bool:
    if lowest.get(event.publisher, event.seq) < event.seq:
        return True
    past = event.past
    return any(past.get(publisher, 0) >= seq for publisher, seq in lowest.items() if publisher != event.publisher)
