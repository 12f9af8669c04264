"""The path of events through a broker: each is processed once, logged, forwarded and delivered.

On a tree with FIFO links that keeps effects behind their causes. The numbers of a publisher only grow, so an event that
is not above the last processed number is a duplicate, or not needed.
"""

from bisect import bisect_right
from collections.abc import Iterator

from gapless.events import EventRun, Events
from gapless.protocols.gapless.client_state import LocalState, Reading
from gapless.protocols.gapless.identities import Name
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.link_messages import Publication
from gapless.protocols.gapless.outbox import deliver
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import is_tombstone, may_have_matched
from gapless.protocols.parts.alike import stretches

__all__ = ["process"]


def process(s: BrokerState, events: Events, origin: Link | None, cost: int = 0) -> None:
    """Process events of one publisher that arrive from one side of the broker. Their cost is computed unless it is
    given."""
    publisher = _publisher_of(events)
    seen = s.seen.get(publisher, 0)
    if events[-1].seq <= seen:
        return
    if events[0].seq <= seen:
        events, cost = events[bisect_right(events, seen, key=lambda event: event.seq) :], 0
    last = events[-1].seq
    s.seen[publisher] = last
    s.clock.see(events[0].stamp)
    s.log[publisher, last] = events
    if is_tombstone(publisher):
        _spread(s, events, origin)
        return
    for names, part in _parts(s, events):
        _dispatch(s, names, part, origin, cost if part is events else 0)


def _spread(s: BrokerState, events: Events, origin: Link | None) -> None:
    """Forward a tombstone everywhere, because its receivers need not know an advertisement of its publisher now."""
    for link in s.links.values():
        if link is not origin:
            s.send_along(link, Publication(events))
    own = [local.name for local in s.locals.values() if may_have_matched(events, local.filter)]
    if own:
        _deliver(s, own, events, cost_of(events))


def _publisher_of(events: Events) -> str:
    return events.publisher if isinstance(events, EventRun) else events[0].publisher


def _parts(s: BrokerState, events: Events) -> Iterator[tuple[list[Name], Events]]:
    """Yield the events in stretches that match the same subscriptions."""
    alike = stretches(events)
    matches = s.index.match_many([attributes for attributes, _ in alike])
    begin = 0
    for place, (_, end) in enumerate(alike):
        if place + 1 < len(alike) and matches[place + 1] == matches[place]:
            continue
        yield matches[place], events if (begin, end) == (0, len(events)) else events[begin:end]
        begin = end


def _dispatch(s: BrokerState, names: list[Name], events: Events, origin: Link | None, cost: int) -> None:
    links: dict[Link, None] = {}
    own: list[Name] = []
    for name in names:
        target = s.subscriptions[name].origin
        if target is None:
            own.append(name)
        elif target is not origin:
            links[target] = None
    for link in links:
        if link.key in s.links:
            s.send_along(link, Publication(events))
    if own:
        _deliver(s, own, events, cost or cost_of(events))


def _deliver(s: BrokerState, names: list[Name], events: Events, cost: int) -> None:
    """Deliver events to the local live subscriptions, and keep them for the others."""
    live: dict[str, list[str]] = {}
    reading: dict[int, tuple[Reading, list[str]]] = {}
    for name in names:
        local = s.locals[name]
        if local.state is LocalState.LIVE:
            live.setdefault(name.client, []).append(name.local)
        elif local.reading is not None:
            reading.setdefault(local.reading.number, (local.reading, []))[1].append(name.local)
        elif local.kept is not None:
            local.kept.add(events, [name.local], cost)
    for client, subscriptions in live.items():
        deliver(s, s.sessions[client], events, subscriptions, cost, is_live=True)
    for each, subscriptions in reading.values():
        if each.kept is not None:
            each.kept.add(events, subscriptions, cost)
