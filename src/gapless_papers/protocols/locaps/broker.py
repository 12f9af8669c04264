"""A broker of the `locaps` protocol: forwards events, and serves the clients attached to it.

Events go over each link with a matching subscription behind it, once, in the order of arrival: on a tree with FIFO
links that is causal order, so each broker is the causal substrate that the paper assumes.

**Publishers** are processed in order: an event leaves only when an advertisement that covers it is stable, and the
publisher's later events wait behind it. So no event can be the effect of one that a subscription already got and yet
leave before that subscription has arrived.

**Subscribers** get the events that their starting cut admits (`starting_cut`).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import BrokerNode, BrokerPlace, Effect, Input, Received, Send
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AddSubscription,
    AdvertisementStable,
    AskPartial,
    ClientAdvertise,
    ClientPublish,
    ClientReturn,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cuts,
    Delivery,
    FromClient,
    FromNeighbour,
    Marker,
    PartialMarker,
    Publication,
    RemoveAdvertisement,
    RemoveSubscription,
    Stable,
    Started,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.routing import Routing
from gapless_papers.protocols.locaps.starting_cut import StartingCut
from gapless_papers.protocols.locaps.tables import Advertisement, Link, OwnSubscription, Subscription, Tables
from gapless_papers.protocols.parts.numbered_names import name_of, number_in

__all__ = ["LocapsBroker"]

Outbox: TypeAlias = deque[Event | str]
"""A publisher's actions that must wait: events, and names of withdrawn advertisements."""


class LocapsBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: LocapsOptions) -> None:
        self._f = place.f
        self._switched_off = options.switched_off
        self._holds_back = "late-publishers" not in options.switched_off
        self._tables = Tables(place.overlay.neighbours(place.name))
        self._routing = Routing(
            place.name, place.f, options, self._tables, self._send, self._on_answer, self._on_own_stable
        )
        self._outboxes: dict[str, Outbox] = {}
        self._effects: list[Effect] = []

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input. Only messages matter, because this variant supports no failures."""
        if not isinstance(item, Received):
            return ()
        self._effects = []
        link = self._tables.links.get(item.peer)
        if link is not None:
            self._on_neighbour_message(link, item.message)
        else:
            self._on_asked(item.peer, item.message)
        return self._effects

    def _on_neighbour_message(self, link: Link, message: FromNeighbour) -> None:
        match message:
            case Publication():
                self._pass_on(message.event, link)
            case AddSubscription():
                self._on_subscription(link, message)
            case RemoveSubscription():
                self._routing.remove_subscription(message.subscription)
            case AskPartial():
                self._routing.join_pivot(message.subscription, message.pivot, message.left)
            case Marker():
                self._routing.receive_marker(link, message)
            case PartialMarker():
                self._routing.receive_partial(link, message)
            case AddAdvertisement():
                self._on_advertisement(link, message)
            case AdvertisementStable():
                self._routing.receive_stable(link, message.advertisement)
            case RemoveAdvertisement():
                self._remove_advertisement(message.advertisement)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: FromClient) -> None:
        match call:
            case ClientPublish():
                self._put(client, call.event)
            case ClientSubscribe():
                self._on_subscribe(client, call)
            case ClientUnsubscribe():
                self._routing.remove_subscription(name_of(client, call.number))
            case ClientAdvertise():
                self._on_advertise(client, call)
            case ClientUnadvertise():
                self._put(client, name_of(client, call.number))
            case ClientReturn():
                pass  # a bare tree survives no failure
            case _:
                assert_never(call)

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables; `buffered` counts waiting events of publishers and subscribers."""
        held = sum(isinstance(item, Event) for outbox in self._outboxes.values() for item in outbox)
        own = (sub for sub in self._tables.subscriptions.values() if isinstance(sub, OwnSubscription))
        return {
            "subscriptions": len(self._tables.subscriptions),
            "advertisements": len(self._tables.advertisements),
            "buffered": held + sum(sub.start.buffered for sub in own),
        }

    def _send(self, peer: str, message: Any) -> None:
        self._effects.append(Send(peer, message))

    # ---- events -------------------------------------------------------------------------------------------

    def _pass_on(self, event: Event, source: Link | None) -> None:
        """Send an event over every link with a matching subscription."""
        self._tables.passed[event.publisher] = event.seq
        peers: dict[str, None] = {}
        clients: dict[str, list[int]] = {}
        for subscription in self._tables.match(event.attributes):
            if isinstance(subscription, OwnSubscription):
                self._begin_if(subscription, subscription.start.take_event(event))
                if subscription.start.admits(event):
                    clients.setdefault(subscription.client, []).append(subscription.number)
            elif subscription.origin is not None and subscription.origin is not source:
                peers[subscription.origin.peer] = None
        publication = Publication(event)
        for peer in peers:
            self._send(peer, publication)
        for client, numbers in clients.items():
            self._send(client, Delivery(event, numbers))

    # ---- from neighbours ----------------------------------------------------------------------------------

    def _on_subscription(self, link: Link, message: AddSubscription) -> None:
        subscription = Subscription(message.subscription, parse(message.filter), link)
        self._routing.add_subscription(subscription, message.pivot, message.left)

    def _on_advertisement(self, link: Link, message: AddAdvertisement) -> None:
        self._routing.add_advertisement(message.advertisement, message.publisher, message.filter, link)

    def _remove_advertisement(self, name: str) -> None:
        publisher = self._routing.remove_advertisement(name)
        for subscription in list(self._tables.subscriptions.values()):
            if isinstance(subscription, OwnSubscription):
                self._lose(subscription, publisher)

    # ---- publishers ---------------------------------------------------------------------------------------

    def _on_advertise(self, client: str, call: ClientAdvertise) -> None:
        self._routing.add_advertisement(name_of(client, call.number), client, call.filter, None)

    def _put(self, client: str, item: Event | str) -> None:
        self._outboxes.setdefault(client, deque()).append(item)
        self._empty_outbox(client)

    def _empty_outbox(self, client: str) -> None:
        """Release, in order, the actions that need not wait any longer."""
        outbox = self._outboxes.get(client)
        while outbox and self._may_leave(outbox[0]):
            item = outbox.popleft()
            if isinstance(item, Event):
                self._pass_on(item, None)
            else:
                self._remove_advertisement(item)

    def _may_leave(self, item: Event | str) -> bool:
        if isinstance(item, str) or not self._holds_back:
            return True
        advertised = self._tables.advertised_by(item.publisher)
        return any(not ad.waiting and ad.filter.matches(item.attributes) for ad in advertised)

    def _on_own_stable(self, advertisement: Advertisement) -> None:
        self._send(advertisement.publisher, Stable(number_in(advertisement.name)))
        self._empty_outbox(advertisement.publisher)

    # ---- subscribers --------------------------------------------------------------------------------------

    def _on_subscribe(self, client: str, call: ClientSubscribe) -> None:
        start = StartingCut(self._f + 1, self._switched_off)
        subscription = OwnSubscription(name_of(client, call.number), parse(call.filter), client, call.number, start)
        self._routing.add_subscription(subscription)
        self._activate_if_unserved(subscription)

    def _on_answer(self, subscription: OwnSubscription, marker: Marker | PartialMarker) -> None:
        if isinstance(marker, Marker):
            news = subscription.start.take_marker(marker.cuts)
        else:
            news = subscription.start.take_partial(marker.pivot, marker.broker, marker.cuts)
        self._begin_if(subscription, news)

    def _begin_if(self, subscription: OwnSubscription, starts: Cuts) -> None:
        if starts:
            self._begin(subscription, starts)

    def _begin(self, subscription: OwnSubscription, starts: Cuts) -> None:
        """Notify the client of the subscription's start, and deliver the buffered events from there on."""
        subscription.is_active = True
        self._send(subscription.client, Started(subscription.number, starts))
        for event in subscription.start.release(starts):
            self._send(subscription.client, Delivery(event, [subscription.number]))

    def _lose(self, subscription: OwnSubscription, publisher: str) -> None:
        """Process the withdrawal of a publisher's advertisement."""
        if not self._tables.publishes_for(publisher, subscription):
            subscription.start.forget(publisher)
        self._activate_if_unserved(subscription)

    def _activate_if_unserved(self, subscription: OwnSubscription) -> None:
        """Activate a subscription at once if no publisher matches it."""
        if not subscription.is_active and not self._tables.is_served(subscription):
            self._begin(subscription, {})
