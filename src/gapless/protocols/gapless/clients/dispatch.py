"""Where a run goes: over which links, and to which clients for which of their subscriptions.

A run is split only where filters tell its events apart; whoever gets all of it gets the run itself. Events are due to
a subscription from its cut on. As the numbers in a run grow, that is all from some place of the run on.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

from gapless.events import Event
from gapless.protocols.gapless.alike import Stretch, stretches
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tombstones import is_lost

__all__ = ["Dispatched", "dispatch"]

Plan: TypeAlias = tuple[list[Link], dict[str, list[Subscription]]]
"""The links that lead to whoever matches, and the subscriptions that do here, by client."""


class Dispatched:
    """A run, sorted out."""

    def __init__(self) -> None:
        self.onward: dict[Link, list[Event]] = {}
        self.local: dict[str, list[Outgoing]] = {}
        """By client: parts of the run, with the names of the subscriptions that they are for."""


def dispatch(
    events: list[Event], table: RoutingTable, sessions: Mapping[str, Session], origin: Link | None
) -> Dispatched:
    """Where the events of a run, which are of one publisher, go, except back to where they came from."""
    result = Dispatched()
    alike = stretches(events)
    if len(alike) == 1:
        links, local = _plan(table.match_names(alike[0][0]), table, sessions, origin)
        result.onward = dict.fromkeys(links, events)
        for client, subscriptions in local.items():
            result.local[client] = _due(events, subscriptions, sessions[client])
        return result
    onward: dict[Link, list[list[Event]]] = {}
    plans: dict[tuple[str, ...], Plan] = {}
    for names, part in _parts(events, alike, table):
        plan = plans.get(names)
        if plan is None:
            plan = plans[names] = _plan(names, table, sessions, origin)
        for link in plan[0]:
            onward.setdefault(link, []).append(part)
        for client, subscriptions in plan[1].items():
            result.local.setdefault(client, []).extend(_due(part, subscriptions, sessions[client]))
    for link, parts in onward.items():
        result.onward[link] = parts[0] if len(parts) == 1 else [*chain.from_iterable(parts)]
    return result


def _parts(events: list[Event], alike: list[Stretch], table: RoutingTable) -> list[tuple[tuple[str, ...], list[Event]]]:
    """The run in parts, each with the names of the subscriptions that all of it matches."""
    matches = [tuple(names) for names in table.match_many([attributes for attributes, _ in alike])]
    found: list[tuple[tuple[str, ...], list[Event]]] = []
    begin = 0
    for place, (_, end) in enumerate(alike):
        if end == len(events) or matches[place + 1] != matches[place]:
            found.append((matches[place], events if end - begin == len(events) else events[begin:end]))
            begin = end
    return found


def _plan(names: Sequence[str], table: RoutingTable, sessions: Mapping[str, Session], origin: Link | None) -> Plan:
    links: dict[Link, None] = {}
    local: dict[str, list[Subscription]] = {}
    for name in names:
        subscription = table.subscriptions[name]
        target = subscription.origin
        if target is not None:
            if target is not origin:
                links[target] = None
        elif subscription.client in sessions:
            local.setdefault(subscription.client, []).append(subscription)
    return list(links), local


def _due(events: list[Event], subscriptions: list[Subscription], session: Session) -> list[Outgoing]:
    """What one client gets of events that match these subscriptions."""
    publisher, first = events[0].publisher, events[0].seq
    if any(is_lost(event.attributes) for event in (events[0], events[-1])):
        return _due_with_tombstones(events, subscriptions, session)
    starts = [session.due_from(subscription, publisher) for subscription in subscriptions]
    if starts[0] <= first and (len(starts) == 1 or max(starts) <= first):
        return [Outgoing(events, [subscription.name for subscription in subscriptions])]
    places = [bisect_left(events, start, key=lambda event: event.seq) for start in starts]
    bounds = [*sorted({*places} - {len(events)}), len(events)]
    both = [*zip(subscriptions, places, strict=True)]
    return [
        Outgoing(events[begin:end], [subscription.name for subscription, place in both if place <= begin])
        for begin, end in pairwise(bounds)
    ]


def _due_with_tombstones(events: list[Event], subscriptions: list[Subscription], session: Session) -> list[Outgoing]:
    """Whether a tombstone concerns a subscription its client knows; so each is due to all."""
    publisher = events[0].publisher
    found = []
    for event in events:
        is_due_to_all = is_lost(event.attributes)
        names = [item.name for item in subscriptions if is_due_to_all or session.due_from(item, publisher) <= event.seq]
        if names:
            found.append(Outgoing([event], names))
    return found
