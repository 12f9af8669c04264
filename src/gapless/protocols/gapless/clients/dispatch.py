"""Where a run goes: over which links, and to which clients for which of their subscriptions.

A run is split only where filters tell its events apart; whoever gets all of it gets the run itself. Events are due to
a subscription from its cut on. As the numbers in a run grow, that is all from some place of the run on.

Tombstones go over every link: whoever should have got the event, its subscription may not be known here any more. The
smallest story: b3 and b1 die with p:1, and return without memory. c, behind b1, has a subscription that starts with
p:1. It is not told to b3, for nobody advertises anything there. If the tombstone of p:1 stayed at b3, c would get p:2
when p is back, and hear nothing of p:1.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import TypeAlias

from gapless.events import EventRun, Events
from gapless.protocols.gapless.clients.outbox import Outgoing
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tombstones import is_lost
from gapless.protocols.parts.alike import Stretch, stretches

__all__ = ["Dispatched", "dispatch"]

PART_MIN = 8
"""A run whose parts have fewer events is taken apart for good: to cut it each time would take longer."""
Plan: TypeAlias = tuple[list[Link], dict[str, list[Subscription]]]
"""The links that lead to whoever matches, and the subscriptions that do here, by client."""


class Dispatched:
    """A run, sorted out."""

    def __init__(self) -> None:
        self.onward: dict[Link, Events] = {}
        self.local: dict[str, list[Outgoing]] = {}
        """By client: parts of the run, with the names of the subscriptions that they are for."""
        self.has_lost = False
        """Whether there are tombstones in it."""


def dispatch(events: Events, table: RoutingTable, sessions: Mapping[str, Session], origin: Link | None) -> Dispatched:
    """Where the events of a run, which are of one publisher, go, except back to where they came from."""
    result = Dispatched()
    alike = stretches(events)
    if len(alike) == 1:
        result.has_lost = is_lost(alike[0][0])
        links, local = _plan(table.match_names(alike[0][0]), table, sessions, origin, result.has_lost)
        result.onward = dict.fromkeys(links, events)
        for client, subscriptions in local.items():
            result.local[client] = _due(events, subscriptions, sessions[client])
        return result
    onward: dict[Link, list[Events]] = {}
    plans: dict[tuple[tuple[str, ...], bool], Plan] = {}
    for names, part in _parts(events, alike, table):
        key = names, is_lost(part[0].attributes)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _plan(names, table, sessions, origin, key[1])
            result.has_lost |= key[1]
        for link in plan[0]:
            onward.setdefault(link, []).append(part)
        for client, subscriptions in plan[1].items():
            result.local.setdefault(client, []).extend(_due(part, subscriptions, sessions[client]))
    for link, parts in onward.items():
        result.onward[link] = parts[0] if len(parts) == 1 else [*chain.from_iterable(parts)]
    return result


def _parts(events: Events, alike: list[Stretch], table: RoutingTable) -> list[tuple[tuple[str, ...], Events]]:
    """The run in parts, each with the names of the subscriptions that all of it matches; tombstones for themselves."""
    matches = [tuple(names) for names in table.match_many([attributes for attributes, _ in alike])]
    bounds: list[tuple[tuple[str, ...], bool, int]] = []
    for names, (attributes, end) in zip(matches, alike, strict=True):
        are_lost = is_lost(attributes)
        if bounds and bounds[-1][:2] == (names, are_lost):
            bounds.pop()
        bounds.append((names, are_lost, end))
    if len(bounds) == 1:
        return [(bounds[0][0], events)]
    if isinstance(events, EventRun) and len(events) < PART_MIN * len(bounds):
        events = [*events]
    begins = chain((0,), (end for _, _, end in bounds))
    return [(names, events[begin:end]) for (names, _, end), begin in zip(bounds, begins, strict=False)]


def _plan(
    names: Sequence[str], table: RoutingTable, sessions: Mapping[str, Session], origin: Link | None, are_lost: bool
) -> Plan:
    links = dict.fromkeys(link for link in table.links.values() if link is not origin) if are_lost else {}
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


def _due(events: Events, subscriptions: list[Subscription], session: Session) -> list[Outgoing]:
    """What one client gets of events that match these subscriptions."""
    begin = events[0]
    publisher, first = begin.publisher, begin.seq
    if is_lost(begin.attributes):
        return _due_with_tombstones(events, subscriptions, session)
    starts = [session.due_from(subscription, publisher) for subscription in subscriptions]
    if starts[0] <= first and (len(starts) == 1 or max(starts) <= first):
        return [Outgoing(events, [subscription.name for subscription in subscriptions])]
    places = [bisect_left(events, start, key=lambda event: event.seq) for start in starts]
    bounds = [*sorted({*places} - {len(events)}), len(events)]
    both = [*zip(subscriptions, places, strict=True)]
    return [
        Outgoing(events[start:end], [subscription.name for subscription, place in both if place <= start])
        for start, end in pairwise(bounds)
    ]


def _due_with_tombstones(events: Events, subscriptions: list[Subscription], session: Session) -> list[Outgoing]:
    """Whether a tombstone concerns a subscription its client knows; so each is due to all."""
    publisher = events[0].publisher
    found = []
    for event in events:
        is_due_to_all = is_lost(event.attributes)
        names = [item.name for item in subscriptions if is_due_to_all or session.due_from(item, publisher) <= event.seq]
        if names:
            found.append(Outgoing([event], names))
    return found
