"""Putting the logs of a region's members into one causal order.

Each member brings the events it processed and nobody has proved delivered everywhere, in its own order, and for
each whether it *entered* the region there. The backups of excluded brokers bring the publications that those had
admitted. An event comes after

- the earlier ones of its publisher,
- where it entered through a member: all that stood before it in that member's log,
- where it was admitted by an excluded broker: the admissions before it, and all that this broker had processed.

Each rule only says "was there before it entered", so in real time; hence there is no cycle, whatever the logs.

There is one exception. Events that were in merged logs before keep the past that they had there. Two events that
travel towards each other enter one region in one order, and another region in the other; and an event that its client
had to send again elsewhere enters twice. Then each is in the past of the other, and neither is a cause of the other,
for a cause is first everywhere. So where events wait for one another, one of them need not.
The smallest story: p:1 and q:1 cross, and r:1 comes after both. All three wait. Only p:1 or q:1 may be let out of the
knot; if r:1 went first, it would be seen before its causes.

Of events that need not wait, the one with the smallest stamp is first. If more than f brokers are gone, so may be the
journal of an event, and with it all that it comes after; its stamp is larger than those of its causes. The smallest
story: q answers p:1 with q:1, and b3 gets q:1 only. q's broker dies with all who held its journal, and p's returns, so
that its journal has p:1. Nobody knows any more that q:1 came later.

These rules are enough. Whoever published an effect had the cause delivered by a broker that had processed it; and
nothing is forgotten before all its causes are (see `waves`), so the chain of entries is never broken.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

import msgspec

from gapless.events import Event
from gapless.protocols.gapless.messages import Admission, Cuts, LogEntry
from gapless.protocols.gapless.pieces import Pieces

__all__ = ["NextNumbers", "find_next_numbers", "find_pasts", "merge_cuts", "merge_logs", "stamp_late"]


Id = tuple[str, int]

NOTED, SORTED, COMPARED = 32, 4, 16
"""Entries that are looked at, events that are put in order, and publishers that are compared, for one unit of work."""


class _Log:
    """One ordered list; `reached` counts the events at its front that are out already."""

    def __init__(self, ids: list[Id]) -> None:
        self.ids = ids
        self.reached = 0

    def is_out_before(self, position: int, out: set[Id]) -> bool:
        while self.reached < position and self.ids[self.reached] in out:
            self.reached += 1
        return self.reached >= position


def merge_logs(logs: Sequence[Sequence[LogEntry]], estates: Iterable[Sequence[Admission]]) -> Pieces[list[Event]]:
    """All events of the logs and estates, each once, causes first; the same for the same input."""
    events: dict[Id, Event] = {}
    constraints: dict[Id, list[tuple[_Log, int]]] = {}
    after: dict[Id, list[dict[str, int]]] = {}
    for entries in logs:
        log = _Log([(entry.event.publisher, entry.event.seq) for entry in entries])
        for position, entry in enumerate(entries):
            events.setdefault(log.ids[position], entry.event)
            if entry.entered:
                constraints.setdefault(log.ids[position], []).append((log, position))
            if entry.after is not None:
                after.setdefault(log.ids[position], []).append(entry.after)
            if position % NOTED == 0:
                yield 1
    for admissions in estates:
        log = _Log([(item.event.publisher, item.event.seq) for item in admissions])
        for position, item in enumerate(admissions):
            events.setdefault(log.ids[position], item.event)
            if not item.is_inherited:
                constraints.setdefault(log.ids[position], []).append((log, position))
            after.setdefault(log.ids[position], []).append(item.after)
            if position % NOTED == 0:
                yield 1

    queues: dict[str, deque[int]] = {}
    for publisher, seq in sorted(events):
        queues.setdefault(publisher, deque()).append(seq)

    def find_blocker(name: Id) -> str | None:
        """A publisher whose next event must come first, if there is one."""
        for log, position in constraints.get(name, ()):
            if not log.is_out_before(position, out):
                return log.ids[log.reached][0]
        for known in after.get(name, ()):
            for publisher, queue in queues.items():
                if publisher != name[0] and queue[0] <= known.get(publisher, 0):
                    return publisher
        return None

    def waits_in_log(publisher: str) -> set[str]:
        """The publishers of events that stand before the next of this one in a log through which it entered."""
        found = set()
        for log, position in constraints.get((publisher, queues[publisher][0]), ()):
            if not log.is_out_before(position, out):
                found.add(log.ids[log.reached][0])
        return found

    def waits_for(publisher: str) -> set[str]:
        """The publishers whose next event must come before the next of this one."""
        name = (publisher, queues[publisher][0])
        pasts = after.get(name, ())
        earlier = {other for other, queue in queues.items() if any(queue[0] <= past.get(other, 0) for past in pasts)}
        return (waits_in_log(publisher) | earlier) - {publisher}

    def least_bound() -> str:
        """Of those that wait for one another and for nobody else: one that waits for a past, and not in a log."""
        waiting = {publisher: waits_for(publisher) for publisher in queues}
        reached = {publisher: _closure(waiting, publisher) for publisher in queues}
        return min(queues, key=lambda name: (len(reached[name]), len(waits_in_log(name)), len(waiting[name]), name))

    def put(publisher: str) -> None:
        """The next event of the publisher may be free."""
        seq = queues[publisher][0]
        heappush(heads, (events[publisher, seq].stamp, publisher, seq))

    def release(publisher: str) -> None:
        name = (publisher, queues[publisher].popleft())
        out.add(name)
        ordered.append(events[name])
        if queues[publisher]:
            put(publisher)
        else:
            del queues[publisher]
        for other in blocked.pop(publisher, ()):
            put(other)

    out: set[Id] = set()
    ordered: list[Event] = []
    heads: list[tuple[int, str, int]] = []
    blocked: dict[str, list[str]] = {}
    """By publisher: those that wait for its next event."""
    for publisher in queues:
        put(publisher)
    while queues:
        if not heads:
            publisher = least_bound()
            for waiting in blocked.values():
                if publisher in waiting:
                    waiting.remove(publisher)
            release(publisher)
            yield 1 + len(queues)
            continue
        _, publisher, seq = heappop(heads)
        blocker = find_blocker((publisher, seq))
        if blocker is not None:
            blocked.setdefault(blocker, []).append(publisher)
            yield len(queues) // COMPARED
            continue
        release(publisher)
        if len(ordered) % SORTED == 0:
            yield 1 + len(queues) // COMPARED
    return ordered


def stamp_late(events: list[Event], known: Cuts, final: int, latest: int) -> list[Event]:
    """The merged log, with new stamps for what is older than a final position, and was not known when that was found.

    The smallest story: b2 and b4 are cut off, and b4 admits p:1, which b2 backs up, and nobody confirms. The others go
    on without both, and c reads history beyond the stamp of p:1. b2 and b4 come back with p:1. Whoever has read so far
    would not take it, and whoever reads later would not find it. What follows it may be its effect, and gets one, too.
    """
    last = stamp = max([latest, *(event.stamp for event in events)])
    found = []
    for event in events:
        if event.seq > known.get(event.publisher, 0) and (event.stamp <= final or stamp > last):
            stamp += 1
            event = msgspec.structs.replace(event, stamp=stamp)
        found.append(event)
    return found


def _closure(waiting: dict[str, set[str]], start: str) -> set[str]:
    """All that this one waits for, or that those wait for."""
    found = {start}
    stack = [start]
    while stack:
        fresh = waiting[stack.pop()] - found
        found |= fresh
        stack += fresh
    return found


def find_pasts(
    ordered: Sequence[Event], logs: Sequence[Sequence[LogEntry]], estates: Iterable[Sequence[Admission]]
) -> Pieces[dict[Id, Cuts]]:
    """For each event of the merged log: how far its past reaches with each publisher, itself included.

    The past is that of the brokers, whatever was there before the event entered; it contains that of the clients.
    It is kept with the event in the log. The smallest story: two events stand side by side in a merged log, where they
    had to stand in some order. If a later hand-over took that order for the order of processing, it would put an effect
    before its cause.
    """
    entries: dict[Id, list[tuple[int, int]]] = {}
    after: dict[Id, list[Cuts]] = {}
    ids: list[list[Id]] = []
    for number, log in enumerate(logs):
        ids.append([(entry.event.publisher, entry.event.seq) for entry in log])
        for position, entry in enumerate(log):
            if entry.entered:
                entries.setdefault(ids[number][position], []).append((number, position))
            if entry.after is not None:
                after.setdefault(ids[number][position], []).append(entry.after)
            if position % NOTED == 0:
                yield 1
    for admissions in estates:
        ids.append([(item.event.publisher, item.event.seq) for item in admissions])
        for position, item in enumerate(admissions):
            if not item.is_inherited:
                entries.setdefault(ids[-1][position], []).append((len(ids) - 1, position))
            after.setdefault(ids[-1][position], []).append(item.after)
            if position % NOTED == 0:
                yield 1
    prefixes: list[Cuts] = [{} for _ in ids]
    reached = [0] * len(ids)
    seen: dict[str, list[int]] = {}
    pasts: dict[Id, Cuts] = {}
    for event in ordered:
        name = (event.publisher, event.seq)
        past: Cuts = {}
        own = seen.setdefault(event.publisher, [])
        if own:
            past.update(pasts[event.publisher, own[-1]])
        for number, position in entries.get(name, ()):
            while reached[number] < position:
                merge_cuts(prefixes[number], pasts.get(ids[number][reached[number]], {}))
                reached[number] += 1
            merge_cuts(past, prefixes[number])
        for known in after.get(name, ()):
            for publisher, last in known.items():
                earlier = seen.get(publisher)
                if earlier is None or past.get(publisher, 0) >= last:
                    continue
                place = bisect_right(earlier, last)
                if place and past.get(publisher, 0) < earlier[place - 1]:  # else all that comes before it is in, too
                    merge_cuts(past, pasts[publisher, earlier[place - 1]])
        past[event.publisher] = event.seq
        pasts[name] = past
        own.append(event.seq)
        if len(pasts) % SORTED == 0:
            yield 1 + len(past) // COMPARED
    return pasts


def merge_cuts(into: Cuts, cuts: Cuts) -> None:
    """Raise each entry to the larger of both."""
    for publisher, cut in cuts.items():
        if cut > into.get(publisher, 0):
            into[publisher] = cut


class NextNumbers(msgspec.Struct, frozen=True):
    """From which number on a publisher's events are still to come, if an advertisement says so and may be old.

    After more than f have failed, it may have been found on an old disk. The smallest story: p publishes 1 and takes
    its advertisement back, and c subscribes. p's broker comes back with a disk that knows neither. c is not to wait for
    1, which came by before.
    """

    merged: dict[str, list[tuple[int, int]]]
    """By publisher: what is in the merged log, each with its stamp."""
    processed: Cuts
    """By publisher: the last that any member has processed."""

    def of(self, publisher: str, first: int, began: int | None = None) -> int:
        """The first from that one on that is in the merged log; or else that nobody has processed.

        What has no larger stamp than a subscription `began` with came by before, too. Another story: c, which
        subscribed when p had taken its advertisement back, has got an answer to p:1. p:1 is still in a log.
        """
        known = [(seq, stamp) for seq, stamp in self.merged.get(publisher, ()) if seq >= first]
        before = max((seq for seq, stamp in known if began is not None and stamp <= began), default=0)
        later = [seq for seq, _ in known if seq > before]
        return min(later, default=max(first, before + 1, self.processed.get(publisher, 0) + 1))


def find_next_numbers(events: Iterable[Event], processed: Cuts) -> NextNumbers:
    """Of the merged log, and of what any member has processed."""
    merged: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        merged.setdefault(event.publisher, []).append((event.seq, event.stamp))
    return NextNumbers(merged, processed)
