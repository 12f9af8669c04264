"""Finding the events that nobody in a region holds any more, of publishers that were lost with their brokers.

If at most f fail, a backup brings the journal of each broker that is out, and nothing is lost. If more fail, a
publisher may be lost with its broker and with all who held the journal of that broker. Then its advertisements came
from inside the region, and no member knows a session of it. Of what it published,

- everything up to a number has reached everyone, as some member knows (`Sync.inside`),
- what left the dead brokers is in the log of a member, through which it went; or it has reached everyone,
- so what lies between that number and the last that passed any member, or was admitted for all that anybody knows
  (`Sync.unreached`), and is in no log, is lost. It may also have gone to dead brokers only, which nobody can tell.

Each of these gets a tombstone, right after the event before it. Every effect of what is lost comes after that event,
too, so nobody sees an effect before it is told that the cause is lost. What the publisher published after the last that
passed any member becomes known when it comes back (`clients.desk`).

If a journal is lost, no history would have what was admitted into it. So one member notes in its own journal what is
left of that, with the tombstones. Each of these has the stamp of the next event that is held, so that history has them
in order, too.

Other publishers are not gone: they went elsewhere, or left in good order. Nobody who subscribed misses anything of
theirs, but who reads history does. The smallest story: p publishes 1, which nobody wants, then 2, and takes its
advertisement back. Its broker dies, and so do all who held its journal. What is left is 2, in the log of a member. Who
reads from the beginning would get 2, and hear nothing of 1. So that member notes tombstones for what came before 2, for
history alone.
"""

from collections.abc import Iterable, Mapping, Sequence

from gapless.events import Event
from gapless.protocols.gapless.clients.unaccounted import ANYBODY
from gapless.protocols.gapless.lives import broker_of
from gapless.protocols.gapless.messages import Admission, Cuts, Sync
from gapless.protocols.gapless.recovery.found import has_found_journal
from gapless.protocols.gapless.recovery.gone_round import processed_by_any, processed_by_others
from gapless.protocols.gapless.recovery.merge import merge_cuts
from gapless.protocols.gapless.tombstones import tombstone

__all__ = ["adopted", "fill_holes", "gone_publishers", "holes_in_history", "perhaps_gone"]

Id = tuple[str, int]
NEVER = 1 << 62


def gone_publishers(contributions: Mapping[str, Sync], inherited: Mapping[str, int]) -> Cuts:
    """The publishers that lost events may be of, each with the number up to which nothing of it is lost.

    First those whose sessions were lost in the region: everything up to the number has reached everyone. Then those
    that are `inherited` in a state that is older than what is known to have passed. They were found on an old disk:
    everything up to the number is in that journal, or has reached everyone. Those who have taken their advertisements
    back count as well. The smallest story: p publishes 1 and 2, and takes its advertisement back. b1, where p is, comes
    back with an old disk that has neither. b2 has got 2, and 1 did not concern it. Who reads history gets 2, and has to
    hear that 1 is lost.
    """
    has_lost_journal = _has_lost_journal(contributions)
    known = set(inherited) | (_last_heard_outside(contributions) if has_lost_journal else set())
    known |= _present(contributions)
    found: Cuts = {}
    for sync in contributions.values():
        for publisher, reached in sync.inside.items():
            if publisher not in known:
                if has_lost_journal:
                    found[publisher] = max(reached, found.get(publisher, 0))
            elif inherited.get(publisher, NEVER) < sync.passed.get(publisher, 0):
                found[publisher] = max(reached, inherited[publisher], found.get(publisher, 0))
    went_on = any(sync.gone_round for sync in contributions.values())
    passed = processed_by_others(contributions) if went_on else processed_by_any(contributions)
    for publisher in sorted(inherited.keys() - found.keys()):
        reached = max(inherited[publisher], *(sync.done.get(publisher, 0) for sync in contributions.values()))
        if reached < passed.get(publisher, 0):
            found[publisher] = reached
    return found


def perhaps_gone(contributions: Mapping[str, Sync], inherited: Mapping[str, int], f: int) -> set[str]:
    """The publishers that have left in good order, or were lost with the heir of their broker: nobody knows which.

    The smallest story: b5 dies with p:1, which x, at b4, has got. b4 is its heir, says so, and dies before anybody else
    holds what it inherited. x comes to b1. If it were let in at once, x:1 would be there before p publishes p:1 again.

    If more than f are concerned, and a journal is lost, it may be anybody who advertises nothing. Another story: p
    publishes p:1, takes its advertisement back, and its broker and the only one who has its journal die. x has got p:1,
    from that broker. If x were let in at once elsewhere, x:1 would be there before p publishes p:1 again.
    """
    core = {name for sync in contributions.values() for name in sync.core}
    anybody = {ANYBODY} if len(core) > f and _has_lost_journal(contributions) else set()
    brought = {estate.broker for sync in contributions.values() for estate in sync.estates}
    heirs = {broker_of(life): broker_of(heir) for sync in contributions.values() for life, heir in sync.heirs.items()}
    if not any(name not in brought and heirs.get(name) in core for name in core):
        return anybody
    known = inherited.keys() | _present(contributions)
    return anybody | {
        publisher for sync in contributions.values() for publisher in sync.inside if publisher not in known
    }


def _present(contributions: Mapping[str, Sync]) -> set[str]:
    """The publishers whose sessions the members have, or that advertise something outside the region."""
    found: set[str] = set()
    for sync in contributions.values():
        found |= sync.owned.keys() | sync.homes.keys() | {item.publisher for item in sync.advertisements}
    return found


def _last_heard_outside(contributions: Mapping[str, Sync]) -> set[str]:
    """The publishers whose last event that anybody knows came into the region from a member's own side.

    The smallest story: p, at b0, takes its advertisement back. b0 and b1 know that, and b3 does not, for b2, between
    them, dies, and so does who had b2's journal. What p published passed b1 as far as anybody wanted it; nothing of it
    was in that journal.
    """
    latest: dict[str, tuple[int, bool]] = {}
    for sync in contributions.values():
        for entry in sync.log:
            publisher, seq = entry.event.publisher, entry.event.seq
            latest[publisher] = max((seq, entry.entered), latest.get(publisher, (0, False)))
        for publisher, seq in sync.passed.items():
            latest[publisher] = max((seq, False), latest.get(publisher, (0, False)))
    return {publisher for publisher, (_, entered) in latest.items() if entered}


def _has_lost_journal(contributions: Mapping[str, Sync]) -> bool:
    """Whether the region has a broker without its memory whose journal nobody has, and whose heir nobody knows.

    If it has none, a publisher that is not known any more has left in good order. The smallest story: p takes its
    advertisement back, and the broker that should tell that dies. Beyond it p is still known, and nothing of p is lost.
    """
    held = {estate.broker for sync in contributions.values() for estate in sync.estates}
    held |= {broker_of(life) for sync in contributions.values() for life in sync.heirs}
    held |= {member for member, sync in contributions.items() if sync.log or any(sync.passed.values())}
    return any(name not in held for sync in contributions.values() for name in sync.core)


def fill_holes(
    events: list[Event], pasts: dict[Id, Cuts], gone: Cuts, contributions: Mapping[str, Sync]
) -> list[Event]:
    """The events of the merged log, with tombstones for those of gone publishers that nobody holds.

    They are those before the last that passed any member, that is in the past of what a journal holds, or that is known
    to be admitted before a final position. The smallest story of the second: b1 dies with p:1, and with all who held
    it. b2 had processed it, and so x:1 comes after it, which is in b2's journal. If p:1 had no tombstone, p would
    publish it again when it is back, after its effect. Of the third: b1 and b2 die with p:1, which is on its way to c,
    at b1. The root knows that it was admitted. If p:1 had no tombstone, the next waves would say that it has reached
    everyone.
    """
    held: dict[str, dict[int, int]] = {publisher: {} for publisher in gone}
    for event in events:
        if event.publisher in held:
            held[event.publisher][event.seq] = event.stamp
    latest = max((event.stamp for event in events), default=0)
    stamp = 1 + max(latest, *(sync.wave for sync in contributions.values()))
    after: dict[Id, list[Event]] = {}
    first: list[Event] = []
    noted = _noted_before(contributions) if gone else {}
    for publisher in sorted(gone):
        last = noted.get(publisher, 0)
        for sync in contributions.values():
            last = max(last, sync.passed.get(publisher, 0), sync.unreached.get(publisher, 0))
        before = max((seq for seq in held[publisher] if seq <= gone[publisher]), default=0)
        place = after.setdefault((publisher, before), []) if before else first
        for seq in range(gone[publisher] + 1, last + 1):
            if seq in held[publisher]:
                place = after.setdefault((publisher, seq), [])
            else:
                later = [other for other in held[publisher] if other > seq]
                place.append(tombstone(publisher, seq, held[publisher][min(later)] if later else stamp))
                pasts[publisher, seq] = {publisher: seq - 1} if seq > 1 else {}
    if not first and not any(after.values()):
        return events
    return first + [item for event in events for item in (event, *after.get((event.publisher, event.seq), ()))]


def _noted_before(contributions: Mapping[str, Sync]) -> Cuts:
    """What the brokers of the journals had processed before something that they admitted, as far as is known."""
    found: Cuts = {}
    for sync in contributions.values():
        for estate in sync.estates:
            for item in estate.admissions:
                merge_cuts(found, item.after)
    return found


def adopted(
    events: Iterable[Event], contributions: Mapping[str, Sync], admissions: Iterable[Sequence[Admission]]
) -> set[Id]:
    """What was admitted inside the region and is in no journal that anybody knows. A journal has to get it."""
    known = {(item.event.publisher, item.event.seq) for items in admissions for item in items}
    known |= {
        (entry.event.publisher, entry.event.seq)
        for sync in contributions.values()
        for entry in sync.log
        if entry.entered or entry.is_noted
    }
    return {(event.publisher, event.seq) for event in events} - known


def holes_in_history(
    events: Iterable[Event], adopts: set[Id], gone: Cuts, contributions: Mapping[str, Sync], window: int
) -> dict[Id, list[Event]]:
    """By event that a journal has to get: tombstones for those before it that were in the journal that is lost, or old.

    What has reached everyone is in an interval, so whoever reads it is told that nobody has it. Nobody lets out more
    than a window before all of it has reached everyone.

    The journals of those who are there are not lost. The smallest story: b1 and b3 are out, and b0 is the only member.
    Its log has p:4, out of the merged log of an earlier hand-over, and p is at b4. If p:1 to p:3 had tombstones now,
    they would stand beside the events themselves, in b4's journal.
    """
    if not _has_lost_journal(contributions) and not has_found_journal(contributions):
        return {}
    present = _present(contributions)
    reached: Cuts = {}
    for sync in contributions.values():
        merge_cuts(reached, sync.done)
    found: dict[Id, list[Event]] = {}
    for event in events:
        publisher, seq = event.publisher, event.seq
        before = max(reached.get(publisher, 0), seq - 1 - window)
        if (publisher, seq) in adopts and publisher not in present and publisher not in gone and before < seq - 1:
            found[publisher, seq] = [tombstone(publisher, other, event.stamp) for other in range(before + 1, seq)]
        reached[publisher] = max(seq, before)
    return found
