"""Cuts that were on their way when a broker was excluded: what a subscription must have held, from what it did hold.

Two kinds of cuts are inferred. Both are the first event that comes after what the subscription is known to get
(`starting_cut`).

- *Lost with a pivot.* A subscription holds some cuts. At the excluded broker another one, which covers it, represented
  it, and the cuts that this pivot gave are lost. It gets one for each publisher that the covering one had reached.
  Its smallest story: T got its cut of p from its own broker. The pivot of q died before its marker came. If T's cut of
  q is as early as the cut of the covering one, T gets an event of q, and misses its effect, which p published before
  T's cut of p. If T's cut of q is as late as now, T misses effects of what it gets of p. If q has taken its
  advertisement back when the end of the pivot is noticed, the same holds for what of q is still in a log.
- *Never let out.* The excluded broker had admitted an event, and no live broker has received it. A subscription
  elsewhere has no cut of that publisher, for its marker was lost with the event. If the event is an effect of something
  that the subscription gets, the cut must not lie after the event.

Of a publisher whose journal is lost nobody knows what its events come after, but for their stamps, which are larger
than those of their causes. So a subscription that gets something starts with the first of them that is left, unless it
has missed something younger, which may be an effect of that, or nobody knows what it has missed. The smallest story: q
answers p:1 with q:1, and q's broker is lost with its backup, and with the marker for s, which gets p:1 from another
side. q:1 has left to a third.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence

from gapless.events import Event
from gapless.filters import Filter, FilterIndex
from gapless.protocols.gapless.messages import Cuts, Sync
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.recovery.handover import Inheritance
from gapless.protocols.gapless.recovery.merge import merge_cuts
from gapless.protocols.gapless.recovery.patterns import Patterns
from gapless.protocols.gapless.recovery.starting_cut import Bound, find_start
from gapless.protocols.gapless.tombstones import is_lost

__all__ = ["Inference"]

SCANNED = 16
"""Events or advertisements that are looked at, for one unit of work."""


class Inference:
    """What follows from the contributions, the merged log, and the cuts that are known."""

    def __init__(
        self,
        contributions: Mapping[str, Sync],
        inherited: Sequence[Inheritance],
        events: Sequence[Event],
        pasts: Mapping[tuple[str, int], Cuts],
        filters: Mapping[str, Filter],
        known_cuts: dict[str, Cuts],
        patterns: Patterns,
        gone: Cuts,
    ) -> None:
        """`gone` are the publishers whose journals are lost, each with the last number that has reached everyone."""
        self._contributions = contributions
        self._inherited = inherited
        self._pasts = pasts
        self._filters = filters
        self._known_cuts = known_cuts
        self._patterns = patterns
        self._by_publisher: dict[str, list[Event]] = {}
        for event in events:
            self._by_publisher.setdefault(event.publisher, []).append(event)
        self._passed: Cuts = {}
        for sync in contributions.values():
            for publisher, seq in sync.passed.items():
                self._passed[publisher] = max(seq, self._passed.get(publisher, 0))
        self._advertising = {item.publisher for sync in contributions.values() for item in sync.advertisements}
        self._advertising.update(share.record.client for share in inherited if share.record.advertisements)
        self._left = {publisher: None for publisher in self._by_publisher if publisher not in self._advertising}
        self._gone = {publisher: gone[publisher] for publisher in self._left if publisher in gone}
        self._unseen = self._find_unseen(events)
        self._had: dict[str, dict[str, Cuts]] = {}
        self._index: FilterIndex[str] | None = None

    def infer_cuts(self) -> Pieces[dict[str, Cuts]]:
        """Note the inferred cuts among the known ones; return, by subscription, how early each of them may be."""
        inferred: dict[str, Cuts] = {}
        candidates: list[tuple[str, str, Cuts, str, Sequence[str], int]] = [
            (item.subscription, item.filter, item.cuts, member, (), 0)
            for member, sync in self._contributions.items()
            for item in sync.subscriptions
        ]
        for share in self._inherited:
            for name, text in share.record.subscriptions.items():
                told = share.record.awaited.get(name)
                began = 0 if told is None else share.record.began.get(name, 0)
                candidates.append((name, text, share.record.cuts.get(name, {}), share.broker, told or (), began))
        for name, text, cuts, home, awaited, began in candidates:
            known = {**cuts, **self._known_cuts.get(name, {})}
            pattern = self._patterns.of(text)
            unprocessed = self._unprocessed(pattern, known)
            left = self._left_since(home, known, unprocessed)
            had = known
            if unprocessed or left:
                if home not in self._had:
                    self._had[home] = yield from self._find_had(home)
                had = {**self._had[home].get(name, {}), **known}
            bounds, unbound = dict(unprocessed), dict[str, Bound]()
            if known:
                older = self._older(began, awaited)
                covered, unbound = yield from self._bounds(pattern, known, home, older)
                bounds |= covered
                unbound |= self._awaited(awaited, known.keys() | bounds.keys())
                unbound |= self._not_passed(name, pattern, home, known.keys() | bounds.keys() | unbound.keys())
            unbound |= {publisher: bound for publisher, bound in left.items() if publisher not in {**unbound, **bounds}}
            for publisher, bound in {**unbound, **bounds}.items() if had else ():
                gets = had if publisher in unprocessed or publisher in left else known
                events = self._from(publisher, bound.least)
                cut = find_start(events, self._pasts, pattern, publisher, bound, gets, self._stamp_of)
                is_certain = publisher in bounds and publisher not in self._left
                if cut < bound.following or (known and is_certain):
                    self._known_cuts.setdefault(name, {})[publisher] = cut
                    inferred.setdefault(name, {})[publisher] = bound.least
                yield 1 + len(events) // SCANNED
            if known and self._gone:
                cuts = {**known, **self._known_cuts.get(name, {})}
                for publisher, cut in self._first_of_gone(pattern, cuts, home).items():
                    self._known_cuts.setdefault(name, {})[publisher] = cut
                    inferred.setdefault(name, {})[publisher] = cut
                yield 1 + len(self._pasts) // SCANNED
            yield 1
        return inferred

    def _from(self, publisher: str, least: int) -> list[Event]:
        """The events of the publisher from a number on."""
        events = self._by_publisher.get(publisher, [])
        return events[bisect_left(events, least, key=lambda event: event.seq) :]

    def _stamp_of(self, publisher: str, first: int) -> int:
        """The stamp of the publisher's first event from a number on, if it is that number; or else -1."""
        events = self._by_publisher.get(publisher, [])
        place = bisect_left(events, first, key=lambda event: event.seq)
        return events[place].stamp if place < len(events) and events[place].seq == first else -1

    def _find_had(self, member: str) -> Pieces[dict[str, Cuts]]:
        """By subscription on the member's side, and by publisher there: the first event that it may have got.

        The member does not know the cut between these two: a broker on the way gives it, and it goes to the subscriber
        alone. So what is in the member's log and matches counts as got.
        Its smallest story: a publisher stands behind m1. A subscriber stands further on, behind the broker that dies,
        and has a cut of that publisher that m1 never hears of. The dead broker admits an effect of the publisher's
        event. If that event did not count as got, the subscriber's cut for the effect would lie after the effect.
        If the subscription did not get these events, its cut for what nobody processed is only earlier than needed.
        But what passed the member before the subscription did, the subscription did not get, and it does not count: an
        effect of that may be out, although no live broker has processed what lies between them.
        """
        had: dict[str, Cuts] = {}
        sync = self._contributions.get(member)
        if sync is None:
            return had
        index: FilterIndex[str] = FilterIndex()
        log_from: dict[str, int] = {}
        for item in sync.subscriptions:
            if item.subscription not in index:
                index.add(item.subscription, self._patterns.of(item.filter))
                log_from[item.subscription] = item.log_from
            yield 1
        for place, entry in enumerate(sync.log):
            if entry.entered:
                for name in index.match(entry.event.attributes):
                    if place >= log_from[name]:
                        had.setdefault(name, {}).setdefault(entry.event.publisher, entry.event.seq)
                yield 1
        return had

    def _older(self, began: int, awaited: Sequence[str]) -> Cuts:
        """Of publishers that have left: the last number that is older than a subscription, which did not wait for them.

        The smallest story: p publishes p:1, and takes its advertisement back. q answers with q:1. Then s comes, and
        starts with q:2. Its broker dies, and p:1 is still in the log. If s got p:1, as those do that cover it, it would
        miss the answer. A publisher that came after s publishes with larger stamps than s began with.
        """
        found = {}
        for publisher in self._left if began else ():
            if publisher not in awaited:
                events = self._by_publisher[publisher]
                place = bisect_right(events, began, key=lambda event: event.stamp)
                if place:
                    found[publisher] = events[place - 1].seq
        return found

    def _bounds(
        self, pattern: Filter, known: Cuts, home: str, older: Cuts
    ) -> Pieces[tuple[dict[str, Bound], dict[str, Bound]]]:
        """For publishers that the subscription has no cut of: from which number on a covering one got their events; but
        not up to these numbers.

        Then those of whom none is known, but of whom one has got something that has ended since, and of which nobody
        tells any more what it asked for: that may have covered this one. The smallest story: s is represented by t at
        b0, has a cut of p, and waits for one of q. b0 is cut off, q answers p:1, and t ends. When b0 is gone round, s
        gets p:1, and has to get the answer.
        """
        found: dict[str, Bound] = {}
        unbound: dict[str, Bound] = {}
        for member, sync in self._contributions.items():
            if member == home:
                continue
            missing = [
                item.publisher
                for item in sync.advertisements
                if item.publisher not in known and self._patterns.of(item.filter).overlaps(pattern)
            ]
            missing += [publisher for publisher in self._left if publisher not in known]
            yield len(sync.advertisements) // SCANNED
            covering: list[Cuts] | None = None
            for publisher in missing:
                if publisher in found:
                    continue
                if covering is None:
                    covering = yield from self._covering(pattern, sync)
                bounds = [max(cuts[publisher], older.get(publisher, 0) + 1) for cuts in covering if publisher in cuts]
                if bounds:
                    following = max(min(bounds), self._passed.get(publisher, 0) + 1)
                    found[publisher] = Bound(min(bounds), following)
                elif publisher in self._by_publisher and publisher not in self._left:
                    ended = [cuts for name, cuts in sync.known_cuts.items() if name not in self._filters]
                    least = min((cuts[publisher] for cuts in ended if publisher in cuts), default=None)
                    if least is not None:
                        unbound[publisher] = Bound(least, self._by_publisher[publisher][-1].seq + 1)
                    yield 1 + len(sync.known_cuts) // SCANNED
        return found, unbound

    def _awaited(self, awaited: Iterable[str], others: Container[str]) -> dict[str, Bound]:
        """For publishers that have left since, and whose cut the subscription was waiting for: between which numbers
        lies what is in the merged log.

        The smallest story: s waits for its cut of q, and has one of p. q answers p:1, and takes its advertisement back.
        All who know of s die, and come back with their disks. s gets p:1, and has to get the answer. If nothing of it
        is an answer, s has no cut: q may have published more, which nobody here wanted.
        """
        found = {}
        for publisher in awaited:
            events = self._by_publisher.get(publisher)
            if events and publisher not in others and publisher in self._left:
                found[publisher] = Bound(events[0].seq, events[-1].seq + 1)
        return found

    def _not_passed(self, name: str, pattern: Filter, home: str, others: Container[str]) -> dict[str, Bound]:
        """For publishers on other sides: between which numbers lies what has not passed the subscription's side.

        The smallest story: s gets q:1. Its marker is on the way back from b3, where p answers q:1 with p:1, when b3 and
        the marker are lost. b5, which held p:1, has gone round b3 already when b3 is back, with its disk, and begins
        anew with all others. So p:1 has been processed, but not where s comes from, and s has to get it.

        Where s is known, and has cuts, what has come by counts as before those that it lacks: a marker runs ahead of
        what it lets in.

        What lies before a number that nobody has does not count: s may have to get that one, too. The smallest story:
        p:1 and p:3 are on their way to another, and meet s on its way to p. p:2 is for s alone, and for nobody, because
        s came to p after it.
        """
        if home not in self._contributions:
            return {}
        passed = self._passed_at(home)
        found = {}
        offers = [
            (item.publisher, item.filter)
            for member, sync in self._contributions.items()
            for item in (sync.advertisements if member != home and name not in sync.known_cuts else ())
        ]
        for share in self._inherited:
            offers += [(share.record.client, text) for text, _, _ in share.record.advertisements.values()]
        for publisher, text in offers:
            events, last = self._by_publisher.get(publisher), passed.get(publisher, 0)
            if publisher in others or not events or events[-1].seq <= last:
                continue
            if self._patterns.of(text).overlaps(pattern):
                found[publisher] = Bound(max(last + 1, _first_without_gap(events)), events[-1].seq + 1)
        return found

    def _left_since(self, home: str, known: Cuts, others: Container[str]) -> dict[str, Bound]:
        """For publishers that have left: between which numbers lies what has not passed the subscription's side.

        The smallest story: s has passed b2 and b0 on its way to q, and the marker does not get back over b0, which b2
        hears no more. p:1 passes b2, so s gets it. q answers it, and takes its advertisement back, so that nobody there
        knows of s any more. When b0 is gone round, s has to get the answer: it ran ahead of p:1, all the way to q.

        If it has cuts, that counts for those alone that its side has not heard to have left: it waits for them.
        """
        if not self._left or home not in self._contributions:
            return {}
        passed, inside = self._passed_at(home), self._contributions[home].inside
        found = {}
        for publisher in self._left:
            events, last = self._by_publisher[publisher], passed.get(publisher, 0)
            is_awaited = publisher not in known and (publisher in inside or not known)
            if is_awaited and publisher not in others and events[-1].seq > last:
                found[publisher] = Bound(last + 1, events[-1].seq + 1)
        return found

    def _passed_at(self, home: str) -> Cuts:
        """What a member has processed, also in its last life: whatever its clients published came after it.

        The smallest story: s has no cut of p yet when p:1 passes its broker b2, whose client q answers. s gets the
        answer. b2 is out, begins anew, and has processed nothing yet. If s got p:1 now, it would come after the answer.
        """
        passed = dict(self._contributions[home].passed)
        for share in self._inherited:
            if share.broker == home and (events := self._by_publisher.get(share.record.client)):
                merge_cuts(passed, self._pasts.get((events[-1].publisher, events[-1].seq), {}))
        return passed

    def _first_of_gone(self, pattern: Filter, cuts: Cuts, home: str) -> Cuts:
        """For publishers whose journals are lost: the first event that is younger than all that is missed.

        With them come the cuts of all others, which count from now on. What has passed the member that the subscription
        comes from has passed it without a cut, or is there already, and may be an effect of what is older.
        """
        missing = [publisher for publisher in self._gone if publisher not in cuts]
        if not missing:
            return {}
        following = self._following(pattern, cuts, home)
        latest = self._last_missed(pattern, {**cuts, **following})
        if latest is None:
            return {}
        passed: Cuts = {}
        if home in self._contributions:
            passed = self._contributions[home].passed
            got = [entry.event for entry in self._contributions[home].log if pattern.matches(entry.event.attributes)]
            latest = max([latest, *(event.stamp for event in got)])
        found = {}
        for publisher in missing:
            for event in self._from(publisher, 1 + max(self._gone[publisher], passed.get(publisher, 0))):
                if event.stamp > latest and pattern.matches(event.attributes) and not is_lost(event.attributes):
                    found[publisher] = event.seq
                    break
        return found | following if found else {}

    def _following(self, pattern: Filter, cuts: Cuts, home: str) -> Cuts:
        """For publishers on other sides that the subscription has no cut of: the next number."""
        return {
            item.publisher: self._passed.get(item.publisher, 0) + 1
            for member, sync in self._contributions.items()
            for item in (sync.advertisements if member != home else ())
            if item.publisher not in cuts and self._patterns.of(item.filter).overlaps(pattern)
        }

    def _last_missed(self, pattern: Filter, cuts: Cuts) -> int | None:
        """The stamp of the last event that these cuts do not let in; None if not all of those are in a log."""
        latest = -1
        for publisher, cut in cuts.items():
            first = 1 + max((sync.done.get(publisher, 0) for sync in self._contributions.values()), default=0)
            events = [event for event in self._from(publisher, first) if event.seq < cut]
            if len(events) < cut - first:
                return None
            latest = max([latest, *(event.stamp for event in events if pattern.matches(event.attributes))])
        return latest

    def _covering(self, pattern: Filter, sync: Sync) -> Pieces[list[Cuts]]:
        """The cuts that a member knows of the subscriptions that cover this one."""
        if self._index is None:
            self._index = FilterIndex()
            for name, other in self._filters.items():
                self._index.add(name, other)
                yield 1
        names = [name for name in self._index.may_cover(pattern) if name in sync.known_cuts]
        yield 1 + len(names) // SCANNED
        return [sync.known_cuts[name] for name in names if self._filters[name].covers(pattern)]

    def _unprocessed(self, pattern: Filter, known: Cuts) -> dict[str, Bound]:
        """For inherited publishers that the subscription has no cut of: between which numbers lies what no live broker
        has processed."""
        return {
            publisher: bound
            for publisher, (bound, offers) in self._unseen.items()
            if publisher not in known and any(offer.overlaps(pattern) for offer in offers)
        }

    def _find_unseen(self, events: Iterable[Event]) -> dict[str, tuple[Bound, list[Filter]]]:
        """By inherited publisher: between which numbers lies what nobody processed, and what it advertises."""
        offers = {share.record.client: share.record.advertisements.values() for share in self._inherited}
        found: dict[str, tuple[Bound, list[Filter]]] = {}
        for event in events:
            publisher, seq = event.publisher, event.seq
            if publisher in found:
                bound, filters = found[publisher]
                found[publisher] = (Bound(bound.least, seq + 1), filters)
            elif publisher in offers and seq > self._passed.get(publisher, 0):
                found[publisher] = (Bound(seq, seq + 1), [self._patterns.of(text) for text, _, _ in offers[publisher]])
        return found


def _first_without_gap(events: Sequence[Event]) -> int:
    """The number from which on none is missing between a publisher's events."""
    first = events[-1].seq
    for event in reversed(events):
        if event.seq < first - 1:
            break
        first = event.seq
    return first
