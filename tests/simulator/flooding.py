"""A simple protocol for the simulator's own tests.

Every broker forwards every event to all other neighbours and to all its clients. Each client filters by `topic` and
drops duplicates. It claims only best effort: a subscription starts with the next event that arrives.
"""

from collections.abc import Sequence

import msgspec

from gapless.events import Event
from gapless.protocol import (
    Activated,
    BrokerNode,
    BrokerPlace,
    ClientNode,
    ClientPlace,
    Confirmed,
    CutFixed,
    Deliver,
    Effect,
    Ended,
    Input,
    ProtocolSpec,
    Publish,
    Published,
    Received,
    Send,
    SetTimer,
    Start,
    Subscribe,
    TimerFired,
    Unsubscribe,
)  # fmt: skip

__all__ = ["FLOODING", "Flood", "FloodingBroker", "FloodingClient", "FloodingOptions", "Hello"]


class Flood(msgspec.Struct, frozen=True):
    """An event in transit."""

    event: Event


class Hello(msgspec.Struct, frozen=True):
    """A client's registration at its broker."""


class FloodingOptions(msgspec.Struct, frozen=True):
    """The options of a scenario."""

    tick_ms: int = 0


class FloodingBroker(BrokerNode):
    """Forwards every event."""

    def __init__(self, place: BrokerPlace, options: FloodingOptions) -> None:
        self._neighbours = place.overlay.neighbours(place.name)
        self._tick_us = options.tick_ms * 1000
        self._clients: dict[str, None] = {}
        self._seen: dict[str, int] = {}

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        if isinstance(item, Received):
            if isinstance(item.message, Hello):
                self._clients[item.peer] = None
                return ()
            return self._pass_on(item.peer, item.message)
        if isinstance(item, Start | TimerFired) and self._tick_us:
            return [SetTimer("tick", self._tick_us)]
        return ()

    def _pass_on(self, source: str, message: Flood) -> Sequence[Effect]:
        event = message.event
        if event.seq <= self._seen.get(event.publisher, 0):
            return ()
        self._seen[event.publisher] = event.seq
        return [Send(peer, message) for peer in (*self._neighbours, *self._clients) if peer != source]

    def state_size(self) -> dict[str, int]:
        return {"clients": len(self._clients), "publishers": len(self._seen)}


class FloodingClient(ClientNode):
    """Filters events by `TRUE` or `topic = 'x'`."""

    def __init__(self, place: ClientPlace, options: FloodingOptions) -> None:
        self._place = place
        self._seq = 0
        self._subscriptions: dict[str, str] = {}
        self._cuts: dict[tuple[str, str], int] = {}
        self._last: dict[str, int] = {}

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        match item:
            case Start():
                return [Send(self._place.broker, Hello())]
            case Subscribe(subscription, text):
                self._subscriptions[subscription] = text
                return [Activated(subscription)]
            case Unsubscribe(subscription):
                self._subscriptions.pop(subscription, None)
                return [Ended(subscription, dict(self._last))]
            case Publish(attributes, payload):
                self._seq += 1
                event = Event(self._place.name, self._seq, attributes, payload)
                return [
                    Published(event), *self._deliver(event), Send(self._place.broker, Flood(event)),
                    Confirmed(self._seq),
                ]  # fmt: skip
            case Received(_, Flood(event)):
                return self._deliver(event)
        return ()

    def _deliver(self, event: Event) -> list[Effect]:
        if event.seq <= self._last.get(event.publisher, 0):
            return []
        self._last[event.publisher] = event.seq
        effects: list[Effect] = []
        for subscription, text in self._subscriptions.items():
            if text == "TRUE" or text == f"topic = '{event.attributes.get('topic')}'":
                key = (subscription, event.publisher)
                if key not in self._cuts:
                    self._cuts[key] = event.seq
                    effects.append(CutFixed(subscription, event.publisher, event.seq))
                effects.append(Deliver(event, subscription))
        return effects

    def state_size(self) -> dict[str, int]:
        return {"subscriptions": len(self._subscriptions)}


FLOODING = ProtocolSpec(
    name="flooding",
    guarantee="best-effort",
    summary="Everything to everyone.",
    options=FloodingOptions,
    broker=FloodingBroker,
    client=FloodingClient,
)
