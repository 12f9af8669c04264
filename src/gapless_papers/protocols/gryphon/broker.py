"""A broker of the `gryphon` protocol: forwards events, and serves the clients attached to it.

An event goes over each link with a matching subscription behind it, and over each link that may have matching
subscriptions not known here yet (`Routing.floods`); once, and in the order of arrival. A client gets the events that
its subscription's starting cut admits.

**When a link is full** (`buffer` packets unacknowledged), the broker takes no packets from its other peers: they keep
them and try again. A message is never sent back to its sender, so on a tree no cycle of waiting brokers can form, and a
publisher's client that has to wait refuses further calls. Answers do go back, and may exceed the buffer; their number
is bounded by that of the subscriptions and advertisements.
"""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import BrokerNode, BrokerPlace, Connected, Effect, Input, Received, Send, SetTimer, TimerFired
from gapless_papers.protocols.gryphon.link_stream import LinkStream
from gapless_papers.protocols.gryphon.messages import (
    Acknowledgement,
    AddAdvertisement,
    AddSubscription,
    Answered,
    Body,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWord,
    Cuts,
    Delivery,
    FromBroker,
    Missing,
    Offered,
    Packet,
    PathStable,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    Started,
)
from gapless_papers.protocols.gryphon.options import GryphonOptions
from gapless_papers.protocols.gryphon.routing import Routing
from gapless_papers.protocols.gryphon.tables import Advertisement, Link, OwnSubscription, Subscription, Tables
from gapless_papers.protocols.parts.numbered_names import name_of, number_in

__all__ = ["GryphonBroker"]


class GryphonBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: GryphonOptions) -> None:
        self._options = options
        self._tables = Tables(place.overlay.neighbours(place.name))
        self._routing = Routing(self._tables, self._send, self._begin, self._on_offered)
        self._streams: dict[str, LinkStream] = {}
        self._full: dict[str, None] = {}
        """Peers whose buffer is full."""
        self._effects: list[Effect] = []

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects. Suspicions are ignored: the broker waits for suspected peers."""
        self._effects = []
        if isinstance(item, Received):
            self._receive(item.peer, item.message)
        elif isinstance(item, Connected) and item.peer in self._streams:
            self._streams[item.peer].reconnect()
        elif isinstance(item, TimerFired):
            what, _, peer = item.key.partition("/")
            self._streams[peer].timer_fired(what)
        return self._effects

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables."""
        return {
            "subscriptions": len(self._tables.subscriptions),
            "advertisements": len(self._tables.advertisements),
            "unacknowledged": sum(stream.kept for stream in self._streams.values()),
        }

    # ---- links --------------------------------------------------------------------------------------------

    def _stream(self, peer: str) -> LinkStream:
        stream = self._streams.get(peer)
        if stream is None:
            stream = self._streams[peer] = LinkStream(
                self._options,
                lambda message: self._effects.append(Send(peer, message)),
                lambda what, delay_us: self._effects.append(SetTimer(f"{what}/{peer}", delay_us)),
            )
        return stream

    def _send(self, peer: str, body: Body) -> None:
        stream = self._stream(peer)
        stream.send(body)
        if stream.is_full:
            self._full[peer] = None

    def _receive(self, peer: str, message: Packet | Acknowledgement | Missing) -> None:
        stream = self._stream(peer)
        if isinstance(message, Missing):
            stream.missed(message)
            return
        stream.acknowledged(message.received)
        if not stream.is_full:
            self._full.pop(peer, None)
        if isinstance(message, Packet) and not any(full != peer for full in self._full):
            for body in stream.receive(message):
                self._process(peer, body)

    def _process(self, peer: str, body: Any) -> None:
        """Process a message; its allowed kinds depend on the sender."""
        link = self._tables.links.get(peer)
        if link is not None:
            self._on_neighbour_message(link, body)
        else:
            self._on_asked(peer, body)

    def _on_neighbour_message(self, link: Link, message: FromBroker) -> None:
        match message:
            case Publication():
                self._pass_on(message.event, link)
            case AddSubscription():
                self._on_subscription(link, message)
            case RemoveSubscription():
                self._routing.remove_subscription(message.subscription)
            case PathStable():
                self._routing.receive_stable(link, message)
            case AddAdvertisement():
                self._routing.add_advertisement(message, link)
            case Answered():
                self._routing.receive_answer(link, message.advertisement)
            case RemoveAdvertisement():
                self._routing.remove_advertisement(message.advertisement)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: ClientWord) -> None:
        match call:
            case ClientPublish():
                self._on_publish(call.event)
            case ClientSubscribe():
                self._on_subscribe(client, call)
            case ClientUnsubscribe():
                self._routing.remove_subscription(name_of(client, call.number))
            case ClientAdvertise():
                self._on_advertise(client, call)
            case ClientUnadvertise():
                self._routing.remove_advertisement(name_of(client, call.number))
            case _:
                assert_never(call)

    # ---- events -------------------------------------------------------------------------------------------

    def _on_publish(self, event: Event) -> None:
        self._tables.last[event.publisher] = event.seq
        self._pass_on(event, None)

    def _pass_on(self, event: Event, source: Link | None) -> None:
        """Send an event to every neighbour that has, or may have, matching subscribers."""
        peers: dict[str, None] = {}
        clients: dict[str, list[int]] = {}
        for subscription in self._tables.match(event.attributes):
            if isinstance(subscription, OwnSubscription):
                start = subscription.starts.get(event.publisher)
                if start is not None and event.seq >= start:
                    clients.setdefault(subscription.client, []).append(subscription.number)
            elif subscription.origin is not None and subscription.origin is not source:
                peers[subscription.origin.peer] = None
        if "flooding" not in self._options.switched_off:
            peers |= dict.fromkeys(self._routing.floods(event))
        publication = Publication(event)
        for peer in peers:
            self._send(peer, publication)
        for client, numbers in clients.items():
            self._send(client, Delivery(event, tuple(numbers)))

    # ---- from neighbours and clients ----------------------------------------------------------------------

    def _on_subscription(self, link: Link, message: AddSubscription) -> None:
        self._routing.add_subscription(Subscription(message.subscription, parse(message.filter), link))

    def _on_subscribe(self, client: str, call: ClientSubscribe) -> None:
        name = name_of(client, call.number)
        self._routing.add_subscription(OwnSubscription(name, parse(call.filter), client, call.number))

    def _on_advertise(self, client: str, call: ClientAdvertise) -> None:
        since = self._tables.last.get(client, 0) + 1
        self._routing.add_advertisement(
            AddAdvertisement(name_of(client, call.number), client, call.filter, since), None
        )

    # ---- to clients ---------------------------------------------------------------------------------------

    def _begin(self, subscription: OwnSubscription, starts: Cuts) -> None:
        """Notify the client of the subscription's start."""
        subscription.is_active = True
        subscription.starts.update(starts)
        self._send(subscription.client, Started(subscription.number, starts))

    def _on_offered(self, advertisement: Advertisement) -> None:
        self._send(advertisement.publisher, Offered(number_in(advertisement.name)))
