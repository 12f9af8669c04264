"""Handing a part of the tree over to those who are left, or back to those who return.

Whenever the statuses around a broker change, the regions it belongs to change (`contraction`). For each new region
the broker stops using its links into the region, and sends every other member one `Sync`: what subscribes and
publishes on its own side, and its log. When it has the `Sync` of every member it *completes*, in one step:

1. It takes over the markers that others know and it may have missed, so that cuts come before the events.
2. It enters what subscribes and publishes on the others' sides, and passes it on to its own side: a subscription
   runs ahead of every event that could cause an effect it must see.
3. It processes the merged log (`merge`), for its own side only; everyone else does the same for theirs.
4. It installs the new links. Both ends know from the same `Sync`s what each has sent the other, so nothing needs
   to be repeated. Only then it answers with markers of its own, and lets through what came from its side meanwhile.

Nobody listens on a new link before all of this. So nobody can see an effect whose cause another member still keeps in
its log: this is the flush of virtual synchrony, done locally. A crash, a false suspicion or a return, also during a
hand-over, only makes the statuses grow. The members start over with the larger view, and what one of them had completed
already is in its log.

The clients of an excluded life are its **estate**, which its backups hold. Their heir is the stand-in, or the
broker itself if it is back; it keeps their sessions until they come. An event that nobody is known to have processed
may not have reached all backups of the life. It is processed with the rest. But clients of the heir see it, and its
publisher is told that it is safe, only when the heir's own backups hold it.
"""

from collections.abc import Container, Iterable, Iterator, Mapping

import msgspec

from gapless.events import Event
from gapless.overlay import Overlay
from gapless.protocols.gapless.lives import NOWHERE, Home, broker_of, name_life
from gapless.protocols.gapless.members.contraction import Region, excluded, stand_in
from gapless.protocols.gapless.members.status import Statuses, life_of
from gapless.protocols.gapless.messages import Admission, Cuts, Estate, SessionRecord, SideSubscription, Sync, TreeBody
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.recovery.gone_round import (
    processed_by_others,
    when_gone_round,
    without_lost,
    without_subscriptions,
)  # fmt: skip

__all__ = [
    "Handover",
    "Inheritance",
    "alias_of",
    "claimant",
    "decide_owners",
    "divide_estates",
    "expand",
    "find_holders",
    "give_up_sessions",
    "has_two_owners",
    "join_admissions",
]

EXPANDED = 16
"""Admissions that are looked at, for one unit of work."""


class Handover:
    """A region's hand-over in progress at one member."""

    def __init__(self, region: Region, name: str) -> None:
        self._name = name
        self.region = region
        self.syncs: dict[str, Sync] = {}
        self.log_first = 0
        """Where the log of this member's contribution begins."""
        self.told: dict[str, Cuts] = {}
        """The cuts, by subscription, that this member had when it sent its contribution."""
        self.early: list[tuple[str, TreeBody]] = []
        """What arrived over links that the peer has installed already."""
        self.late: list[Event] = []
        """Events from this broker's own side that came after its log was sent."""

    def tell(self, own: Sync, cuts: dict[str, Cuts], log_first: int) -> None:
        """This member contributes: what came before is in its log."""
        self.syncs[self._name] = own
        self.told = cuts
        self.log_first = log_first
        self.late.clear()

    @property
    def is_told(self) -> bool:
        """Whether this member has contributed."""
        return self._name in self.syncs

    @property
    def own(self) -> Sync:
        """This member's contribution."""
        return self.syncs[self._name]

    def missing(self) -> list[str]:
        """The members that have not contributed yet."""
        return [member for member in self.region.group if member not in self.syncs]

    @property
    def is_ready(self) -> bool:
        """Whether every member has contributed."""
        return len(self.syncs) == len(self.region.group)

    def lost_count(self, status: Statuses) -> int:
        """How many brokers of the region are out, or have come back without what they held."""
        bare = {member for member, sync in self.syncs.items() if not sync.has_memory}
        return sum(name in bare or excluded(status, name) for name in self.region.core)

    def unheld(self, status: Statuses) -> list[str]:
        """The excluded brokers of the region whose journals no member has, and whose heirs no member knows.

        If that is so of one who has come back without what it held, any of the excluded may have its journal.
        """
        held = {(estate.broker, estate.life) for sync in self.syncs.values() for estate in sync.estates}
        secured = {life for sync in self.syncs.values() for life in sync.heirs}
        over = [(name, life_of(status[name])) for name in self.region.core if excluded(status, name)]
        known = {broker for broker, _ in held} | {broker_of(life) for life in secured}
        bare = [name for name in self.region.core if name in self.syncs and not self.syncs[name].has_memory]
        if any(name not in known for name in bare):
            return [name for name, _ in over]
        return [name for name, life in over if (name, life) not in held and name_life(name, life) not in secured]

    def contributions(self) -> dict[str, Sync]:
        """By member, in rank order: the same at every member."""
        return {member: self.syncs[member] for member in self.region.group}


class Inheritance(msgspec.Struct, frozen=True):
    """A session that passes to an heir."""

    record: SessionRecord
    heir: str
    broker: str
    """Where it was."""
    is_given_back: bool = False
    """A live member had it in the meantime, and gives it back."""


def divide_estates(
    overlay: Overlay, status: Statuses, syncs: Mapping[str, Sync]
) -> tuple[list[Inheritance], dict[tuple[str, int], str], dict[tuple[str, int], dict[str, SessionRecord]]]:
    """Who inherits which session, who is the heir of which life, and the estates put together.

    If the others went on without a life, no wave has waited for its clients since, and what they lack may be forgotten:
    they lie behind. The smallest story: b2 and b6 die with the session of p4, and the others go on without them. p2
    advertises, and publishes 1, which reaches everyone. b2 and b6 come back with all that they had. p4 would be told
    that it gets p2:1.

    If somebody is the heir of a life already, what turns up of it now is what the heir went on without. The smallest
    story: b2 has an older copy than b0 of what b1 holds, without s. b2 does not hear b0, is b1's heir, and p:1 comes
    by. Then b2 meets b0. So s is lost, and its client brings it.
    """
    gone_round = when_gone_round(syncs)
    owned: dict[str, int] = {}
    elsewhere = {
        client
        for sync in syncs.values()
        for client, home in sync.homes.items()
        if broker_of(home) not in syncs  # whoever takes part speaks for itself
    }
    records: dict[tuple[str, int], dict[str, SessionRecord]] = {}
    for sync in syncs.values():
        for client, epoch in sync.owned.items():
            owned[client] = max(epoch, owned.get(client, 0))
        for estate in sync.estates:
            _unite(records.setdefault((estate.broker, estate.life), {}), estate)
    gone = {client for sync in syncs.values() for client in sync.gone}
    processed = processed_by_others(syncs) if gone_round else {}
    for key, estate_records in records.items():
        if name_life(*key) in gone_round:
            records[key] = without_lost(estate_records.values(), processed)
    heirs: dict[tuple[str, int], str] = {}
    newest: dict[str, Inheritance] = {}
    for broker, life in sorted(records):
        chief = heir = claimant(syncs, name_life(broker, life))
        if chief is None:
            chief = stand_in(overlay, status, broker) if excluded(status, broker) else broker
        assert chief is not None
        heirs[broker, life] = chief
        for record in records[broker, life].values():
            if record.client in elsewhere:
                continue
            known = newest.get(record.client)
            if record.epoch > owned.get(record.client, -1) and (known is None or record.epoch > known.record.epoch):
                if heir is not None:
                    record = without_subscriptions(record)
                record = _lying_behind(record, gone_round.get(name_life(broker, life), -1))
                record = _advertising_again(record, was_gone=record.client in gone)
                newest[record.client] = Inheritance(record, chief, broker, life < 0)
    return [share for _, share in sorted(newest.items())], heirs, records


def _lying_behind(record: SessionRecord, position: int) -> SessionRecord:
    """The session, if waves did not wait for its client since a position."""
    if position < 0 or 0 <= record.behind <= position:
        return record
    return msgspec.structs.replace(record, behind=position)


def find_holders(
    syncs: Mapping[str, Sync], estates: Mapping[tuple[str, int], dict[str, SessionRecord]]
) -> dict[str, str]:
    """For each client of the estates, the member that already holds a session of it, if there is one.

    Its smallest story: b0 is out and b1, its heir, holds its client. b3 returns beside b0. In the hand-over that
    follows, b1 is no member any more. If nobody there remembers that b1 holds the client, they inherit it again.
    """
    holders: dict[str, tuple[int, str]] = {}
    clients = {client for records in estates.values() for client in records}
    for member, sync in syncs.items():
        for client in clients & sync.owned.keys():
            holders[client] = max(holders.get(client, (-1, "")), (sync.owned[client], member))
    return {client: holders[client][1] for client in sorted(holders)}


def has_two_owners(contributions: Iterable[Sync]) -> bool:
    """Whether two members hold the session of the same client. Then they had gone on without each other."""
    owned = [sync.owned.keys() for sync in contributions]
    return len(set().union(*owned)) < sum(map(len, owned))


def decide_owners(contributions: Mapping[str, Sync], inherited: Iterable[Inheritance]) -> dict[str, str]:
    """Who keeps the session of a client that several members hold: the one whose session is the newest.

    Its smallest stories: two halves of a network lost sight of each other, and both inherited the client. Or the client
    went back to a broker that was already excluded, did something there, and its session is inherited once more.
    """
    claims: dict[str, list[tuple[int, str]]] = {}
    for member, sync in contributions.items():
        for client, epoch in sync.owned.items():
            claims.setdefault(client, []).append((epoch, member))
    for share in inherited:
        claims.setdefault(share.record.client, []).append((share.record.epoch, share.heir))
    return {client: max(held, key=lambda claim: claim[0])[1] for client, held in claims.items() if len(held) > 1}


def give_up_sessions(
    contributions: Mapping[str, Sync], owners: Mapping[str, str], inherited: Iterable[Inheritance]
) -> dict[str, Sync]:
    """The contributions without what their members list for clients whose sessions another one keeps.

    The subscriptions may represent others. They go on under another name until those have taken their place.
    """
    if not owners:
        return dict(contributions)
    owned = {client for sync in contributions.values() for client in sync.owned}
    renewed = {share.record.client for share in inherited if share.record.client in owned}
    return {
        member: msgspec.structs.replace(
            sync,
            subscriptions=[
                _under_alias(item, member) if owners.get(item.client, member) != member else item
                for item in sync.subscriptions
            ],
            advertisements=[
                item
                for item in sync.advertisements
                if owners.get(item.publisher, member) == member and item.publisher not in renewed
            ],
        )
        for member, sync in contributions.items()
    }


def give_up_subscriptions(contributions: Mapping[str, Sync], members: Container[str]) -> dict[str, Sync]:
    """The contributions without the subscriptions of these members' clients, which are lost (`gone_round`). They may
    represent others, too."""
    return {
        member: msgspec.structs.replace(
            sync, subscriptions=[_under_alias(item, member) if item.client else item for item in sync.subscriptions]
        )
        if member in members
        else sync
        for member, sync in contributions.items()
    }


def _under_alias(item: SideSubscription, member: str) -> SideSubscription:
    return msgspec.structs.replace(item, subscription=alias_of(item.subscription, member))


def alias_of(subscription: str, member: str) -> str:
    """The name under which a subscription goes on for a while at a member that no longer holds its session."""
    return f"{subscription}@{member}"


def join_admissions(copies: Iterable[Estate], publishers: Container[str]) -> Pieces[list[Admission]]:
    """One life's admissions, expanded, from several copies, which may lack some at either end."""
    numbered: dict[int, Admission] = {}
    for copy in copies:
        for item in expand(copy, publishers):
            numbered[item.number] = item
            if item.number % EXPANDED == 0:
                yield 1 + len(item.after)
    joined: dict[tuple[str, int], Admission] = {}
    for number in sorted(numbered):
        event = numbered[number].event
        joined.setdefault((event.publisher, event.seq), numbered[number])
    return list(joined.values())


def expand(estate: Estate, publishers: Container[str]) -> Iterator[Admission]:
    """The admissions, each with all that preceded it of these publishers."""
    known = {publisher: seq for publisher, seq in estate.before.items() if publisher in publishers}
    for item in estate.admissions:
        news = {publisher: seq for publisher, seq in item.after.items() if publisher in publishers}
        if news:
            known = {**known, **news}
        yield Admission(item.number, item.event, known if item.whole is None else item.whole, item.is_inherited)


def _advertising_again(record: SessionRecord, was_gone: bool) -> SessionRecord:
    """The record, with advertisements that begin with what their publisher says next.

    A broker that does not know a stable advertisement has heard that it was taken back. So nobody starts with what was
    published under it before. Its smallest story: a broker takes an advertisement back and dies before its backups
    know. The heir enters it again. Whoever has subscribed meanwhile must not start with the first event of all.

    If a member took the session for lost, it has told those behind it that nobody advertises there any more, and they
    may have taken their subscriptions back. So its advertisements have to become stable again.
    """
    following = record.admitted + 1
    advertisements = {
        name: (text, max(first, following), is_stable and not was_gone)
        for name, (text, first, is_stable) in record.advertisements.items()
    }
    return msgspec.structs.replace(record, advertisements=advertisements)


def claimant(syncs: Mapping[str, Sync], life: Home) -> str | None:
    """The member that took the life's clients over in an earlier hand-over, if it says so itself."""
    for member, sync in syncs.items():
        if broker_of(sync.heirs.get(life, NOWHERE)) == member:
            return member
    return None


def _unite(known: dict[str, SessionRecord], estate: Estate) -> None:
    for client, record in estate.records.items():
        other = known.get(client)
        if other is None or (record.epoch, record.version, record.admitted) > (
            other.epoch,
            other.version,
            other.admitted,
        ):
            known[client] = record
