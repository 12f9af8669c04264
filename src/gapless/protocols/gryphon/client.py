"""A client of the `gryphon` protocol: attached to one broker for good.

It numbers its events and its calls, checks what it can check itself, and turns its broker's answers into effects. The
link to its broker is made whole like any other (`link_stream`), so what has been delivered when a subscription ends is
an exact ending cut: everything of each publisher up to its last event, and nothing after. Whatever is still on its
way then is dropped. While the broker does not take what the client sends, `buffer` calls are kept and further ones
refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientNode,
    ClientPlace,
    Connected,
    CutFixed,
    Deliver,
    Effect,
    Ended,
    Input,
    Publish,
    Published,
    Received,
    Rejected,
    Send,
    SetTimer,
    Subscribe,
    TimerFired,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.gryphon.link_stream import LinkStream
from gapless.protocols.gryphon.messages import (
    Acknowledgement,
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cuts,
    Delivery,
    Missing,
    Offered,
    Packet,
    Started,
)
from gapless.protocols.gryphon.options import GryphonOptions

__all__ = ["GryphonClient"]


class _Held:
    """A subscription as the client holds it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last: Cuts = {}
        """Of each publisher, the last event that it is done with: the one before the start, or the last that came."""
        self.is_active = False


class _Offer:
    """An advertisement as the client holds it."""

    def __init__(self, name: str, pattern: Filter) -> None:
        self.name = name
        self.filter = pattern


class GryphonClient(ClientNode):
    """A client node."""

    def __init__(self, place: ClientPlace, options: GryphonOptions) -> None:
        self._name = place.name
        self._broker = place.broker
        self._stream = LinkStream(
            options,
            lambda message: self._effects.append(Send(place.broker, message)),
            lambda what, delay_us: self._effects.append(SetTimer(what, delay_us)),
        )
        self._seq = 0
        self._calls = 0
        self._subscriptions: dict[int, _Held] = {}
        self._offers: dict[int, _Offer] = {}
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Publish: self._publish,
            Received: lambda item: self._receive(item.message),
            Connected: self._on_connected,
            TimerFired: lambda item: self._stream.timer_fired(item.key),
            Started: self._on_started,
            Delivery: self._on_delivery,
            Offered: self._on_offered,
        }

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        self._effects = []
        handler = self._handlers.get(type(item))
        if handler is not None:
            handler(item)
        return self._effects

    def state_size(self) -> Mapping[str, int]:
        """How much the client keeps."""
        return {
            "subscriptions": len(self._subscriptions),
            "advertisements": len(self._offers),
            "unacknowledged": self._stream.kept,
        }

    # ---- the link -----------------------------------------------------------------------------------------

    def _receive(self, message: Packet | Acknowledgement | Missing) -> None:
        if isinstance(message, Missing):
            self._stream.missed(message)
            return
        self._stream.acknowledged(message.received)
        if isinstance(message, Packet):
            for body in self._stream.receive(message):
                self._handlers[type(body)](body)

    def _on_connected(self, item: Connected) -> None:
        if item.peer == self._broker:
            self._stream.reconnect()

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, self._offers)
        if pattern is not None:
            self._calls += 1
            self._offers[self._calls] = _Offer(call.advertisement, pattern)
            self._stream.send(ClientAdvertise(self._calls, call.filter))

    def _unadvertise(self, call: Unadvertise) -> None:
        number = _find(call.advertisement, self._offers)
        if number is None:
            self._reject(call, f"there is no advertisement {call.advertisement!r} to take back")
            return
        del self._offers[number]
        self._stream.send(ClientUnadvertise(number))

    def _subscribe(self, call: Subscribe) -> None:
        if self._parse(call, call.subscription, self._subscriptions) is not None:
            self._calls += 1
            self._subscriptions[self._calls] = _Held(call.subscription)
            self._stream.send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = _find(call.subscription, self._subscriptions)
        if number is None:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")
            return
        held = self._subscriptions.pop(number)
        self._effects.append(Ended(held.name, held.last))
        self._stream.send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        if self._is_stuck(call):
            return
        if not any(offer.filter.matches(call.attributes) for offer in self._offers.values()):
            self._reject(call, "the event matches none of your advertisements; advertise it first")
            return
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._effects.append(Published(event))
        self._stream.send(ClientPublish(event))

    def _parse(self, call: Advertise | Subscribe, name: str, taken: Mapping[int, _Held | _Offer]) -> Filter | None:
        """The filter of a call that can be made."""
        if self._is_stuck(call):
            return None
        if _find(name, taken) is not None:
            self._reject(call, f"{name!r} is taken; give it another name")
            return None
        try:
            return parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return None

    def _is_stuck(self, call: Advertise | Subscribe | Publish) -> bool:
        if self._stream.is_full:
            self._reject(call, f"broker {self._broker!r} has not taken your last {self._stream.kept} calls; try later")
        return self._stream.is_full

    def _reject(self, call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_started(self, message: Started) -> None:
        held = self._subscriptions.get(message.number)
        if held is None:
            return
        for publisher, cut in message.cuts.items():
            held.last[publisher] = cut - 1
            self._effects.append(CutFixed(held.name, publisher, cut))
        if not held.is_active:
            held.is_active = True
            self._effects.append(Activated(held.name))

    def _on_delivery(self, message: Delivery) -> None:
        event = message.event
        for number in message.numbers:
            held = self._subscriptions.get(number)
            if held is not None:
                held.last[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))

    def _on_offered(self, message: Offered) -> None:
        offer = self._offers.get(message.number)
        if offer is not None:
            self._effects.append(Advertised(offer.name))


def _find(name: str, entries: Mapping[int, _Held | _Offer]) -> int | None:
    """The number of the entry of that name; a client has few."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
