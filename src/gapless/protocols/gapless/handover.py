"""The handover of a region: a barrier among the live brokers in and around the region.

1. *Contribute.* Each member stops using its links into the region, defers all other input, and sends every other member
   its state: its log, its sealed journals, and the subscriptions and advertisements of its side.
2. *Unite.* When a member has all contributions, and the sealed journals in their agreed lengths, it sorts the union of
   all logs and journals by timestamp, and processes the unprocessed part, for its own side only.
3. *Install.* Both ends create each link of the contracted tree with the same subscriptions. Subscriptions that had
   arrived through the region and are in no contribution have ended.
4. *Void.* Attempts from this side that had been sent into the region start again, unless they have succeeded.

Every member computes the same function of the same contributions, so no further agreement is needed. All members
process the same sorted union before anything passes over a new link, so no effect overtakes a cause. If a status
changes meanwhile, the handover restarts with the larger region; the log of a member contains the work it has completed.
"""

from typing import Any

from gapless.event_runs import EventRun
from gapless.filters import parse
from gapless.protocols.gapless.events import process
from gapless.protocols.gapless.identities import Attempt, Incarnation, Name
from gapless.protocols.gapless.journal_state import Journal
from gapless.protocols.gapless.link_messages import ActivateSubscription, LinkMessage
from gapless.protocols.gapless.losses import beyond_journals, without
from gapless.protocols.gapless.membership import learn
from gapless.protocols.gapless.membership_messages import (
    AdvertisementRecord,
    Completed,
    Contribution,
    SubscriptionRecord,
)
from gapless.protocols.gapless.membership_state import Handover, Stage
from gapless.protocols.gapless.numbers import NUMBER_MAX
from gapless.protocols.gapless.positions import ask_wave, drop_wave
from gapless.protocols.gapless.recovery import join, vouched
from gapless.protocols.gapless.routing import (
    put_advertisement,
    put_subscription,
    refresh,
    remove_advertisement,
    remove_subscription,
    send_subscription,
    void,
)
from gapless.protocols.gapless.routing_state import Advertisement, Link, Subscription
from gapless.protocols.gapless.sealed_journals import sealed_copy, want
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.topology import Region, next_hops

__all__ = ["advance", "ask_vouchers", "missing_journals", "receive_completed", "receive_contribution", "unsealed"]


# ---- choosing the handover ---------------------------------------------------------------------------------


def advance(s: BrokerState) -> None:
    """Start, restart, or complete the handover that is due."""
    if s.stage is Stage.RECOVERING or s.stage is Stage.EXCLUDED:
        return
    regions = s.topology.regions_of(s.statuses, s.name)
    if s.handover is None:
        due = next((region for region in regions if not _is_covered(s, region)), None)
        if due is None:
            return
        if not _is_vouched(s, due):
            ask_vouchers(s)
            return
        _begin(s, due, Handover(due))
    else:
        now = next((region for region in regions if region.core & s.handover.region.core), None)
        assert now is not None, "the region of a handover cannot vanish"
        if not _is_vouched(s, now):
            s.handover = None
            s.due |= Due.HANDOVER
            return
        if now.tag != s.handover.region.tag:
            _begin(s, now, Handover(now, s.handover.removed))
    _complete_if_whole(s)


def _is_vouched(s: BrokerState, region: Region) -> bool:
    """Return whether this broker can take part in a handover of the region.

    A broker that has never been part of the tree must not complete a handover together with a member that is being
    excluded by brokers that do not know the new broker. So f + 1 of each member's electorate must know this incarnation
    before they promise to exclude that member. A broker that learns of a later exclusion then also learns of this
    incarnation. This broker can be one of the f + 1.
    """
    if s.is_installed:
        return True
    own = vouched(s)
    for member in region.group:
        if member != s.name:
            vouchers = s.vouched.get(s.current(member), set())
            count = sum(s.is_current(each) for each in vouchers)
            if count + (s.current(member) in own) < s.needed(s.topology.electorate(member), s.topology.quorum):
                return False
    return True


def ask_vouchers(s: BrokerState) -> None:
    """Announce this incarnation to the electorates of all members before its first handover."""
    if s.is_installed:
        return
    asked = set(s.topology.peers(s.name))
    for region in s.topology.regions_of(s.statuses, s.name):
        for member in region.group:
            asked |= {member, *s.topology.acceptors[member]}
    for name in sorted(asked - {s.name}):
        if s.current(name) not in s.asked_vouchers and s.is_live(name):
            s.asked_vouchers.add(s.current(name))
            join(s, name)


def _coverage(s: BrokerState, region: Region) -> tuple[frozenset[Any], frozenset[Any]]:
    core = frozenset((name, s.status(name)[:3]) for name in region.core)
    return core, frozenset(s.current(name) for name in region.group)


def _is_covered(s: BrokerState, region: Region) -> bool:
    """Return whether a handover that this broker has completed already covers the region."""
    core, group = _coverage(s, region)
    return any(core <= done_core and group <= done_group for done_core, done_group in s.covered)


# ---- contributing ------------------------------------------------------------------------------------------


def _begin(s: BrokerState, region: Region, handover: Handover) -> None:
    s.handover = handover
    removed = [
        link for link in s.links.values()
        if s.name in region.core or link.peer in region.core or link.via & region.core
    ]  # fmt: skip
    for link in removed:
        del s.links[link.key]
        s.removed_links.add(link.key)
    handover.removed = [*handover.removed, *removed]
    drop_wave(s, removed)
    handover.own = s.contributions[s.name] = _contribution(s, handover)
    for member in region.group:
        if member != s.name:
            s.send(member, handover.own)
    _want_journals(s, region)


def _contribution(s: BrokerState, handover: Handover) -> Contribution:
    removed = set(map(id, handover.removed))
    return Contribution(
        tag=handover.region.tag,
        statuses=dict(s.statuses),
        clock=s.clock.last,
        stable=s.stable,
        log=list(s.log.values()),
        seen=dict(s.seen),
        journals=[copy for each in _sealed(s, handover.region) if (copy := sealed_copy(s, *each)) is not None],
        subscriptions=[
            SubscriptionRecord(each.name, each.filter.text, each.attempt, each.is_active)
            for each in s.subscriptions.values() if id(each.origin) not in removed
        ],
        advertisements=[
            AdvertisementRecord(each.name, each.filter.text, each.attempt, each.home, each.base)
            for each in s.advertisements.values() if id(each.origin) not in removed
        ],
    )  # fmt: skip


def _sealed(s: BrokerState, region: Region) -> list[tuple[Incarnation, int]]:
    """Return the region's sealed incarnations with the lengths of their journals."""
    return [
        (Incarnation(name, number), length)
        for name in sorted(region.core)
        for number, length in s.status(name).lengths
        if not s.is_seal_final(Incarnation(name, number))
    ]


def missing_journals(s: BrokerState, region: Region) -> list[Incarnation]:
    """Return the sealed journals that this broker needs for the handover and does not have."""
    return [each for each, length in _sealed(s, region) if length > len(s.journals.get(each, ()))]


def unsealed(s: BrokerState, region: Region) -> list[str]:
    """Return the region's brokers whose earlier journals are not all sealed."""
    return [
        name for name in region.core if s.status(name).number and s.status(name).sealed_below < s.status(name).number
    ]


def _want_journals(s: BrokerState, region: Region) -> None:
    for incarnation in missing_journals(s, region):
        want(s, incarnation)


def receive_contribution(s: BrokerState, peer: str, message: Contribution) -> None:
    """Store a member's contribution, perhaps to a handover that has not started here."""
    s.contributions[peer] = message
    s.due |= Due.HANDOVER
    learn(s, message.statuses, peer)


# ---- completing --------------------------------------------------------------------------------------------


def _complete_if_whole(s: BrokerState) -> None:
    handover = s.handover
    assert handover is not None
    region = handover.region
    found = [s.contributions.get(member) for member in region.group]
    contributions = [each for each in found if each is not None and each.tag == region.tag]
    if len(contributions) < len(region.group) or unsealed(s, region):
        return
    for contribution in contributions:
        for copy in contribution.journals:
            s.journals.setdefault(Incarnation(*copy.incarnation), Journal()).extend_from(copy)
    if missing_journals(s, region):
        _want_journals(s, region)
        return
    _complete(s, handover, dict(zip(region.group, contributions, strict=True)))


def _complete(s: BrokerState, handover: Handover, contributions: dict[str, Contribution]) -> None:
    region = handover.region
    clock = max(each.clock for each in contributions.values())
    s.clock.see(clock)
    s.handover = None
    s.is_installed = True
    _process_union(s, handover, contributions)
    links = _install(s, handover, contributions)
    _end_what_nobody_brings(s, handover, links)
    _void_pending(s, handover)
    for name in region.core:
        if s.status(name).sealed_below:
            seal = Incarnation(name, s.status(name).sealed_below)
            s.sealed_here[seal] = min(clock, s.sealed_here.get(seal, clock))
    _finish(s, region, links)


def _process_union(s: BrokerState, handover: Handover, contributions: dict[str, Contribution]) -> None:
    """Process, in causal order, all events that any member has processed or an excluded incarnation had admitted. Omit
    events beyond the end of a journal that no broker has completely, because not all members can have them."""
    floor = max(each.stable for each in contributions.values())
    limits = beyond_journals(s, handover, [record for each in contributions.values() for record in each.advertisements])
    union: list[EventRun] = list(without((events for each in contributions.values() for events in each.log), limits))
    s.log = {(events.publisher, events.last): events for events in without(s.log.values(), limits)}
    for incarnation, length in _sealed(s, handover.region):
        journal = s.journals[incarnation]
        union += [entry.events for entry in journal.entries[: length - journal.start]]
    if "sort" in s.off:
        union.sort(key=lambda events: (events.publisher, events.first))
    else:
        union.sort(key=lambda events: (events.stamp, events.publisher, events.first))
    for events in union if "union" not in s.off else ():
        if events.stamp > floor:
            process(s, events, None)
    for contribution in contributions.values():
        for publisher, last in contribution.seen.items():
            s.seen[publisher] = max(last, s.seen.get(publisher, 0))


def _install(s: BrokerState, handover: Handover, contributions: dict[str, Contribution]) -> list[Link]:
    """Create the new links, with the subscriptions and advertisements of all members on other sides behind them."""
    region = handover.region
    new_links = s.topology.links_of(s.statuses, region)
    by_peer: dict[str, Link] = {}
    for new in new_links:
        if s.name in new.ends:
            peer = new.ends[1] if new.ends[0] == s.name else new.ends[0]
            by_peer[peer] = Link(peer, region.tag, new.via)
    hops = next_hops(s.name, new_links)
    own = contributions[s.name]
    own_subscriptions = {Name(*each.name) for each in own.subscriptions}
    own_advertisements = {Name(*each.name) for each in own.advertisements}
    for member, contribution in contributions.items():
        if member == s.name:
            continue
        link = by_peer[hops[member]]
        for record in contribution.subscriptions:
            _install_subscription(s, record, link, own_subscriptions)
        for advertisement in contribution.advertisements:
            _install_advertisement(s, advertisement, link, own_advertisements)
    removed = set(map(id, handover.removed))
    for link in by_peer.values():
        for subscription in s.subscriptions.values():
            if subscription.origin is not link and id(subscription.origin) not in removed:
                send_subscription(s, link, subscription, silently=True)
    s.links |= {link.key: link for link in by_peer.values()}
    return list(by_peer.values())


def _install_subscription(s: BrokerState, record: SubscriptionRecord, link: Link, own: set[Name]) -> None:
    name, attempt = Name(*record.name), Attempt(*record.attempt)
    old = s.subscriptions.get(name)
    if name in own and old is not None and old.attempt >= attempt:
        return
    put_subscription(s, Subscription(name, parse(record.filter), attempt, link, record.is_active))


def _install_advertisement(s: BrokerState, record: AdvertisementRecord, link: Link, own: set[Name]) -> None:
    name, attempt = Name(*record.name), Attempt(*record.attempt)
    old = s.advertisements.get(name)
    if name in own and old is not None and old.attempt >= attempt:
        return
    put_advertisement(s, Advertisement(name, parse(record.filter), attempt, link, record.home, record.base), NUMBER_MAX)


def _end_what_nobody_brings(s: BrokerState, handover: Handover, links: list[Link]) -> None:
    """Remove entries that arrived through the region and that no member contributes; send the remaining ones on."""
    removed = set(map(id, handover.removed))
    stay = [link for link in s.links.values() if link not in links]
    for link in stay:
        refresh(s, link)
    for subscription in [each for each in s.subscriptions.values() if id(each.origin) in removed]:
        remove_subscription(s, subscription.name)
    for advertisement in [each for each in s.advertisements.values() if id(each.origin) in removed]:
        remove_advertisement(s, advertisement, NUMBER_MAX)


def _void_pending(s: BrokerState, handover: Handover) -> None:
    """Restart the attempts from this side that were sent into the region."""
    assert handover.own is not None
    was_sent = {name for link in handover.removed for name in link.sent}
    gone = set(map(id, handover.removed))
    if "void" not in s.off:
        for record in handover.own.subscriptions:
            name = Name(*record.name)
            subscription = s.subscriptions.get(name)
            if subscription is None or subscription.is_active or name not in was_sent:
                continue
            if subscription.attempt == record.attempt and id(subscription.origin) not in gone:
                void(s, name, subscription.attempt, is_subscription=True)
        for advertisement in handover.own.advertisements:
            known = s.advertisements.get(Name(*advertisement.name))
            if known is not None and known.attempt == advertisement.attempt:
                void(s, known.name, known.attempt, is_subscription=False)


def _finish(s: BrokerState, region: Region, links: list[Link]) -> None:
    s.due = Due.ALL  # process the deferred inputs, and perhaps another region
    s.completed[region.tag] = region
    s.covered.append(_coverage(s, region))
    s.contributions = {name: each for name, each in s.contributions.items() if each.tag != region.tag}
    stay = [link for link in s.links.values() if link not in links]
    for link in stay:
        for name, (attempt, was_active) in list(link.sent.items()):
            subscription = s.subscriptions.get(name)
            if (
                subscription is not None
                and subscription.is_active
                and not was_active
                and subscription.attempt == attempt
            ):
                send_subscription(s, link, subscription, silently=True)
                s.send_along(link, ActivateSubscription(name, attempt))
    for member in region.group:
        if not s.status(member).is_joined:
            if member == s.name:
                receive_completed(s, s.name, Completed(region.tag))
            else:
                s.send(member, Completed(region.tag))
    ask_wave(s, is_lost=True)
    for link in links:
        s.inbox.extend((link.peer, LinkMessage(link.tag, body)) for body in s.early.pop(link.key, ()))


def receive_completed(s: BrokerState, peer: str, message: Completed) -> None:
    """Record that a member has completed the handover in which this broker joins."""
    members = s.completions.setdefault(message.tag, set())
    members.add(peer)
    region = s.completed.get(message.tag)
    if region is None or s.handover is not None or not members >= set(region.group):
        return
    if region.tag not in {each.tag for each in s.topology.regions_of(s.statuses, s.name)}:
        return
    joined = {
        name: s.status(name)._replace(phase=s.status(name).phase + 1)
        for name in region.core
        if not s.status(name).is_excluded
    }
    learn(s, joined)
