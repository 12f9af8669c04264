"""Which events of publishers that were lost with their brokers nobody in a region holds any more.

Where up to f fail, a backup brings the journal of each that is out: then nothing is lost. Where more do, a publisher
may be gone with its broker and all who held that one's journal. Its advertisements came from inside the region, and no
member knows of a session. Of what it said,

- everything up to a number has reached everyone, as some member knows (`Sync.inside`),
- what left the dead brokers is in the log of a member, through which it went; or it has reached everyone,
- so what lies between that number and the last that passed any member, and is in no log, is lost; or it went to nobody
  who is left, which nobody can tell.

For each of these there is a tombstone, right after the event before it: every effect of what is lost comes after that
event, too, so nobody sees an effect before it is told that the cause is lost. What the publisher said after the last
that passed any member is known when it comes back (`clients.desk`).

No journal has what was admitted by a broker whose journal is lost, and so no history would. Hence one member notes
in its own what is left of it, with the tombstones. These have the stamp of the next event that is held, so that history
has them in order, too.
"""

from collections.abc import Iterable, Mapping, Sequence

from gapless.events import Event
from gapless.protocols.gapless.lives import broker_of
from gapless.protocols.gapless.messages import Admission, Cuts, Sync
from gapless.protocols.gapless.tombstones import tombstone

__all__ = ["adopted", "fill_holes", "gone_publishers"]

Id = tuple[str, int]
NEVER = 1 << 62


def gone_publishers(contributions: Mapping[str, Sync], inherited: Mapping[str, int]) -> Cuts:
    """Those whose sessions were lost in the region, with the number up to which everything has reached everyone.

    And those that are `inherited` in a state that is older than what is known to have passed: they were found on an old
    disk, and what they had admitted up to a number is in that journal, or has reached everyone.
    """
    if not _has_lost_journal(contributions):
        return {}
    known = set(inherited)
    for sync in contributions.values():
        known |= sync.owned.keys() | sync.homes.keys()
        known |= {item.publisher for item in sync.advertisements}
    found: Cuts = {}
    for sync in contributions.values():
        for publisher, reached in sync.inside.items():
            if publisher not in known:
                found[publisher] = max(reached, found.get(publisher, 0))
            elif inherited.get(publisher, NEVER) < sync.passed.get(publisher, 0):
                found[publisher] = max(reached, inherited[publisher], found.get(publisher, 0))
    return found


def _has_lost_journal(contributions: Mapping[str, Sync]) -> bool:
    """Whether nobody has the journal of some broker of the region, nor knows its heir, nor has it its memory.

    If there is none, who is not known any more has left in good order. The smallest story: p takes its advertisement
    back, and the broker that should tell that dies. Beyond it p is still known, and nothing of p is lost.
    """
    held = {estate.broker for sync in contributions.values() for estate in sync.estates}
    held |= {broker_of(life) for sync in contributions.values() for life in sync.heirs}
    held |= {member for member, sync in contributions.items() if sync.passed or sync.log}
    return any(name not in held for sync in contributions.values() for name in sync.core)


def fill_holes(
    events: list[Event], pasts: dict[Id, Cuts], gone: Cuts, contributions: Mapping[str, Sync]
) -> list[Event]:
    """The events of the merged log, with tombstones for those of gone publishers that nobody holds."""
    held: dict[str, dict[int, int]] = {publisher: {} for publisher in gone}
    for event in events:
        if event.publisher in held:
            held[event.publisher][event.seq] = event.stamp
    latest = max((event.stamp for event in events), default=0)
    stamp = 1 + max(latest, *(sync.wave for sync in contributions.values()))
    after: dict[Id, list[Event]] = {}
    first: list[Event] = []
    for publisher in sorted(gone):
        last = max(sync.passed.get(publisher, 0) for sync in contributions.values())
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


def adopted(
    events: Iterable[Event], contributions: Mapping[str, Sync], admissions: Iterable[Sequence[Admission]]
) -> set[Id]:
    """What was admitted inside the region and is in no journal that anybody knows; it has to be in one."""
    known = {(item.event.publisher, item.event.seq) for items in admissions for item in items}
    known |= {
        (entry.event.publisher, entry.event.seq)
        for sync in contributions.values()
        for entry in sync.log
        if entry.entered or entry.is_noted
    }
    return {(event.publisher, event.seq) for event in events} - known
