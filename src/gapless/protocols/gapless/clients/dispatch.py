"""Where events go: over which links, and to which clients for which of their subscriptions.

Events come in batches, and the events of a batch mostly match the same subscriptions: what follows from a set of
matching subscriptions is found once for all of them. An event is due to a subscription from its cut on; since the
numbers of a publisher grow, one that was due makes all later ones of its publisher due.
"""

from collections.abc import Mapping

from gapless.events import Event
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.routing.records import Link, Subscription
from gapless.protocols.gapless.routing.routing_table import RoutingTable

__all__ = ["Dispatched", "dispatch"]


class Dispatched:
    """A batch, sorted out."""

    def __init__(self) -> None:
        self.onward: dict[Link, list[Event]] = {}
        self.local: dict[str, list[tuple[Event, list[str]]]] = {}
        """By client: each event with the names of the subscriptions that it is for."""


class _Share:
    """What one client gets of the events that match the same subscriptions."""

    def __init__(self, session: Session, pile: list[tuple[Event, list[str]]]) -> None:
        self.session = session
        self.pile = pile
        self.subscriptions: list[Subscription] = []
        self.names: list[str] = []
        self.sure: dict[str, None] = {}
        """Publishers whose events are due to all of these subscriptions from here on."""

    def take(self, event: Event) -> None:
        """Put the event on the client's pile, for those subscriptions to which it is due."""
        if event.publisher in self.sure:
            self.pile.append((event, self.names))
            return
        wants = self.session.wants
        names = [subscription.name for subscription in self.subscriptions if wants(subscription, event)]
        if len(names) == len(self.names):
            self.sure[event.publisher] = None
        if names:
            self.pile.append((event, names))


def dispatch(
    events: list[Event], table: RoutingTable, sessions: Mapping[str, Session], origin: Link | None
) -> Dispatched:
    """Where each of the events goes, except back to where they came from."""
    result = Dispatched()
    plans: dict[tuple[str, ...], tuple[list[list[Event]], list[_Share]]] = {}
    for event, names in zip(events, table.match_many(events), strict=True):
        key = tuple(names)
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _plan(key, table, sessions, origin, result)
        for passing in plan[0]:
            passing.append(event)
        for share in plan[1]:
            share.take(event)
    return result


def _plan(
    names: tuple[str, ...],
    table: RoutingTable,
    sessions: Mapping[str, Session],
    origin: Link | None,
    result: Dispatched,
) -> tuple[list[list[Event]], list[_Share]]:
    links: dict[Link, list[Event]] = {}
    shares: dict[str, _Share] = {}
    for name in names:
        subscription = table.subscriptions[name]
        target, client = subscription.origin, subscription.client
        if target is not None:
            if target is not origin:
                links[target] = result.onward.setdefault(target, [])
        elif client in sessions:
            if client not in shares:
                shares[client] = _Share(sessions[client], result.local.setdefault(client, []))
            shares[client].subscriptions.append(subscription)
            shares[client].names.append(name)
    return list(links.values()), list(shares.values())
