"""What the contributions of a region's members come to: computed, before anything is changed.

A plan is a function of the contributions and of a few things that a member reads of itself. It says who inherits whose
clients, which cuts are known, and in which order the events of all logs are processed. `takeover` carries it out.
"""

from collections.abc import Container, Iterator, Mapping

import msgspec

from gapless.events import Event
from gapless.filters import Filter
from gapless.overlay import Overlay
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.contraction import Region, effective_links, path_inside
from gapless.protocols.gapless.members.status import Statuses
from gapless.protocols.gapless.messages import Admission, Cuts, LogEntry, SessionRecord, Sync
from gapless.protocols.gapless.pieces import Pieces, finish
from gapless.protocols.gapless.recovery.contribution import MERGED
from gapless.protocols.gapless.recovery.found import has_found_journal, without_outdated
from gapless.protocols.gapless.recovery.gone_round import (
    lost_in_logs,
    processed_by_any,
    processed_by_others,
    published_unaware,
    still_counts,
    unaware_heirs,
    when_gone_round,
    without_published,
)
from gapless.protocols.gapless.recovery.handover import (
    Inheritance,
    claimant,
    decide_owners,
    divide_estates,
    find_holders,
    give_up_sessions,
    give_up_subscriptions,
    join_admissions,
)  # fmt: skip
from gapless.protocols.gapless.recovery.holes import (
    adopted,
    fill_holes,
    gone_publishers,
    holes_in_history,
    perhaps_gone,
)
from gapless.protocols.gapless.recovery.inference import Inference
from gapless.protocols.gapless.recovery.merge import (
    NextNumbers,
    find_next_numbers,
    find_pasts,
    merge_cuts,
    merge_logs,
    stamp_late,
)
from gapless.protocols.gapless.recovery.patterns import Patterns

__all__ = ["TakeoverPlan", "TakeoverView", "plan_in_pieces", "plan_takeover"]

LOOKED_AT = 16
"""Small things that are looked at, for one unit of work."""
Life = tuple[str, int]
Id = tuple[str, int]
Late = set[tuple[str, str]]
"""Brokers and clients."""


class TakeoverView(msgspec.Struct, frozen=True):
    """What a plan reads of the member that makes it."""

    name: str
    overlay: Overlay
    status: Statuses
    region: Region
    filters: Mapping[str, Filter]
    """Of the subscriptions that it knows, by name."""
    with_logs: bool = True
    with_tombstones: bool = True
    window: int = 0
    """How many events a broker lets out before all of them have reached everyone."""
    f: int = 1
    goes_on: bool = True
    """Whether brokers go on where they may be cut off. If they wait, nobody goes round what was confirmed."""


class TakeoverPlan(msgspec.Struct, frozen=True):
    """One completion at one member, before it is carried out."""

    region: Region
    contributions: dict[str, Sync]
    """By member, in rank order; without what they list for clients that another one keeps."""
    links: dict[str, str]
    """By peer of the new links: the first broker of the full tree on the way."""
    towards: dict[str, str]
    """By other member: the peer behind which it is."""
    via: str
    """Where an event of the merged log comes from, if it entered through no other member."""
    inherited: list[Inheritance]
    heirs: dict[Life, str]
    estates: dict[Life, dict[str, SessionRecord]]
    holders: dict[str, str]
    """For clients in these estates: who holds a session of the client already."""
    owners: dict[str, str]
    """For clients whose session several members held: who keeps it."""
    admissions: dict[Life, list[Admission]]
    """What each life had admitted, or was about to."""
    doubtful: Cuts
    """By publisher: the first event that nobody is known to have processed, so that it may lack backups."""
    known_cuts: dict[str, Cuts]
    """What anyone knows of the cuts of another's subscriptions. The latest is nearest to the subscriber."""
    renewed: set[str]
    """Subscriptions that some know from before they were lost: they are others, under the same name."""
    inferred: dict[str, Cuts]
    """By subscription and publisher, for cuts that were inferred: how early they may be."""
    events: list[Event]
    """Of all logs and estates, causes first."""
    pasts: dict[Id, Cuts]
    """For each of them: how far its past reaches."""
    entered: dict[Id, str]
    """The member, if any, through which each of them came in."""
    next_numbers: NextNumbers
    gone: Cuts
    """By publisher whose session was lost: up to which number nothing of it is."""
    unaware: set[str]
    """The members whose clients' subscriptions are lost: they took them over from a life that others went round."""
    published: Cuts
    """By publisher whose session such a member has: the last event that counts."""
    unsure: set[str]
    """Publishers of which more may be lost than anybody knows: known from disks alone, or with an heir that is lost."""
    adopted: set[Id]
    """Those that this member has to note in its journal, since nobody has the journal that they were in."""
    buried: dict[Id, list[Event]]
    """Tombstones that it has to note before some of these, for history alone."""

    def describe(self) -> Iterator[str]:
        """What the plan comes to, in sentences."""
        yield f"{', '.join(self.region.group)} take over from {', '.join(self.region.core)}"
        for life, heir in self.heirs.items():
            yield f"{heir} is the heir of {name_life(*life)}, which had admitted {len(self.admissions[life])} events"
        for share in self.inherited:
            yield f"{share.heir} inherits {share.record.client} from {share.broker}"
        for client, owner in self.owners.items():
            yield f"{owner} keeps {client}; others give it up"
        for name, cuts in self.inferred.items():
            for publisher in cuts:
                yield f"{name} starts with {publisher}:{self.known_cuts[name][publisher]}, by inference"
        doubtful = [f"{publisher}:{seq}" for publisher, seq in self.doubtful.items()]
        yield f"{len(self.events)} events are merged; doubtful from {', '.join(doubtful) or 'nowhere'} on"


def plan_takeover(view: TakeoverView, contributions: Mapping[str, Sync]) -> TakeoverPlan:
    """The plan, at once."""
    return finish(plan_in_pieces(view, contributions))


def plan_in_pieces(view: TakeoverView, contributions: Mapping[str, Sync]) -> Pieces[TakeoverPlan]:
    """The plan, in pieces. The contributions are given in rank order."""
    is_return = has_found_journal(contributions)
    contributions = without_outdated(contributions)
    inherited, heirs, estates = divide_estates(view.overlay, view.status, contributions)
    holders = find_holders(contributions, estates)
    owners = decide_owners(contributions, inherited)
    contributions = give_up_sessions(contributions, owners, inherited)
    unaware = unaware_heirs(contributions)
    contributions = give_up_subscriptions(contributions, unaware)
    published = published_unaware(contributions, unaware) if view.goes_on else {}
    if published:
        contributions = without_published(contributions, published)
    yield sum(len(records) for records in estates.values())
    patterns = Patterns(view.filters.values())
    known_cuts = yield from _collect_known_cuts(contributions, inherited)
    renewed = yield from _drop_outdated(known_cuts, contributions)
    processed = processed_by_any(contributions)
    admissions, doubtful, lost = yield from _join_all_admissions(contributions, estates, processed)
    admitted = {share.record.client: share.record.admitted for share in inherited}
    gone: Cuts = {}
    if view.with_logs and view.with_tombstones:
        gone = gone_publishers(contributions, admitted)
    lost |= lost_in_logs(contributions, gone)
    logs = [_without(sync.log, lost) for sync in contributions.values()]
    events: list[Event] = []
    pasts: dict[Id, Cuts] = {}
    if view.with_logs:
        events = yield from merge_logs(logs, list(admissions.values()))
        known = dict(processed)
        for sync in contributions.values():
            merge_cuts(known, sync.done)
            merge_cuts(known, sync.unreached)
        syncs = contributions.values()
        events = stamp_late(events, known, max(s.final for s in syncs), max(s.wave for s in syncs))
        pasts = yield from find_pasts(events, logs, list(admissions.values()))
    if gone:
        events = fill_holes(events, pasts, gone, contributions)
    late = _find_late(estates, contributions)
    from_disks = _known_from_disks(contributions, estates)
    next_numbers = find_next_numbers(events, processed)
    yield from _note_later_publishers(
        contributions, inherited, late, from_disks, known_cuts, patterns, next_numbers, events if is_return else []
    )
    filters = yield from _collect_filters(contributions, inherited, patterns)
    inference = Inference(contributions, inherited, events, pasts, filters, known_cuts, patterns, gone)
    inferred = yield from inference.infer_cuts()
    entered = {
        (entry.event.publisher, entry.event.seq): member
        for member, sync in contributions.items()
        for entry in sync.log
        if entry.entered
    }
    is_first = view.name == next(iter(contributions))
    adopts = adopted(events, contributions, admissions.values()) if is_first else set()
    return TakeoverPlan(
        region=view.region,
        contributions=contributions,
        links=_find_links(view),
        towards=path_inside(view.overlay, view.status, view.region.group, view.name),
        via=_find_via(view),
        inherited=inherited,
        heirs=heirs,
        estates=estates,
        holders=holders,
        owners=owners,
        admissions=admissions,
        doubtful=doubtful,
        known_cuts=known_cuts,
        renewed=renewed,
        inferred=inferred,
        events=events,
        pasts=pasts,
        entered=entered,
        next_numbers=next_numbers,
        gone=gone,
        unaware=unaware,
        published=published,
        unsure=from_disks | perhaps_gone(contributions, admitted, view.f),
        adopted=adopts,
        buried=holes_in_history(events, adopts, gone, contributions, view.window) if view.with_tombstones else {},
    )


def _known_from_disks(
    contributions: Mapping[str, Sync], estates: Mapping[Life, Mapping[str, SessionRecord]]
) -> set[str]:
    brought = [estate for sync in contributions.values() for estate in sync.estates]
    certain = {(estate.broker, estate.life) for estate in brought if not estate.is_found}
    return {client for life, records in estates.items() if life not in certain for client in records}


def _find_links(view: TakeoverView) -> dict[str, str]:
    core = view.region.core
    return {
        peer: via
        for via, peer in effective_links(view.overlay, view.status, view.name)
        if view.name in core or via in core
    }


def _find_via(view: TakeoverView) -> str:
    core = view.region.core
    if view.name in core:
        return MERGED
    return next((name for name in view.overlay.neighbours(view.name) if name in core), MERGED)


def _collect_known_cuts(contributions: Mapping[str, Sync], inherited: list[Inheritance]) -> Pieces[dict[str, Cuts]]:
    """What any member knows of the cuts of others' subscriptions. Those that are given back bring all their cuts."""
    known: dict[str, Cuts] = {}
    for share in inherited:
        for subscription, cuts in share.record.cuts.items() if share.is_given_back else ():
            merge_cuts(known.setdefault(subscription, {}), cuts)
    for sync in contributions.values():
        for subscription, cuts in sync.known_cuts.items():
            merge_cuts(known.setdefault(subscription, {}), cuts)
        yield len(sync.known_cuts) // LOOKED_AT
    for sync in contributions.values():
        for item in sync.subscriptions:
            if item.ended in known:
                merge_cuts(known.setdefault(item.subscription, {}), known[item.ended])
    return known


def _drop_outdated(known_cuts: dict[str, Cuts], contributions: Mapping[str, Sync]) -> Pieces[set[str]]:
    """Drop cuts that were given to an earlier subscription of the same name, and return the names.

    The smallest story: s comes from b6, and is known to b7, beyond b1, where it starts with p:5. b6 dies, nobody holds
    s, and it is taken back. p:5 passes b5. b6 returns, and its client subscribes to s again. b1 dies with both
    messages. b7 knows the first s, with p:5. Had that cut been given to the second, it would have passed b5, and so
    would s, before p:5 did.
    """
    found: set[str] = set()
    for sync in contributions.values():
        before: Cuts = {}
        place = 0
        for number, item in enumerate(sorted(sync.subscriptions, key=lambda item: item.log_from)):
            for entry in sync.log[place : item.log_from]:
                before[entry.event.publisher] = max(entry.event.seq, before.get(entry.event.publisher, 0))
            place = max(place, item.log_from)
            known = known_cuts.get(item.subscription, {})
            outdated = [p for p, cut in known.items() if p not in item.cuts and cut <= before.get(p, 0)]
            if outdated:
                found.add(item.subscription)
            for publisher in outdated:
                del known[publisher]
            if number % LOOKED_AT == 0:
                yield 1
    return found


def _collect_filters(
    contributions: Mapping[str, Sync], inherited: list[Inheritance], patterns: Patterns
) -> Pieces[dict[str, Filter]]:
    """The filters of all subscriptions that the members tell: those that only some know would lead to other plans."""
    filters: dict[str, Filter] = {}
    for sync in contributions.values():
        for item in sync.subscriptions:
            filters[item.subscription] = patterns.of(item.filter)
            yield 1
    for share in inherited:
        for name, text in share.record.subscriptions.items():
            filters[name] = patterns.of(text)
            yield 1
    for sync in contributions.values():
        for name, text in sync.filters.items():
            filters.setdefault(name, patterns.of(text))
            yield 1
    return filters


def _join_all_admissions(
    contributions: Mapping[str, Sync], estates: Mapping[Life, dict[str, SessionRecord]], passed: Cuts
) -> Pieces[tuple[dict[Life, list[Admission]], Cuts, set[Id]]]:
    """What each life had admitted, from where on that is doubtful, and what of it others went on without.

    Up to the last event that anybody is known to have processed, a life had admitted everything: members have
    processed what they `passed`, and whoever admitted something what stands before it.
    """
    processed = dict(passed)
    gone_round, by_others = when_gone_round(contributions), processed_by_others(contributions)
    held = [estate for sync in contributions.values() for estate in sync.estates]
    publishers = {item.event.publisher for estate in held for item in estate.admissions}
    publishers |= {entry.event.publisher for sync in contributions.values() for entry in sync.log}
    yield 1
    joined: dict[Life, list[Admission]] = {}
    lost: set[Id] = set()
    for life in estates:
        copies = [estate for estate in held if (estate.broker, estate.life) == life]
        joined[life] = yield from join_admissions(copies, publishers)
        if name_life(*life) in gone_round:
            lost.update((i.event.publisher, i.event.seq) for i in joined[life] if not still_counts(i, by_others))
            joined[life] = [item for item in joined[life] if still_counts(item, by_others)]
        for place, item in enumerate(joined[life]):
            merge_cuts(processed, item.after)
            if place % LOOKED_AT == 0:
                yield 1 + len(item.after)
    doubtful: Cuts = {}
    for items in joined.values():
        certain = 0
        for place, item in enumerate(items):
            if item.event.seq <= processed.get(item.event.publisher, 0):
                certain = place + 1
        for item in items[certain:]:
            doubtful.setdefault(item.event.publisher, item.event.seq)
    return joined, doubtful, lost


def _without(log: list[LogEntry], lost: set[Id]) -> list[LogEntry]:
    return [entry for entry in log if (entry.event.publisher, entry.event.seq) not in lost] if lost else log


def _find_late(estates: Mapping[Life, Mapping[str, SessionRecord]], contributions: Mapping[str, Sync]) -> Late:
    """The sessions of lives that were out when their clients came: a member is the heir of that life already.

    The smallest story: b6 stands still, p advertises, b6 is gone round, and b2 is its heir. b6 goes on, does not know
    that it is out, nor of p, and takes a subscription. p did not come later than that.
    """
    return {
        (broker, client)
        for (broker, life), records in estates.items()
        if claimant(contributions, name_life(broker, life)) is not None
        for client in records
    }


def _note_later_publishers(
    contributions: Mapping[str, Sync],
    inherited: list[Inheritance],
    late: Late,
    from_disks: Container[str],
    known_cuts: dict[str, Cuts],
    patterns: Patterns,
    next_numbers: NextNumbers,
    events: list[Event],
) -> Pieces[None]:
    """Give inherited subscriptions their cuts of publishers that came later than they did.

    A publisher came later if the subscription's broker neither knew it nor waited for it. The subscription starts with
    the first event under the publisher's advertisement, as it would have at its broker.

    If the publisher is inherited as well, that is its next event (`handover`). But after a blackout nobody knows the
    cuts that were given last, and a subscription may have been promised earlier ones. Its smallest story: S is there, p
    advertises, S gets its cut, and p publishes p:1. All brokers die when p:1 is on a disk and the cut is not yet. So
    the stamps are asked. If p came later than S, its events have larger stamps than the one that S began with, because
    the advertisement was answered before p published.

    S may be from an old disk, and over. Then who was there all the time, on p's side, does not know it. The smallest
    story: S ends, p advertises, and nobody wants p:1. A broker returns with S. What is new, and covered by S, would
    start with p:1. So S is told its cut as any new subscription is.
    """
    told = {
        item.publisher: sync.known_cuts
        for member, sync in contributions.items()
        if member not in sync.core
        for item in sync.advertisements
    }
    offers = [
        (item.publisher, item.filter, item.first) for sync in contributions.values() for item in sync.advertisements
    ]
    published: dict[str, list[Event]] = {}
    for event in events:
        published.setdefault(event.publisher, []).append(event)
    for share in inherited:
        offers += [(share.record.client, text, first) for text, first, _ in share.record.advertisements.values()]
    for share in inherited:
        for name, text in share.record.subscriptions.items():
            awaited = share.record.awaited.get(name)
            if awaited is None or (share.broker, share.record.client) in late:
                continue
            known = share.record.cuts.get(name, {}).keys() | set(awaited)
            began = share.record.began.get(name)
            is_old = share.record.client in from_disks
            for publisher, offer, advertised in offers:
                if is_old and name not in told.get(publisher, (name,)):
                    continue
                if publisher not in known and patterns.of(offer).overlaps(patterns.of(text)):
                    first = next_numbers.of(publisher, advertised, began if events else None)
                    cuts = known_cuts.setdefault(name, {})
                    later = [] if began is None else [e.seq for e in published.get(publisher, ()) if e.stamp > began]
                    cuts[publisher] = min(first, *later, cuts.get(publisher, first))
            yield 1 + len(offers) // LOOKED_AT
