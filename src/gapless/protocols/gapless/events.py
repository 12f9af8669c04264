"""The path of events through a broker: each event is processed once, logged, forwarded and delivered.

On a tree with FIFO links this order keeps effects behind their causes. A publisher's numbers only grow, so an event
whose number is not above the last processed one is a duplicate, or is no longer needed.
"""

from gapless.event_runs import EventRun
from gapless.protocols.gapless.client_state import LocalState, Reading
from gapless.protocols.gapless.dividing import Division
from gapless.protocols.gapless.identities import Name
from gapless.protocols.gapless.journal_state import cost_of
from gapless.protocols.gapless.link_messages import Publication
from gapless.protocols.gapless.outbox import deliver
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.tombstones import is_tombstone, may_have_matched

__all__ = ["process"]


def process(s: BrokerState, events: EventRun, origin: Link | None, cost: int = 0) -> None:
    """Process one publisher's events, which arrived from `origin`. Their cost is computed unless it is given."""
    publisher = events.publisher
    fresh = events.after(s.seen.get(publisher, 0))
    if fresh is None:
        return
    if fresh is not events:
        events, cost = fresh, 0
    last = events.last
    s.seen[publisher] = last
    s.clock.see(events.stamp)
    s.log[publisher, last] = events
    if is_tombstone(publisher):
        _spread(s, events, origin)
        return
    _dispatch(s, events, origin, cost)


def _spread(s: BrokerState, events: EventRun, origin: Link | None) -> None:
    """Forward a tombstone over all links, because receivers may not know any advertisement of its publisher."""
    for link in s.links.values():
        if link is not origin:
            s.send_along(link, Publication(events))
    own = [local.name for local in s.locals.values() if may_have_matched(events, local.filter)]
    if own:
        _deliver(s, own, events, cost_of(events))


def _dispatch(s: BrokerState, events: EventRun, origin: Link | None, cost: int) -> None:
    """Forward events over links, and deliver them to local subscriptions, where they match."""
    division = Division(events, s.index.names)
    clients: dict[str, dict[int, list[Name]]] = {}
    links: dict[Link, list[int]] = {}
    for row, names in enumerate(s.index.match_many(division.rows)):
        for name in names:
            target = s.subscriptions[name].origin
            if target is None:
                clients.setdefault(name.client, {}).setdefault(row, []).append(name)
            elif target is not origin:
                wanted = links.setdefault(target, [])
                if not wanted or wanted[-1] != row:
                    wanted.append(row)
    for link, wanted in links.items():
        if link.key in s.links:
            s.send_along(link, Publication(division.chosen(wanted)))
    for by_row in clients.values():
        for found, part in division.divided(by_row):
            _deliver(s, found, part, cost if part is events and cost else cost_of(part))


def _deliver(s: BrokerState, names: list[Name], events: EventRun, cost: int) -> None:
    """Deliver events to live local subscriptions, and keep them for those that are not live yet."""
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
