"""The subscription routing table: the subscriptions, and the gate behind which each is.

A subscription is *known* from the moment it arrives, and used for forwarding from then on; it is *confirmed* when all
brokers beyond have confirmed it. Ended subscriptions are remembered for a while, so that no broker restores them.
"""

from collections.abc import Iterator

from gapless.events import Attributes
from gapless.filters import Filter, FilterIndex, parse
from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.delta.messages import NO_TAGS, AddSubscription, Cuts, Tags
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood

__all__ = ["Route", "Subscription", "SubscriptionTable"]

REMOVED_MAX = 10_000
"""How many ended subscriptions are remembered. If one is forgotten, and restored by a broker that was away all the
time, it is sent to its source, which ends it again.
"""

HERE = ""
"""The gate and the direction of clients attached here."""


class Subscription:
    """A subscription known here."""

    __slots__ = (
        "bypassed", "confirmed", "cuts", "direction", "filter", "gate", "is_confirmed", "name", "path", "senders",
        "source", "tags",
    )  # fmt: skip

    def __init__(self, message: AddSubscription, gate: str) -> None:
        self.name = message.name
        self.filter: Filter = parse(message.filter)
        self.source = message.source
        self.path = message.path
        """The last brokers on the tree path from the source to this broker."""
        self.bypassed = message.bypassed
        self.direction = message.path[-1] if message.path else HERE
        self.gate = gate
        self.is_confirmed = False
        self.senders: dict[str, None] = {}
        """The peers to notify when it is confirmed."""
        self.confirmed: dict[str, tuple[Tags, dict[str, Cuts]]] = {}
        """The peers beyond that have confirmed it, with their confirmations."""
        self.tags: Tags = NO_TAGS
        self.cuts: dict[str, Cuts] = {}
        """The starting cuts that publishers here assign to it, while it is not confirmed."""


class Route:
    """Subscriptions with one filter: the gates behind which they are, and those of clients here."""

    __slots__ = ("filter", "gates", "own", "plans")

    def __init__(self, pattern: Filter) -> None:
        self.filter = pattern
        self.gates: dict[str, int] = {}
        self.own: dict[str, None] = {}
        self.plans: dict[str, dict[str, tuple[str, ...]]] = {}
        """For each direction that an event can come from: the next hops, with the gates they serve."""


class SubscriptionTable:
    """All subscriptions known to one broker, in the order in which they became known."""

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self._neighbourhood = neighbourhood
        self._subscriptions: dict[str, Subscription] = {}
        self._routes: dict[str, Route] = {}
        self._index: FilterIndex[str] = FilterIndex()
        self.pending: dict[str, Subscription] = {}
        """The subscriptions that are not confirmed yet."""
        self.gates: dict[str, int] = {}
        """The number of subscriptions behind each gate."""
        self._removed: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._subscriptions.values())

    def get(self, name: str) -> Subscription | None:
        """Return the subscription of that name, if it is known."""
        return self._subscriptions.get(name)

    def enter(self, message: AddSubscription) -> Subscription:
        """Add a subscription."""
        gate = self._neighbourhood.gate(message.path) if message.path else HERE
        subscription = Subscription(message, gate)
        self._subscriptions[subscription.name] = self.pending[subscription.name] = subscription
        text = subscription.filter.text
        route = self._routes.get(text)
        if route is None:
            route = self._routes[text] = Route(subscription.filter)
            self._index.add(text, subscription.filter)
        if gate == HERE:
            route.own[subscription.name] = None
            return subscription
        if gate not in route.gates:
            route.plans.clear()
        route.gates[gate] = route.gates.get(gate, 0) + 1
        self.gates[gate] = self.gates.get(gate, 0) + 1
        return subscription

    def remove(self, name: str) -> Subscription | None:
        """End the subscription; return it if it was known."""
        self._removed[name] = None
        forget_oldest(self._removed, REMOVED_MAX)
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:
            self.pending.pop(name, None)
            self._unroute(subscription)
        return subscription

    def is_removed(self, name: str) -> bool:
        """Return whether the subscription is known to have ended."""
        return name in self._removed

    def summary(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the names of the confirmed subscriptions, and of the others."""
        confirmed = tuple([sub.name for sub in self._subscriptions.values() if sub.is_confirmed])
        return confirmed, tuple(self.pending)

    def match(self, attributes: Attributes) -> list[Route]:
        """Return the routes that the event matches."""
        routes = self._routes
        return [routes[text] for text in self._index.match(attributes)]

    def plan(self, routes: list[Route], direction: str) -> dict[str, tuple[str, ...]]:
        """Return the next hops of events from this direction (the empty name: none reachable), with the gates each
        serves.
        """
        if len(routes) == 1:
            return dict(self._plan_of(routes[0], direction))
        plan: dict[str, dict[str, None]] = {}
        for route in routes:
            for hop, gates in self._plan_of(route, direction).items():
                plan.setdefault(hop, {}).update(dict.fromkeys(gates))
        return {hop: tuple(gates) for hop, gates in plan.items()}

    def forget_plans(self) -> None:
        """Discard the plans, because the active sessions have changed."""
        for route in self._routes.values():
            route.plans.clear()

    def behind(self, gate: str) -> list[Subscription]:
        """Return the subscriptions behind a gate."""
        return [subscription for subscription in self._subscriptions.values() if subscription.gate == gate]

    def _plan_of(self, route: Route, direction: str) -> dict[str, tuple[str, ...]]:
        plan = route.plans.get(direction)
        if plan is None:
            hops: dict[str, list[str]] = {}
            for gate in route.gates:
                if self._neighbourhood.direction(gate) != direction:
                    hops.setdefault(self._neighbourhood.hop(gate), []).append(gate)
            plan = route.plans[direction] = {hop: tuple(gates) for hop, gates in hops.items()}
        return plan

    def _unroute(self, subscription: Subscription) -> None:
        text, gate = subscription.filter.text, subscription.gate
        route = self._routes[text]
        if gate == HERE:
            del route.own[subscription.name]
        else:
            _take_one(self.gates, gate)
            if _take_one(route.gates, gate):
                route.plans.clear()
        if not route.gates and not route.own:
            del self._routes[text]
            self._index.remove(text)


def _take_one(counts: dict[str, int], gate: str) -> bool:
    """Decrement a count; return whether it reached zero."""
    counts[gate] -= 1
    if counts[gate]:
        return False
    del counts[gate]
    return True
