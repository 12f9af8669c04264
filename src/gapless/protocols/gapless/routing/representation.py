"""Which subscriptions are sent over a link, and which ones others represent there.

A subscription is sent over a link if an advertisement that came over it overlaps, unless one that was sent before
covers it: that one *represents* it there. Of several, an equal one, or else the one that was sent first (`CoverIndex`).

**Make before break.** When a representative ends, those it represented are sent first. They keep the cuts they have,
inherit those that the representative has further on, and those of its markers that are still on their way. Where
another one covers such a subscription, inherits as well or knows all cuts that it lacks, it takes those and is
represented anew; but not where a cut is still open: the marker that is on its way would find nobody.
"""

from collections.abc import Callable, Container
from itertools import chain
from typing import Protocol

from gapless.protocols.gapless.messages import AddSubscription, Cuts, RemoveSubscription, TreeBody
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.parts.filter_pairs import overlap
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["REMOVED_MAX", "Representation"]

REMOVED_MAX = 1_000
"""Of how many subscriptions that were taken off a link it is known: for longer than a marker is on its way."""


class Table(Protocol):
    """What is asked of the table of subscriptions."""

    subscriptions: dict[str, Subscription]

    def next_number(self, publisher: str) -> int:
        """From which number on events of the publisher may still come."""

    def answer(self, subscription: Subscription) -> None:
        """Fix and report the cuts that can be fixed now."""

    def report(self, subscription: Subscription, news: Cuts) -> None:
        """Tell new cuts to whoever waits for them."""

    def inheritable(self, subscription: Subscription, cuts: Cuts) -> Cuts:
        """Of these cuts, those that the subscription can take."""


class Representation:
    """The rules by which subscriptions come onto links and leave them."""

    def __init__(self, table: Table, send: Callable[[Link, TreeBody], None], switched_off: frozenset[str]) -> None:
        self._table = table
        self._send = send
        self._off = switched_off

    def mark_sent(self, link: Link, subscription: Subscription) -> None:
        """Note that the subscription is known at the other end of the link."""
        if subscription.name not in link.sent:
            link.covers.add(subscription.name, subscription.filter)
        link.sent[subscription.name] = subscription

    def _needs(self, link: Link, subscription: Subscription) -> bool:
        return any(overlap(ad.filter, subscription.filter) for ad in link.advertisements.values())

    def offer(self, link: Link, subscription: Subscription, inherits: str = "", heirs: Container[str] = ()) -> None:
        """Send the subscription over the link if it is needed there and nothing represents it.

        It may inherit from one that represented it and has ended, as the other heirs do.
        """
        name = subscription.name
        if subscription.origin is link or name in link.sent or name in link.represented:
            return
        if not self._needs(link, subscription):
            return
        found = link.covers.find(subscription.filter)
        cover = None if found is None else link.sent[found]
        if cover is not None and inherits and cover.name not in heirs and self._leaves_open(link, cover, subscription):
            cover = None
        if cover is not None and "coverage" not in self._off:
            if not self._speaks_for_some_only(link, cover, subscription):
                link.represented[name] = cover.name
                link.represents.setdefault(cover.name, {})[name] = None
                if inherits:
                    self._table.answer(subscription)
                return
            self._table.report(subscription, self._stable_cuts(link, cover, subscription))
        self._send_subscription(link, subscription, inherits)

    def _leaves_open(self, link: Link, cover: Subscription, subscription: Subscription) -> bool:
        """Whether there is a publisher behind the link that neither of the two has a cut of."""
        return any(
            ad.publisher not in cover.cuts
            and ad.publisher not in subscription.cuts
            and overlap(ad.filter, subscription.filter)
            for ad in link.advertisements.values()
        )

    def _speaks_for_some_only(self, link: Link, cover: Subscription, subscription: Subscription) -> bool:
        """Without the pivots' repair: send also what is represented, where not all its publishers are stable."""
        return "pivots" in self._off and any(
            ad.publisher not in cover.cuts and overlap(ad.filter, subscription.filter)
            for ad in link.advertisements.values()
        )

    def _stable_cuts(self, link: Link, cover: Subscription, subscription: Subscription) -> Cuts:
        """Without the pivots' repair: the cuts that can be given at once; for the others it asks for itself."""
        behind = {ad.publisher for ad in link.advertisements.values()}
        cuts = {p: max(self._table.next_number(p), cut) for p, cut in cover.cuts.items() if p in behind}
        return self._table.inheritable(subscription, cuts)

    def _send_subscription(self, link: Link, subscription: Subscription, inherits: str) -> None:
        if subscription.name in link.removed:
            del link.removed[subscription.name]
            link.ghosts.setdefault(subscription.name, []).append({})
            self._send(link, RemoveSubscription(subscription.name, answer=True))
        self.mark_sent(link, subscription)
        cuts = dict(subscription.cuts)
        self._send(link, AddSubscription(subscription.name, subscription.filter.text, cuts, inherits))

    def representative(self, link: Link, subscription: Subscription) -> Subscription | None:
        """What represents the subscription on the link, if anything does."""
        name = link.represented.get(subscription.name)
        return None if name is None else link.sent[name]

    def withdraw(self, link: Link, subscription: Subscription) -> None:
        """Take the subscription off the link, after those it represented."""
        name = subscription.name
        self._unrepresent(link, name)
        if link.sent.pop(name, None) is None:
            return
        link.covers.remove(name)
        orphaned = link.represents.pop(name, {})
        for other_name in orphaned:
            del link.represented[other_name]
            if "make-before-break" not in self._off and other_name in self._table.subscriptions:
                self.offer(link, self._table.subscriptions[other_name], name, orphaned)
        for heirs in chain.from_iterable(link.ghosts.values()):
            if name in heirs:
                heirs.update(orphaned)
        if orphaned:
            link.ghosts.setdefault(name, []).append(orphaned)
        self.take_off(link, name, bool(orphaned))

    def take_off(self, link: Link, name: str, answer: bool = False) -> None:
        """Tell the peer that the subscription is over."""
        link.removed[name] = None
        forget_oldest(link.removed, REMOVED_MAX)
        self._send(link, RemoveSubscription(name, answer))

    def _unrepresent(self, link: Link, name: str) -> None:
        cover = link.represented.pop(name, None)
        if cover is not None:
            del link.represents[cover][name]
            if not link.represents[cover]:
                del link.represents[cover]

    def prune(self, link: Link) -> None:
        """Take off the link what no publisher behind it needs any more."""
        for name in list(link.represented):
            if name not in self._table.subscriptions or not self._needs(link, self._table.subscriptions[name]):
                self._unrepresent(link, name)
        for subscription in list(link.sent.values()):
            if not self._needs(link, subscription):
                self.withdraw(link, subscription)
