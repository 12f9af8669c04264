"""What comes back with lives that the others went round: of their sessions and events, what still counts.

The others went on without a journal. Publishers whose sessions nobody had were gone, positions became final without
what is in the journal, and no way leads from or to whoever was there any more.

**Events.** If they came back now, it would be too late: whoever has read history beyond them would not take them, and
who subscribed would not be reached. The smallest story: b2 and b6 die with p:1, which c on the other side subscribes
to, and the others go round them. b2 and b6 come back with their disks, and p publishes 2. c would get p:2, and never
hear of p:1. So what nobody who went on has processed is lost, as if they had come back without it. When its publisher
comes, it is told, and so is everybody else (`clients.desk`). That one of those who come back has processed it does not
count: b2 may only have stood still, and have taken b6 in before it heard that it is out.

**Subscriptions.** What was published meanwhile did not come their way. The smallest story: s comes back with its cut
p:1, and its client reads p:2 to p:9 out of history. t is covered by s, and would start with p:2 as s did. So they are
lost, too: their clients bring them, and they go on from the position that had reached everyone (`clients.desk`).

So are those of a broker that took such sessions over before it met anybody who had gone on without them. The smallest
story: b5 and b6 stand still, b4 goes round them, and p:1 comes by. b5 goes on, does not know that it is out, and takes
b6 in, which is the heir of its own last life, with s. When both meet b4, s would start with p:2, and was promised p:1.
What clients of such a broker published, and nobody who went on has processed, is lost as well: those who subscribed to
it, there, took it for gone.
"""

from collections.abc import Iterable, Mapping

import msgspec

from gapless.protocols.gapless.lives import NOWHERE, Home, broker_of, name_life, parse_life
from gapless.protocols.gapless.messages import Admission, Cuts, Estate, SessionRecord, Sync
from gapless.protocols.gapless.recovery.merge import merge_cuts

__all__ = [
    "lost_in_logs",
    "processed_by_any",
    "processed_by_others",
    "published_unaware",
    "still_counts",
    "unaware_heirs",
    "when_gone_round",
    "without_lost",
    "without_published",
    "without_subscriptions",
]

Id = tuple[str, int]
NEVER = 1 << 62


def when_gone_round(contributions: Mapping[str, Sync]) -> dict[Home, int]:
    """The lives that hand-overs went round, each with a position that everything had reached before."""
    found: dict[Home, int] = {}
    went_on = [sync for sync in contributions.values() if sync.gone_round]
    estates = _left(contributions) if went_on else []
    for sync in went_on:
        left = [_gone_round_by(sync, estate) for estate in estates]
        for home, position in (*sync.gone_round.items(), *filter(None, left)):
            found[home] = min(position, found.get(home, position))
    return found


def _left(contributions: Mapping[str, Sync]) -> list[Estate]:
    """All estates but those that are given back in this hand-over."""
    return [estate for sync in contributions.values() for estate in sync.estates if estate.life != -sync.tag]


def _gone_round_by(sync: Sync, estate: Estate) -> tuple[Home, int] | None:
    """The life that left this estate, and such a position, if a member went round the estate with some other life.

    It may have gone round the life's heir, or round a later life, and have heard nothing of this one. The smallest
    story: b1 takes over s from b4's first life, and tells b7, but nobody hears b1 any more. b0 goes round b1, and round
    b4's second life, and p:1 comes by. b7 meets b0, and still has what b4's first life left.
    """
    life = name_life(estate.broker, estate.life)
    seen = [life]
    while (heir := sync.heirs.get(seen[-1], NOWHERE)) and heir not in seen:
        seen.append(heir)
    positions = [sync.gone_round[home] for home in seen if home in sync.gone_round]
    if seen[-1] == life:
        positions += [sync.gone_round[other] for other in sync.gone_round if _is_later(other, estate)]
    return (life, min(positions)) if positions else None


def _is_later(home: Home, estate: Estate) -> bool:
    broker, life = parse_life(home)
    return broker == estate.broker and life > estate.life


def processed_by_any(contributions: Mapping[str, Sync]) -> Cuts:
    """By publisher: the last event that any member has processed."""
    found: Cuts = {}
    for sync in contributions.values():
        merge_cuts(found, sync.passed)
    return found


def processed_by_others(contributions: Mapping[str, Sync]) -> Cuts:
    """The same, of the members that went round some life."""
    return processed_by_any({member: sync for member, sync in contributions.items() if sync.gone_round})


def unaware_heirs(contributions: Mapping[str, Sync]) -> set[str]:
    """The members that took over clients of a life that another member went on without, and did not know that.

    They may have got them back: the life was one of their own. The smallest story: b4 is out, and b1 takes over s.
    Nobody hears b1 any more, and b0 goes on without b1 and b4. Before b1 hears that, it takes b4 in, and gives s back.
    """
    over = {home for sync in contributions.values() for home in sync.passed_over}
    return {
        member
        for member, sync in contributions.items()
        for home in over.difference(sync.passed_over)
        if member in (broker_of(home), broker_of(sync.heirs.get(home, NOWHERE)))
    }


def published_unaware(contributions: Mapping[str, Sync], unaware: Iterable[str]) -> Cuts:
    """The publishers whose sessions such members have, each with the last number that counts."""
    aware = {member: sync for member, sync in contributions.items() if sync.passed_over and member not in unaware}
    processed = processed_by_any(aware)
    return {client: processed.get(client, 0) for member in unaware for client in contributions[member].owned}


def without_published(contributions: Mapping[str, Sync], published: Cuts) -> dict[str, Sync]:
    """The contributions as if nobody had processed more of these publishers than that."""
    return {
        member: msgspec.structs.replace(
            sync,
            passed={name: min(seq, published.get(name, seq)) for name, seq in sync.passed.items()},
            log=[entry for entry in sync.log if entry.event.seq <= published.get(entry.event.publisher, NEVER)],
            advertisements=[
                msgspec.structs.replace(item, first=min(item.first, published.get(item.publisher, NEVER) + 1))
                for item in sync.advertisements
            ],
        )
        for member, sync in contributions.items()
    }


def lost_in_logs(contributions: Mapping[str, Sync], gone: Cuts) -> set[Id]:
    """Events of publishers that are `gone`, in the logs of those who come back, that the others went on without.

    Nobody has the journal that they were in. The smallest story: b6 stands still and has p:1 from p, whose broker b3
    dies without memory. b6 takes in b8, which comes back, and b8's log has p:1, too. Then both hear that the others
    have gone round b6 and b3, and c, there, does not know p any more. If p:1 counted, c would get p:2, and never hear
    of p:1.
    """
    core = {name for sync in contributions.values() for name in sync.core}
    if not any(broker_of(home) in core for home in when_gone_round(contributions)):
        return set()
    processed = processed_by_others(contributions)
    return {
        (entry.event.publisher, entry.event.seq)
        for sync in contributions.values()
        for entry in sync.log
        if entry.event.publisher in gone and entry.event.seq > processed.get(entry.event.publisher, 0)
    }


def without_lost(records: Iterable[SessionRecord], processed: Cuts) -> dict[str, SessionRecord]:
    """The sessions of such a life, by client: as if each had published no more than others processed."""
    return {
        record.client: msgspec.structs.replace(
            without_subscriptions(record), admitted=min(record.admitted, processed.get(record.client, 0))
        )
        for record in records
    }


def without_subscriptions(record: SessionRecord) -> SessionRecord:
    """The session, if all that its client had subscribed to is lost."""
    return msgspec.structs.replace(record, subscriptions={}, cuts={}, awaited={}, began={}, anew={}, revived=[])


def still_counts(item: Admission, processed: Cuts) -> bool:
    """Whether others have processed what such a life had admitted."""
    return item.event.seq <= processed.get(item.event.publisher, 0)
