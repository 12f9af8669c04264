"""Pivots and their sets: which broker can answer for a publisher, when, and with which number.

A subscription S passes on its path to publisher p. If another subscription X, which covers S, is *stable* here for p
(the publisher's own marker for X has passed), then this broker gets every event of p that S wants, from X's cut on, and
the brokers further on already route them. The first such broker is the **pivot**; it and the next f on the path form
its set, and each sends a partial marker. S itself continues to p unchanged.

**The number** is the larger of "one after the last of p's events that I forwarded" and X's cut: events that p published
before X was stable never came here.

**All behind a link or none.** A broker answers over a link only if it can answer for every matching publisher behind
the link. Why: let c of p1 pass this broker just after S, and let e of p2, also behind the link, be an effect of c. If
p2 received c further on, e may have left p2 before S got there, so e arrives here only if a covering subscription was
stable here *before c came*. With it, e < X's cut for p2 is impossible: c would have happened before X's marker for p2
and come here first. Publishers behind different links do not affect each other: S leaves over both links before c
arrives over one of them. Publishers that are not known here yet do not matter either: their events are held back until
S has reached them.

**Checking again.** If not all are stable when S passes, S continues, and the next broker on the path does the same
check. When a marker for a covering subscription passes later, the broker checks again; if it can answer now, it becomes
a pivot, and asks the next f brokers to join (`AskPartial`). This is safe because an effect of anything that S has
started with comes after the marker of its own publisher, or with all others that its pivot answered for. So a late
start omits only events that no subscriber misses.
"""

from collections.abc import Callable

from gapless.protocols.parts.filter_pairs import cover
from gapless_papers.protocols.locaps.messages import AskPartial, Cuts, PartialMarker
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.tables import Link, Subscription, Tables

__all__ = ["Pivots"]

NOBODY = ("", 0)


class Pivots:
    """One broker's part in the sets of pivots."""

    def __init__(
        self,
        name: str,
        f: int,
        options: LocapsOptions,
        tables: Tables,
        send: Callable[[Link, AskPartial], None],
        answer: Callable[[Subscription, PartialMarker], None],
    ) -> None:
        self._name = name
        self._f = f
        self._is_on = options.coverage
        self._speaks_for_all = "pivots" not in options.switched_off
        self._tables = tables
        self._send = send
        self._answer = answer

    def take_part(self, link: Link, subscription: Subscription, pivot: str, left: int) -> tuple[str, int]:
        """Send a partial marker for the publishers behind the link if this broker is a pivot or in the pivot's set.

        `pivot` and `left` arrived with the subscription; the returned values are forwarded with it.
        """
        if not self._is_on or (pivot and not left):
            return pivot, left
        cuts = self._cuts(link, subscription)
        if cuts is None:
            link.unanswered[subscription.name] = subscription
            return NOBODY
        link.unanswered.pop(subscription.name, None)
        if not cuts:
            return NOBODY
        pivot, left = (pivot, left - 1) if pivot else (self._name, self._f)
        self._answer(subscription, PartialMarker(subscription.name, pivot, self._name, cuts))
        return pivot, left

    def join(self, subscription: Subscription, pivot: str, left: int) -> None:
        """Join the set of a pivot that was found late."""
        for link in self._tables.links.values():
            if subscription.name in link.sent:
                self._take_part_late(link, subscription, pivot, left)

    def look_again(self, link: Link, marked: Subscription) -> None:
        """Check, after a marker arrived over the link, whether this broker can be the pivot of subscriptions covered by
        it."""
        if not self._speaks_for_all:
            return
        for subscription in list(link.unanswered.values()):
            if cover(marked.filter, subscription.filter):
                self._take_part_late(link, subscription, *NOBODY)

    def _take_part_late(self, link: Link, subscription: Subscription, pivot: str, left: int) -> None:
        pivot, left = self.take_part(link, subscription, pivot, left)
        if left:
            self._send(link, AskPartial(subscription.name, pivot, left))

    def _cuts(self, link: Link, subscription: Subscription) -> Cuts | None:
        """Return a cut for each publisher behind the link whose own marker has not passed; None if one has to wait."""
        waiting = [p for p in link.publishers(subscription) if p not in subscription.cuts]
        cuts: Cuts = {}
        for other in link.sent.values() if waiting else ():
            if other is subscription or not cover(other.filter, subscription.filter):
                continue
            for publisher in [p for p in waiting if p in other.cuts]:
                cuts[publisher] = max(self._tables.passed.get(publisher, 0) + 1, other.cuts[publisher])
                waiting.remove(publisher)
            if not waiting:
                return cuts
        if not self._speaks_for_all and cuts:
            return cuts
        return None if waiting else cuts
