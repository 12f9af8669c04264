"""A broker of the `locaps` protocol on a graph: several paths to every broker, and up to f failures.

It uses the causal multicast (`protocols.locamu`): messages between brokers are processed everywhere in causal order,
and survive f failures. On top of it are the paper's algorithms (`path_routing`); this class serves the clients.

A suspected broker counts as permanently failed: all brokers are notified, and none waits for it. If it is alive after
all, it is notified too, at once or when it is reachable again. Then it sends its clients to other brokers and stops.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from gapless.events import Event
from gapless.filters import parse
from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    Effect,
    Input,
    Received,
    Send,
    SetTimer,
    Suspected,
    TimerFired,
    Trusted,
)
from gapless_papers.protocols.locamu.multicast import CausalMulticast
from gapless_papers.protocols.locamu.regions import regions_of
from gapless_papers.protocols.locaps.messages import (
    AddAdvertisement,
    AdvertisementStable,
    AskBackup,
    BackupCopy,
    ClientAdvertise,
    ClientPublish,
    ClientReturn,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Confirmation,
    Content,
    Cuts,
    Dead,
    Delivery,
    Done,
    Due,
    EndSubscription,
    ForgetSubscription,
    FromBroker,
    FromClient,
    Hop,
    Keep,
    Kept,
    Packet,
    PathMarker,
    PathSubscribe,
    PivotMarker,
    Publication,
    RemoveAdvertisement,
    Stable,
    Started,
    Takeover,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.path_keeping import Safekeeping, Streams, backups_of
from gapless_papers.protocols.locaps.path_return import ReturningPublisher, Returns
from gapless_papers.protocols.locaps.path_routing import PathRouting
from gapless_papers.protocols.locaps.path_start import PathStart
from gapless_papers.protocols.locaps.path_tables import OwnPathSubscription, PathAdvertisement, PathTables
from gapless_papers.protocols.parts.numbered_names import name_of, number_in

__all__ = ["PathBroker"]

Outbox: TypeAlias = deque[Event | str]
"""A publisher's actions that must wait: events, and names of withdrawn advertisements."""

DONE = " done"
"""The timer after which receivers report processed messages to their origins. (Timers are named after brokers, too; no
broker has this name.)"""

LINGER_US = 30_000_000
"""How long subscriptions of a failed broker are served: others may rely on them until their own subscriptions have
arrived."""


class PathBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: LocapsOptions) -> None:
        self._name = place.name
        self._overlay = place.overlay
        self._f = place.f
        self._switched_off = options.switched_off
        self._holds_back = "late-publishers" not in options.switched_off
        self._done_us = options.done_ms * 1000
        self._tables = PathTables()
        regions = regions_of(place.overlay, place.f)
        self._multicast = CausalMulticast(
            place.name, regions, Packet, self._send_hop, self._process, self._carry, self._on_settled
        )
        self._streams = Streams(
            backups_of(place.overlay, place.name, place.f), self._multicast.dead, self._past, self._send, self._release
        )
        self._routing = PathRouting(
            place.name, place.f, place.overlay.brokers, regions, options, self._tables, self._multicast, self._begin,
            self._on_own_stable, self._streams,
        )  # fmt: skip
        self._keeping = Safekeeping(lambda publisher: self._multicast.settled.get(publisher, 0))
        self._returns = Returns(
            place.name,
            place.overlay,
            place.f,
            self._multicast.dead,
            self._keeping,
            self._send,
            self._take_over,
            self._adopt_publisher,
        )
        self._outboxes: dict[str, Outbox] = {}
        self._effects: list[Effect] = []
        self._is_timing = False
        self._ahead: dict[str, dict[str, int]] = {}
        """Clients that have seen more than this broker has processed, with their causal pasts."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input."""
        self._effects = []
        if self._name in self._multicast.dead:
            return self._refuse(item)
        if isinstance(item, Received):
            if item.peer in self._overlay:
                self._on_neighbour_message(item.peer, item.message)
            else:
                self._on_asked(item.peer, item.message)
        elif isinstance(item, Suspected) and item.peer in self._overlay:
            self._exclude(item.peer)
        elif isinstance(item, Trusted | Connected) and item.peer in self._multicast.dead:
            self._send(item.peer, Dead(item.peer))
        elif isinstance(item, TimerFired) and item.key != DONE:
            self._forget_home(item.key)
        elif isinstance(item, TimerFired):
            self._is_timing = False
            for origin, done in self._multicast.thanks().items():
                self._send(origin, Done(done, dict(self._multicast.due)))
        return self._effects

    def _on_neighbour_message(self, peer: str, message: FromBroker) -> None:
        match message:
            case Hop():
                self._multicast.receive(peer, message.packet, message.extra)
            case Done():
                self._multicast.receive_done(peer, message.done, message.due)
            case Dead():
                self._exclude(message.broker)
            case Keep():
                self._on_keep(peer, message)
            case Kept():
                self._on_kept(peer, message)
            case AskBackup():
                self._on_ask(peer, message)
            case BackupCopy():
                self._returns.receive_copy(peer, message)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: FromClient) -> None:
        match call:
            case ClientPublish():
                self._put(client, call.event)
            case ClientSubscribe():
                self._on_subscribe(client, call)
            case ClientUnsubscribe():
                self._on_unsubscribe(client, call)
            case ClientAdvertise():
                self._on_advertise(client, call)
            case ClientUnadvertise():
                self._put(client, name_of(client, call.number))
            case ClientReturn():
                self._on_return(client, call)
            case _:
                assert_never(call)

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables; `buffered` counts waiting events and messages, of publishers and of
        subscribers."""
        held = sum(isinstance(item, Event) for outbox in self._outboxes.values() for item in outbox)
        return {
            "subscriptions": len(self._tables.subscriptions),
            "advertisements": len(self._tables.advertisements),
            "buffered": held + self._multicast.waiting + sum(sub.start.buffered for sub in self._tables.own()),
            "due": sum(map(len, self._multicast.due.values())),
            "unsettled": self._multicast.unsettled,
            "kept": self._keeping.size,
        }

    def _send(self, peer: str, message: Any) -> None:
        self._effects.append(Send(peer, message))

    # ---- the multicast ------------------------------------------------------------------------------------

    def _send_hop(self, peer: str, packet: Packet, extra: tuple[str, ...]) -> None:
        self._send(peer, Hop(packet, extra))

    def _process(self, packet: Packet) -> None:
        if not self._is_timing:
            self._is_timing = True
            self._effects.append(SetTimer(DONE, self._done_us))
        self._take(packet, packet.content)
        self._accept_waiting()

    def _take(self, packet: Packet, content: Content) -> None:
        match content:
            case Publication():
                self._pass_on(content.event)
            case Takeover():
                self._adopt_publisher(packet.stream)
            case AddAdvertisement():
                self._routing.receive_advertisement(packet.origin, content)
            case AdvertisementStable():
                if self._name in packet.ends:
                    self._routing.receive_stable(packet.origin, content.advertisement)
            case RemoveAdvertisement():
                self._remove_advertisement(packet, content)
            case PathSubscribe():
                self._routing.receive_subscription(content)
            case EndSubscription():
                self._routing.receive_end(content.subscription)
            case ForgetSubscription():
                self._forget(content.subscription)
            case PathMarker():
                self._routing.receive_marker(packet.origin, content)
            case PivotMarker():
                if self._name in packet.ends:
                    self._routing.receive_pivot(content)
            case _:
                assert_never(content)

    def _carry(self, packet: Packet) -> Iterable[str]:
        """Return the home brokers of the subscriptions to which this broker carries the event."""
        content = packet.content
        if not isinstance(content, Publication):
            return ()
        event = content.event
        found = self._tables.match(event.attributes)
        return [sub.home for sub in found if event.publisher in sub.carried and sub.home != self._name]

    def _on_settled(self, stream: str, number: int) -> None:
        if stream == self._name:
            self._routing.settled(number)
        elif stream in self._streams:
            seq = self._streams.settled(stream, number)
            if seq:
                self._send(stream, Confirmation(seq))

    def _exclude(self, broker: str) -> None:
        """Exclude a failed broker: notify all neighbours, and that broker in case it is alive, and stop
        waiting for it."""
        if broker in self._multicast.dead:
            return
        if broker == self._name:
            self._retire()
            return
        for neighbour in self._overlay.neighbours(self._name):
            if neighbour not in self._multicast.dead:
                self._send(neighbour, Dead(broker))
        self._effects.append(SetTimer(broker, LINGER_US))
        self._multicast.exclude(broker)
        self._routing.exclude(broker)
        for own in list(self._tables.own()):
            self._activate_if_unserved(own)
        self._streams.exclude(broker)
        self._returns.exclude(broker)
        self._accept_waiting()

    def _retire(self) -> None:
        """Redirect this broker's clients to other brokers, because this one has been excluded."""
        self._multicast.dead[self._name] = None
        for client in dict.fromkeys([*self._outboxes, *(own.client for own in self._tables.own())]):
            self._send(client, Dead(self._name))

    def _refuse(self, item: Input) -> Sequence[Effect]:
        """Redirect a new client to another broker, because this one has been excluded."""
        if isinstance(item, Received) and item.peer not in self._overlay:
            return [Send(item.peer, Dead(self._name))]
        return ()

    def _forget_home(self, broker: str) -> None:
        """Remove the subscriptions of a failed broker, which other subscriptions no longer rely on."""
        for name in [sub.name for sub in self._tables.subscriptions.values() if sub.home == broker]:
            self._forget(name)
        for name in [ad.name for ad in self._tables.orphaned.values() if ad.broker == broker]:
            del self._tables.orphaned[name]

    # ---- events -------------------------------------------------------------------------------------------

    def _pass_on(self, event: Event) -> None:
        """Deliver an event to the clients that want it."""
        if event.seq <= self._tables.passed.get(event.publisher, 0):
            return
        self._tables.passed[event.publisher] = event.seq
        clients: dict[str, list[int]] = {}
        for sub in self._tables.match(event.attributes):
            if isinstance(sub, OwnPathSubscription):
                news = sub.start.take_event(event)
                if news:
                    self._begin(sub, news)
                if sub.start.admits(event):
                    clients.setdefault(sub.client, []).append(sub.number)
        for client, numbers in clients.items():
            self._send(client, Delivery(event, numbers, self._past()))

    def _past(self) -> Due:
        """Return the causal past that a client has to bring along if this broker fails."""
        return dict(self._multicast.due) if self._f else {}

    def _accept(self, event: Event) -> None:
        """Add an event of a client of this broker to the publisher's stream."""
        ends = {sub.home for sub in self._tables.match(event.attributes) if event.publisher in sub.cuts}
        self._streams.put(event.publisher, Publication(event), ends)

    def _release(self, publisher: str, number: int, ends: tuple[str, ...], content: Content) -> None:
        """Forward an event or a marker, after enough backups have it."""
        self._multicast.send(publisher, number, ends, content)
        if isinstance(content, Publication):
            self._pass_on(content.event)
        if not self._streams.is_pending(publisher):
            self._empty_outbox(publisher)

    # ---- from other brokers -------------------------------------------------------------------------------

    def _forget(self, name: str) -> None:
        self._tables.drop_subscription(name)

    def _remove_advertisement(self, packet: Packet, content: RemoveAdvertisement) -> None:
        ad = self._tables.advertisements.get(content.advertisement)
        if ad is None or ad.broker != packet.origin:
            return
        self._routing.drop_advertisement(content.advertisement)
        for subscription in list(self._tables.own()):
            self._activate_if_unserved(subscription)

    # ---- publishers ---------------------------------------------------------------------------------------

    def _on_advertise(self, client: str, call: ClientAdvertise) -> None:
        if client in self._returns.coming:
            self._returns.coming[client].call.offers[call.number] = call.filter
            return
        self._streams.begin(client)
        self._routing.advertise(name_of(client, call.number), client, call.filter)

    def _put(self, client: str, item: Event | str) -> None:
        self._outboxes.setdefault(client, deque()).append(item)
        self._empty_outbox(client)

    def _empty_outbox(self, client: str) -> None:
        """Release, in order, the actions that need not wait any longer."""
        outbox = self._outboxes.get(client)
        while outbox and self._may_leave(client, outbox[0]):
            item = outbox.popleft()
            if isinstance(item, Event):
                self._accept(item)
            else:
                self._routing.unadvertise(item)
                for subscription in list(self._tables.own()):
                    self._activate_if_unserved(subscription)

    def _may_leave(self, client: str, item: Event | str) -> bool:
        if client in self._returns.coming or client in self._ahead:
            return False
        if isinstance(item, str):
            return not self._streams.is_pending(client)
        if not self._holds_back:
            return True
        advertised = self._tables.advertised_by(item.publisher)
        return any(not ad.waiting and ad.filter.matches(item.attributes) for ad in advertised)

    def _on_own_stable(self, advertisement: PathAdvertisement) -> None:
        client = advertisement.publisher
        self._send(client, Stable(number_in(advertisement.name), self._f > 0))
        self._empty_outbox(client)

    # ---- publishers whose broker has failed ---------------------------------------------------------------

    def _on_ask(self, peer: str, ask: AskBackup) -> None:
        self._exclude(ask.broker)
        self._send(peer, self._keeping.copy(ask))

    def _on_keep(self, peer: str, message: Keep) -> None:
        if peer not in self._multicast.dead:
            self._send(peer, self._keeping.keep(peer, message))

    def _on_kept(self, peer: str, message: Kept) -> None:
        self._streams.receive_kept(peer, message)
        self._returns.receive_kept(peer, message)

    def _on_return(self, client: str, call: ClientReturn) -> None:
        for broker in call.brokers:
            self._exclude(broker)
        self._multicast.take_over(call.due)
        self._outboxes.setdefault(client, deque())
        self._ahead[client] = call.due.get(self._name, {})
        self._returns.begin(client, call)
        self._accept_waiting()

    def _accept_waiting(self) -> None:
        """Accept publications of clients whose causal past this broker has meanwhile processed."""
        for client in [client for client, due in self._ahead.items() if self._multicast.has(due)]:
            del self._ahead[client]
            self._empty_outbox(client)

    def _take_over(self, client: str, coming: ReturningPublisher) -> None:
        """Send all brokers the events of a client that has moved here, unless all have processed them, and announce its
        new broker."""
        everyone = self._overlay.brokers
        for number, content, due in coming.takeover(everyone):
            self._multicast.send_again(client, number, everyone, due, content)

    def _adopt_publisher(self, client: str) -> None:
        """Advertise a client that has moved here, because its earlier events have been processed here."""
        coming = self._returns.coming.get(client)
        if coming is None:
            return
        del self._returns.coming[client]
        self._tables.passed[client] = max(coming.last, self._tables.passed.get(client, 0))
        self._streams.begin(client, coming.epoch, coming.last)
        for sub in self._tables.subscriptions.values():
            sub.cuts.pop(client, None)
        fresh: list[Event | str] = [event for event in coming.call.events if event.seq > coming.last]
        fresh += [name_of(client, number) for number in coming.call.closing]
        self._outboxes[client].extendleft(reversed(fresh))
        for number, text in coming.call.offers.items():
            self._routing.advertise(name_of(client, number), client, text)
        self._empty_outbox(client)

    # ---- subscribers --------------------------------------------------------------------------------------

    def _on_subscribe(self, client: str, call: ClientSubscribe) -> None:
        name = name_of(client, call.number)
        own = OwnPathSubscription(
            name, parse(call.filter), self._name, client, call.number, PathStart(self._switched_off)
        )
        self._routing.subscribe(own)
        self._activate_if_unserved(own)

    def _on_unsubscribe(self, client: str, call: ClientUnsubscribe) -> None:
        found = self._tables.subscriptions.get(name_of(client, call.number))
        if isinstance(found, OwnPathSubscription):
            self._routing.end(found)

    def _begin(self, own: OwnPathSubscription, starts: Cuts) -> None:
        """Notify the client of the subscription's start, and deliver the buffered events from there on."""
        if not starts and own.is_active:
            return
        own.is_active = True
        self._send(own.client, Started(own.number, starts))
        for event in own.start.release(starts):
            self._send(own.client, Delivery(event, [own.number], self._past()))

    def _activate_if_unserved(self, own: OwnPathSubscription) -> None:
        """Activate a subscription at once if no publisher matches it."""
        if not own.is_active and not self._tables.wanted(own):
            self._begin(own, {})
