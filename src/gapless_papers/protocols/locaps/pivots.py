"""Pivots and their sets: who may speak for a publisher, when, and with which number.

A subscription S comes by on its way to publisher p. If another subscription X, which covers S, is *stable* here for p
(the publisher's own marker for X has been here), then this broker gets every event of p that S wants, from X's cut
on, and the ways further on are laid. The first such broker is the **pivot**; it and the next f on the way form its
set, and each sends a partial marker. S itself goes on to p as if nothing had happened.

**The number** is the larger of "one after the last of p's events that I passed on" and X's cut: what p published
before X was stable never came here.

**All behind a link or none.** A broker speaks over a link only if it can speak for every publisher behind the link
that may match S. Why: let c of p1 pass this broker just after S, and e of p2, also behind the link, be an effect of
c. If p2 met c further on, e may have left p2 before S got there, so nothing but a covering subscription that was
stable here *before c came* makes e come here as well. With it, e < X's cut for p2 is impossible: c would have
happened before X's marker for p2 and come here first. Publishers behind different links do not matter to each other:
S goes out over both links before c comes in over one of them. Nor do publishers that are not known here yet: their
events are held back until S has reached them.

**Looking again.** If not all are stable when S comes by, S goes on, and the next broker on the way asks itself the
same. When a marker for a covering subscription comes past later, the broker looks again; if it can speak now, it
becomes a pivot, and asks the next f brokers to join (`AskPartial`). This is safe because an effect of anything that
S has started with comes after the marker of its own publisher, or with all others that its pivot spoke for; so a late
start can only leave out what nobody misses.
"""

from collections.abc import Callable

from gapless.protocols.parts.filter_pairs import cover
from gapless_papers.protocols.locaps.messages import AskPartial, Cuts, PartialMarker
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.tables import Link, Subscription, Tables

__all__ = ["Pivots"]

NOBODY = ("", 0)


class Pivots:
    """The part that one broker takes in pivots' sets."""

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
        """Speak for the publishers behind the link if it is this broker's turn and it can.

        `pivot` and `left` are what came with the subscription; what is returned goes on with it.
        """
        if not self._is_on or (pivot and not left):
            return pivot, left
        cuts = self._cuts(link, subscription)
        if cuts is None:
            link.unspoken[subscription.name] = subscription
            return NOBODY
        link.unspoken.pop(subscription.name, None)
        if not cuts:
            return NOBODY
        pivot, left = (pivot, left - 1) if pivot else (self._name, self._f)
        self._answer(subscription, PartialMarker(subscription.name, pivot, self._name, cuts))
        return pivot, left

    def join(self, subscription: Subscription, pivot: str, left: int) -> None:
        """A pivot that was found late asks this broker to join its set."""
        for link in self._tables.links.values():
            if subscription.name in link.sent:
                self._take_part_late(link, subscription, pivot, left)

    def look_again(self, link: Link, marked: Subscription) -> None:
        """A marker came over the link: whom it covers may have found its pivot."""
        if not self._speaks_for_all:
            return
        for subscription in list(link.unspoken.values()):
            if cover(marked.filter, subscription.filter):
                self._take_part_late(link, subscription, *NOBODY)

    def _take_part_late(self, link: Link, subscription: Subscription, pivot: str, left: int) -> None:
        pivot, left = self.take_part(link, subscription, pivot, left)
        if left:
            self._send(link, AskPartial(subscription.name, pivot, left))

    def _cuts(self, link: Link, subscription: Subscription) -> Cuts | None:
        """A cut for each publisher behind the link whose own marker has not been here; None if one has to wait."""
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
