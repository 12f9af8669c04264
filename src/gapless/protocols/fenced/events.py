"""The path of events through a broker: each is processed once, logged, sent onward and delivered.

On a tree with FIFO links that keeps effects behind their causes. Numbers of a publisher only grow, so what is not
above the last number that was seen has been here, or does not have to come.
"""

from bisect import bisect_right
from collections.abc import Iterator

from gapless.events import EventRun, Events
from gapless.protocols.fenced.messages import Name, Publication
from gapless.protocols.fenced.outbox import deliver
from gapless.protocols.fenced.state import BrokerState, Link, LocalState, LocalSubscription
from gapless.protocols.gapless.alike import stretches

__all__ = ["forward_to", "process"]


def process(s: BrokerState, events: Events, origin: Link | None) -> None:
    """Events of one publisher come from a side of the broker."""
    publisher = events.publisher if isinstance(events, EventRun) else events[0].publisher
    seen = s.seen.get(publisher, 0)
    if events[-1].seq <= seen:
        return
    if events[0].seq <= seen:
        events = events[bisect_right(events, seen, key=lambda event: event.seq) :]
    last = events[-1].seq
    s.seen[publisher] = last
    s.clock.see(events[0].stamp)
    s.log[publisher, last] = events
    for names, part in _parts(s, events):
        _dispatch(s, names, part, origin)


def _parts(s: BrokerState, events: Events) -> Iterator[tuple[list[Name], Events]]:
    """The events in stretches that match the same subscriptions."""
    alike = stretches(events)
    matches = s.index.match_many([attributes for attributes, _ in alike])
    begin = 0
    for place, (_, end) in enumerate(alike):
        if place + 1 < len(alike) and matches[place + 1] == matches[place]:
            continue
        yield matches[place], events if (begin, end) == (0, len(events)) else events[begin:end]
        begin = end


def _dispatch(s: BrokerState, names: list[Name], events: Events, origin: Link | None) -> None:
    links: dict[Link, None] = {}
    local: dict[str, list[str]] = {}
    for name in names:
        target = s.subscriptions[name].origin
        if target is None:
            forward_to(s.locals[name], events, local)
        elif target is not origin:
            links[target] = None
    for link in links:
        if link.key in s.links:
            s.send_along(link, Publication(events))
    for client, subscriptions in local.items():
        deliver(s, s.sessions[client], events, subscriptions)


def forward_to(local: LocalSubscription, events: Events, found: dict[str, list[str]]) -> None:
    """Note the events for a local subscription: for its client, if it is live."""
    if local.state is LocalState.LIVE:
        found.setdefault(local.name.client, []).append(local.name.local)
    else:
        local.buffer.append(events)
