"""Checks causal order of delivery, and finds `causal-inversion`.

Let H be the accepted history of a subscription S, and let e1 happen before e2, of different publishers, with e2 in H.
It is a `causal-inversion` of e1 if

- e1 is in H after e2, and is not a fifo-inversion; or
- e1 matches S and was never delivered, its number is at or after the starting cut of its publisher, and it
  is not a gap: an effect was delivered without its cause. This is wrong at the moment the effect is
  delivered. It is therefore irrelevant whether the run continued until it was quiet, and whether the
  subscription ended before the cause was due: its ending cut is then not a consistent cut.

It is reported once for each e1, with the first effect in H.

Under `gcd` (gapless causal delivery) all events of the run are included. Under `topic-causal` each topic (the string
attribute `topic`) is checked separately: both events have the topic, and so has every event of the chain between them,
because a barrier per topic does not know other chains.

Pairs are never compared. While H is processed, the *covered* vector contains, for each publisher p, the highest number
of p in the past of any event delivered so far. Event e1 is late if the entry for its publisher has already reached its
number, and has an effect in H if the entry reaches it by the end. The growth of each entry is recorded, so that the
first effect is found by bisection.
"""

from bisect import bisect_left
from collections.abc import Callable
from operator import itemgetter

from gapless.checkers.acceptance import History
from gapless.checkers.causal_chain import Chains
from gapless.checkers.publications import Publication
from gapless.checkers.verdict import Anomaly

__all__ = ["Covered", "causal_inversion"]


class _Reached(dict[str, int]):
    """The highest number of each publisher, 0 for unknown publishers."""

    def __missing__(self, publisher: str) -> int:
        return 0


class Covered:
    """The highest number of each publisher in the past of the accepted events, and the events by
    which it grew.
    """

    def __init__(self) -> None:
        self.reached = _Reached()
        self.accepted: list[Publication] = []
        """The accepted events in order, unless some were forgotten."""
        self._indexed = 0
        """The number of accepted events in `_growth`, which is built only when there is an anomaly."""
        self._growth: dict[str, list[tuple[int, Publication]]] = {}
        self._merged: dict[str, int] = {}
        """For each publisher, the last number whose past was merged."""

    def has_effect(self, cause: Publication) -> bool:
        """Return whether the past of an accepted event contains the cause."""
        return self.reached[cause.publisher] >= cause.seq

    def first_effect(self, cause: Publication) -> Publication:
        """Return the first accepted event whose past contains the cause."""
        self._index()
        grown = self._growth[cause.publisher]
        return grown[bisect_left(grown, cause.seq, key=itemgetter(0))][1]

    def merge(self, event: Publication) -> None:
        """Merge the past of an accepted event."""
        # Directly after its predecessor, an event adds only the entries by which its past exceeds the predecessor's.
        publisher, seq, reached = event.publisher, event.seq, self.reached
        is_next = self._merged.get(publisher, 0) == seq - 1
        for other, last in (event.advances if is_next else event.past).items():
            if last > reached[other]:
                reached[other] = last
        self._merged[publisher] = seq
        self.accepted.append(event)

    def _index(self) -> None:
        """Record, for each entry of the vector, the events that raised it."""
        for event in self.accepted[self._indexed :]:
            for publisher, seq in event.past.items():
                grown = self._growth.setdefault(publisher, [])
                if not grown or grown[-1][0] < seq:
                    grown.append((seq, event))
        self._indexed = len(self.accepted)

    def revoke(self, event_id: str) -> None:
        """Remove an event, and the entries that were reached only through its past."""
        self._index()
        for publisher, grown in self._growth.items():
            if any(effect.event_id == event_id for _, effect in grown):
                self._growth[publisher] = [entry for entry in grown if entry[1].event_id != event_id]
                self.reached[publisher] = max((seq for seq, _ in self._growth[publisher]), default=0)
        self._merged.pop(event_id.rpartition(":")[0], None)

    def forget(self, below: Callable[[str], int]) -> None:
        """Forget the accepted events, and the effects of numbers below these of each publisher."""
        self._index()
        for publisher, grown in self._growth.items():
            least = below(publisher)
            if grown and grown[0][0] < least:
                self._growth[publisher] = [entry for entry in grown if entry[0] >= least]
        self.accepted.clear()
        self._indexed = 0


def causal_inversion(
    history: History, cause: Publication, effect: Publication, how: str, chains: Chains | None
) -> Anomaly:
    """Return the anomaly of an effect that was delivered before or without its cause."""
    client, subscription = history.row.client, history.row.subscription_id
    chain = chains.shortest([cause], effect) if chains is not None else None
    return Anomaly(
        kind="causal-inversion",
        client=client,
        subscription=subscription,
        event=cause.event_id,
        publisher=cause.publisher,
        witness=chain or (cause.event_id, effect.event_id),
        message=f"{client} was delivered {effect.event_id} {how} its cause {cause.event_id} for {subscription}",
    )
