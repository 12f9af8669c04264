"""Cuts that were on their way when a broker was excluded: what a subscription must have held, from what it did hold."""

from collections.abc import Mapping

from gapless.events import Event
from gapless.filters import Filter, parse
from gapless.protocols.gapless.messages import Cuts
from gapless.protocols.gapless.recovery.handover import Handover, Inheritance
from gapless.protocols.gapless.recovery.starting_cut import Bound, find_start

__all__ = ["Inference"]


class Inference:
    """What follows from the contributions, the merged log and the known_cuts that are known."""

    def __init__(
        self,
        handover: Handover,
        inherited: list[Inheritance],
        events: list[Event],
        pasts: Mapping[tuple[str, int], Cuts],
        filters: Mapping[str, Filter],
        known_cuts: dict[str, Cuts],
    ) -> None:
        self._handover = handover
        self._inherited = inherited
        self._events = events
        self._pasts = pasts
        self._filters = filters
        self._known_cuts = known_cuts
        self._unseen = self._find_unseen()

    def infer_cuts(self) -> dict[str, Cuts]:
        """A subscription that holds some cuts, and was represented at an excluded broker, holds the others too.

        And whatever that broker let out to nobody who is left, it gets from the first effect of what it gets on. The
        known_cuts learn of it; returns, by subscription and publisher, how early such a cut may be.
        """
        inferred: dict[str, Cuts] = {}
        candidates = [
            (item.subscription, item.filter, item.cuts, member, item.log_from)
            for member, sync in self._handover.ordered()
            for item in sync.subscriptions
        ]
        for share in self._inherited:
            for name, text in share.record.subscriptions.items():
                candidates.append((name, text, share.record.cuts.get(name, {}), share.broker, 0))
        for name, text, cuts, home, log_from in candidates:
            known = {**cuts, **self._known_cuts.get(name, {})}
            pattern = parse(text)
            unprocessed = self._unprocessed(pattern, known)
            had = {**self._had(pattern, home, log_from), **known} if unprocessed else known
            bounds = {**unprocessed, **(self._bounds(pattern, known, home) if known else {})}
            for publisher, bound in bounds.items() if had else ():
                gets = had if publisher in unprocessed else known
                cut = find_start(self._events, self._pasts, pattern, publisher, bound, gets)
                if known or cut < bound.following:
                    self._known_cuts.setdefault(name, {})[publisher] = cut
                    inferred.setdefault(name, {})[publisher] = bound.least
        return inferred

    def _had(self, pattern: Filter, member: str, log_from: int) -> Cuts:
        """What a subscription on the member's side may have got of publishers there, of whom the member knows no cut.

        For it is given on the way, and goes to the subscriber alone. If it got none of that, so much the earlier is its
        cut for what nobody processed. What passed the member before the subscription did, it did not get: an effect of
        that may be out, although nobody who is left has processed what is between them.
        """
        had: Cuts = {}
        sync = self._handover.syncs.get(member)
        for entry in sync.log[log_from:] if sync is not None else ():
            if entry.entered and entry.event.publisher not in had and pattern.matches(entry.event.attributes):
                had[entry.event.publisher] = entry.event.seq
        return had

    def _bounds(self, pattern: Filter, known: Cuts, home: str) -> dict[str, Bound]:
        """For publishers that the subscription has no cut of: from where on a covering one attracted their events."""
        found: dict[str, Bound] = {}
        for member, sync in self._handover.ordered():
            for item in sync.advertisements if member != home else ():
                publisher = item.publisher
                if publisher in known or publisher in found or not parse(item.filter).overlaps(pattern):
                    continue
                bounds = [
                    cuts[publisher]
                    for name, cuts in sync.known_cuts.items()
                    if publisher in cuts and name in self._filters and self._filters[name].covers(pattern)
                ]
                if bounds:
                    found[publisher] = Bound(min(bounds), max(min(bounds), self._last(publisher) + 1))
        return found

    def _unprocessed(self, pattern: Filter, known: Cuts) -> dict[str, Bound]:
        """The same for inherited publishers, for what was let out to nobody who is left."""
        found: dict[str, Bound] = {}
        for publisher, (bound, offers) in self._unseen.items():
            if publisher not in known and any(offer.overlaps(pattern) for offer in offers):
                found[publisher] = bound
        return found

    def _find_unseen(self) -> dict[str, tuple[Bound, list[Filter]]]:
        """By inherited publisher: between which numbers lies what nobody processed, and what it advertises."""
        offers = {share.record.client: share.record.advertisements.values() for share in self._inherited}
        found: dict[str, tuple[Bound, list[Filter]]] = {}
        for event in self._events:
            publisher, seq = event.publisher, event.seq
            if publisher in found:
                bound, filters = found[publisher]
                found[publisher] = (Bound(bound.least, seq + 1), filters)
            elif publisher in offers and seq > self._last(publisher):
                found[publisher] = (Bound(seq, seq + 1), [parse(text) for text, _, _ in offers[publisher]])
        return found

    def _last(self, publisher: str) -> int:
        return max(sync.passed.get(publisher, 0) for sync in self._handover.syncs.values())
