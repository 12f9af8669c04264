"""The clients attached to a broker: leaves of the tree, whose connections break as links do.

A client keeps each publication until it has reached every subscriber. The broker confirms publications in order, so
that the client never keeps an event after it has forgotten a later one. A broker confirms an event that one of its
clients wants only when that client has received it. So nothing is lost when a broker loses its memory: its neighbours
send all unconfirmed events again, and its clients attach again with their unconfirmed publications and the position of
each subscription.

**A subscription that has started** continues at its position if the neighbours still know it, because they have kept
its events. If no neighbour knows it, it was given up and has ended, and the client is notified. **One that has not
started** is requested again under a new name, because events for the old name are not kept.

**A client that does not return** within `patience_ms` is forgotten, and its subscriptions end.

An event that arrives while a subscription is not confirmed yet precedes its start.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from gapless.events import Event
from gapless_papers.protocols.delta.messages import (
    Accepted,
    Acknowledge,
    Attach,
    ClientPublish,
    ClientSubscribe,
    Cuts,
    Delivery,
    Lost,
    Started,
)
from gapless_papers.protocols.delta.subscriptions import Route, Subscription
from gapless_papers.protocols.delta.unconfirmed import Unconfirmed
from gapless_papers.protocols.parts.numbered_names import client_in

__all__ = ["Attachments"]


class _Own:
    """A subscription of a client here."""

    __slots__ = ("has_started", "is_claimed", "is_wished", "positions", "subscription")

    def __init__(self, subscription: Subscription, *, is_wished: bool) -> None:
        self.subscription = subscription
        self.is_wished = is_wished
        """Whether the client requested it from this incarnation of the broker. A subscription that neighbours reported
        back has started before, and its present tags do not matter.
        """
        self.is_claimed = is_wished
        """Whether the client named it when it attached, or has requested it since."""
        self.has_started = False
        self.positions: Cuts = {}
        """By publisher, the number up to which the client needs no further events for this subscription."""

    @property
    def is_pending(self) -> bool:
        return self.is_wished and not self.has_started


class _Client:
    """A client that is attached, or expected to return."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_attached = False
        self.missing_since: int | None = None
        self.own: dict[str, _Own] = {}
        self.wishes: dict[str, None] = {}
        """Subscriptions that the client has just requested and `on_known` has not recorded yet."""
        self.claims: dict[str, Cuts] = {}
        """Subscriptions that the client has and this broker does not know, with their positions."""
        self.publishes = False
        self.last = 0
        """The highest number among the client's events that any broker may have processed."""
        self.unconfirmed: dict[int, None] = {}
        self.processed = 0
        self.accepted = 0
        self.inbox: deque[Event] = deque()
        """Events that wait until the broker has recovered."""
        self.backlog: deque[tuple[Unconfirmed, tuple[str, ...]]] = deque()
        """Events to be delivered."""
        self.delivered: dict[int, tuple[Unconfirmed, tuple[str, ...]]] = {}
        """Deliveries that are not acknowledged."""
        self.tickets = 0

    @property
    def is_ready(self) -> bool:
        """Return whether events can be delivered: the status of every subscription of the client is known."""
        return (
            self.is_attached and not self.claims and all(own.is_pending or own.has_started for own in self.own.values())
        )


class _Forwarding(Protocol):
    def publish(self, client: str, event: Event) -> None: ...

    def settle(self, held: Unconfirmed, waiting: str) -> None: ...


class _Propagation(Protocol):
    def subscribe(self, name: str, text: str) -> None: ...

    def unsubscribe(self, name: str) -> None: ...


class Attachments:
    """All clients of one broker."""

    forwarding: _Forwarding
    propagation: _Propagation

    def __init__(
        self, send: Callable[[str, object], None], is_recovering: Callable[[], bool], expect: Callable[[str], int]
    ) -> None:
        self._send = send
        self._is_recovering = is_recovering
        self._expect = expect
        """Starts the timer of a missing client; returns the current time."""
        self._clients: dict[str, _Client] = {}

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def backlog(self) -> int:
        """Return the number of deliveries that wait for their client or for its acknowledgement."""
        return sum(len(client.backlog) + len(client.delivered) for client in self._clients.values())

    # ---- coming and going ---------------------------------------------------------------------------------

    def on_attach(self, name: str, message: Attach) -> None:
        """Attach the client with exactly these subscriptions."""
        client = self._client(name)
        client.is_attached = False
        client.missing_since = None
        client.publishes |= message.publishes
        client.last = max(client.last, message.numbered)
        client.accepted = 0
        claims = {claim.name: claim.positions for claim in message.claims}
        client.claims = {}
        self._end(client, [own for name, own in client.own.items() if name not in claims])
        for wanted, positions in claims.items():
            self._claim(client, wanted, positions)
        client.backlog.extendleft(reversed(client.delivered.values()))
        client.delivered = {}
        client.is_attached = True
        for wish in message.wishes:
            self.on_subscribe(name, wish)
        self._deliver(client)

    def on_detach(self, name: str) -> None:
        """Detach a client that has moved to another broker."""
        client = self._clients.get(name)
        if client is not None:
            client.is_attached = False
            self._end(client, list(client.own.values()))
            del self._clients[name]
            for held, _ in (*client.delivered.values(), *client.backlog):
                self.forwarding.settle(held, name)

    def _end(self, client: _Client, ending: list[_Own]) -> None:
        """End these subscriptions of the client."""
        for own in ending:
            own.is_claimed = False
            self.propagation.unsubscribe(own.subscription.name)

    def on_missing(self, name: str, *, is_broken: bool) -> None:
        """Mark the client as missing; if its connection broke, it has to attach again."""
        client = self._clients.get(name)
        if client is not None:
            client.is_attached = client.is_attached and not is_broken
            client.missing_since = self._expect(name)

    def on_back(self, name: str) -> None:
        """Stop treating the client as missing."""
        client = self._clients.get(name)
        if client is not None and client.is_attached:
            client.missing_since = None

    def on_timer(self, name: str, latest: int) -> None:
        """Forget the client if it has been missing since `latest` or longer."""
        client = self._clients.get(name)
        if client is not None and client.missing_since is not None and client.missing_since <= latest:
            self.on_detach(name)

    def on_broker_recovered(self) -> None:
        """End claimed subscriptions that no neighbour knows, and process the waiting events."""
        for client in list(self._clients.values()):
            for name in client.claims:
                self._send(client.name, Lost(name))
            client.claims = {}
            self._deliver(client)
            inbox, client.inbox = client.inbox, deque()
            for event in inbox:
                self._process(client, event)

    # ---- subscriptions ------------------------------------------------------------------------------------

    def on_subscribe(self, name: str, wish: ClientSubscribe) -> None:
        """Add a new subscription of a client."""
        self._client(name).wishes[wish.name] = None
        self.propagation.subscribe(wish.name, wish.filter)

    def on_unsubscribe(self, name: str, wanted: str) -> None:
        """End a subscription on its client's request."""
        client = self._client(name)
        client.claims.pop(wanted, None)
        if wanted in client.own:
            self._end(client, [client.own[wanted]])
        self._deliver(client)

    def next_numbers(self) -> Cuts:
        """Return the next event number of each publisher attached here."""
        return {client.name: client.last + 1 for client in self._clients.values() if client.publishes}

    def on_known(self, subscription: Subscription) -> None:
        """Record a subscription of a client here that was just requested, or that neighbours reported back."""
        name = subscription.name
        client = self._client(client_in(name))
        is_wished = name in client.wishes
        client.wishes.pop(name, None)
        client.own[name] = own = _Own(subscription, is_wished=is_wished)
        if name in client.claims:
            self._claim(client, name, client.claims.pop(name))
        elif not is_wished and client.is_attached:
            self._end(client, [own])
        elif not is_wished and client.missing_since is None:
            client.missing_since = self._expect(client.name)

    def on_confirmed(self, subscription: Subscription, cuts: dict[str, Cuts]) -> None:
        """Start the subscription; if it had started already, record that all brokers know it again."""
        client = self._client(client_in(subscription.name))
        own = client.own[subscription.name]
        if own.is_wished:
            self._start(client, own, cuts)
        self._settle_claim(own)
        self._deliver(client)

    def _start(self, client: _Client, own: _Own, cuts: dict[str, Cuts]) -> None:
        """Start the subscription at these cuts, or after a publisher's last received event if that is later."""
        starts: Cuts = {}
        for numbers in cuts.values():
            for publisher, cut in numbers.items():
                starts[publisher] = max(cut, starts.get(publisher, 0), own.positions.get(publisher, 0) + 1)
        own.has_started = True
        self._send(client.name, Started(own.subscription.name, starts, dict(own.positions)))
        own.positions |= {publisher: start - 1 for publisher, start in starts.items()}

    def on_removed(self, subscription: Subscription) -> None:
        """Remove the subscription. If the client still has it, it was given up, and the client is notified."""
        client = self._client(client_in(subscription.name))
        own = client.own.pop(subscription.name)
        if own.is_claimed and client.is_attached:
            self._send(client.name, Lost(subscription.name))
        self._deliver(client)

    def _claim(self, client: _Client, name: str, positions: Cuts) -> None:
        own = client.own.get(name)
        if own is not None:
            own.is_claimed = True
            own.is_wished = own.has_started
            for publisher, position in positions.items():
                own.positions[publisher] = max(position, own.positions.get(publisher, 0))
            self._settle_claim(own)
        elif self._is_recovering():
            client.claims[name] = positions
        else:
            self._send(client.name, Lost(name))

    def _settle_claim(self, own: _Own) -> None:
        if own.is_claimed and own.subscription.is_confirmed:
            own.has_started = True

    # ---- events from clients ------------------------------------------------------------------------------

    def on_offers(self, name: str) -> None:
        """Record that the client is a publisher."""
        self._client(name).publishes = True

    def on_publish(self, name: str, message: ClientPublish) -> None:
        """Process a client's event, which can be a repeated one."""
        client = self._client(name)
        if self._is_recovering():
            client.inbox.append(message.event)
        else:
            self._process(client, message.event)

    def _process(self, client: _Client, event: Event) -> None:
        client.publishes = True
        client.last = max(client.last, event.seq)
        client.processed = max(client.processed, event.seq)
        client.unconfirmed[event.seq] = None
        self.forwarding.publish(client.name, event)

    def on_delivered(self, name: str, seq: int) -> None:
        """Confirm to the client every event that, like all earlier ones, has reached all subscribers."""
        client = self._clients.get(name)
        if client is None:
            return
        client.unconfirmed.pop(seq, None)
        upto = min(client.unconfirmed, default=client.processed + 1) - 1
        if upto > client.accepted and client.is_attached:
            client.accepted = upto
            self._send(name, Accepted(upto))

    # ---- events for clients -------------------------------------------------------------------------------

    def offer(self, held: Unconfirmed, routes: list[Route]) -> None:
        """Offer an event that has just arrived to the clients that want it."""
        event = held.content
        assert isinstance(event, Event)
        wanted: dict[str, list[str]] = {}
        for route in routes:
            for name in route.own:
                client = self._clients[client_in(name)]
                own = client.own[name]
                if own.is_pending:
                    own.positions[event.publisher] = event.seq
                elif name in held.missed or (held.tags and own.is_wished and held.tags & own.subscription.tags):
                    continue
                elif not own.has_started or event.seq > own.positions.get(event.publisher, 0):
                    wanted.setdefault(client.name, []).append(name)
        for client_name, names in wanted.items():
            client = self._clients[client_name]
            held.waiting[client_name] = tuple(names)
            client.backlog.append((held, tuple(names)))
            self._deliver(client)

    def on_acknowledge(self, name: str, message: Acknowledge) -> None:
        """Process the client's acknowledgement of a delivery."""
        client = self._clients.get(name)
        delivery = None if client is None else client.delivered.pop(message.ticket, None)
        if delivery is not None:
            self.forwarding.settle(delivery[0], name)

    def _deliver(self, client: _Client) -> None:
        """Send the client its waiting deliveries, if it is ready for them."""
        if not client.backlog or not client.is_ready:
            return
        while client.backlog:
            held, names = client.backlog.popleft()
            event = held.content
            assert isinstance(event, Event)
            left = tuple([name for name in names if self._wants(client, name, event)])
            if not left:
                self.forwarding.settle(held, client.name)
                continue
            client.tickets += 1
            client.delivered[client.tickets] = (held, left)
            self._send(client.name, Delivery(client.tickets, event, left))

    def _wants(self, client: _Client, name: str, event: Event) -> bool:
        own = client.own.get(name)
        return own is not None and own.has_started and event.seq > own.positions.get(event.publisher, 0)

    def _client(self, name: str) -> _Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = _Client(name)
        return client
