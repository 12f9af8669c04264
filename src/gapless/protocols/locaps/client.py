"""A client of the `locaps` protocol: attached to one broker for good.

It numbers its events and its calls, checks what it can check itself, and turns its broker's answers into effects. The
connection is FIFO, so what has been delivered when a subscription ends is an exact ending cut: everything of each
publisher up to its last event, and nothing after. Whatever is still on its way then is dropped.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
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
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.locaps.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cuts,
    Delivery,
    Stable,
    Started,
)
from gapless.protocols.locaps.options import LocapsOptions

__all__ = ["LocapsClient"]

HELD_MAX = 10_000
"""How many events a client may publish before its advertisements are stable: its broker keeps them."""


class _Held:
    """A subscription as the client holds it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cuts: Cuts = {}
        self.got: Cuts = {}
        self.is_active = False


class _Offer:
    """An advertisement as the client holds it."""

    def __init__(self, name: str, pattern: Filter) -> None:
        self.name = name
        self.filter = pattern
        self.is_stable = False


class LocapsClient:
    """A client node."""

    def __init__(self, place: ClientPlace, options: LocapsOptions) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        self._held_back = 0
        self._subscriptions: dict[int, _Held] = {}
        self._offers: dict[int, _Offer] = {}
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Publish: self._publish,
            Received: lambda item: self._handlers[type(item.message)](item.message),
            Started: self._on_started,
            Delivery: self._on_delivery,
            Stable: self._on_stable,
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
        return {"subscriptions": len(self._subscriptions), "advertisements": len(self._offers)}

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, self._offers)
        if pattern is not None:
            self._calls += 1
            self._offers[self._calls] = _Offer(call.advertisement, pattern)
            self._send(ClientAdvertise(self._calls, call.filter))

    def _unadvertise(self, call: Unadvertise) -> None:
        number = _find(call.advertisement, self._offers)
        if number is None:
            self._reject(call, f"there is no advertisement {call.advertisement!r} to take back")
            return
        del self._offers[number]
        self._send(ClientUnadvertise(number))

    def _subscribe(self, call: Subscribe) -> None:
        if self._parse(call, call.subscription, self._subscriptions) is not None:
            self._calls += 1
            self._subscriptions[self._calls] = _Held(call.subscription)
            self._send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = _find(call.subscription, self._subscriptions)
        if number is None:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")
            return
        held = self._subscriptions.pop(number)
        last = {publisher: held.got.get(publisher, cut - 1) for publisher, cut in held.cuts.items()}
        self._effects.append(Ended(held.name, last))
        self._send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        offers = [offer for offer in self._offers.values() if offer.filter.matches(call.attributes)]
        if not offers:
            self._reject(call, "the event matches none of your advertisements; advertise it first")
            return
        if self._held_back >= HELD_MAX:
            self._reject(call, f"{self._held_back} publications wait for your advertisements to be stable; try later")
            return
        self._held_back += not all(offer.is_stable for offer in self._offers.values())
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._effects.append(Published(event))
        self._send(ClientPublish(event))

    def _parse(self, call: Advertise | Subscribe, name: str, taken: Mapping[int, _Held | _Offer]) -> Filter | None:
        if _find(name, taken) is not None:
            self._reject(call, f"{name!r} is taken; give it another name")
            return None
        try:
            return parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return None

    def _reject(self, call: Advertise | Unadvertise | Subscribe | Unsubscribe | Publish, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

    def _send(self, message: Any) -> None:
        self._effects.append(Send(self._broker, message))

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_started(self, message: Started) -> None:
        held = self._subscriptions.get(message.number)
        if held is None:
            return
        held.cuts.update(message.cuts)
        self._effects += [CutFixed(held.name, publisher, cut) for publisher, cut in message.cuts.items()]
        if not held.is_active:
            held.is_active = True
            self._effects.append(Activated(held.name))

    def _on_delivery(self, message: Delivery) -> None:
        event = message.event
        for number in message.numbers:
            held = self._subscriptions.get(number)
            if held is not None:
                held.got[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))

    def _on_stable(self, message: Stable) -> None:
        offer = self._offers.get(message.number)
        if offer is not None:
            offer.is_stable = True
            self._effects.append(Advertised(offer.name))
        if all(offer.is_stable for offer in self._offers.values()):
            self._held_back = 0


def _find(name: str, entries: Mapping[int, _Held | _Offer]) -> int | None:
    """The number of the entry of that name; a client has few."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
