"""A client that numbers its events and its calls, checks what it can check itself, and turns its broker's answers into
effects.

What its broker tells it comes in order, so what has been delivered when a subscription ends is an exact ending cut:
everything of each publisher up to its last event, and nothing after. Whatever is still on its way then is dropped.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientNode,
    ClientPlace,
    CutFixed,
    Deliver,
    Effect,
    Ended,
    Input,
    Publish,
    Published,
    Rejected,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.parts.held import Held, Offer
from gapless.protocols.parts.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    ClientWord,
    Started,
)

__all__ = ["NumberedClient"]

_Call: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | Publish


class NumberedClient(ClientNode):
    """What such clients have in common. A protocol adds how it sends, and what else it hears, to the handlers."""

    def __init__(self, place: ClientPlace) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        self._subscriptions: dict[int, Held] = {}
        self._offers: dict[int, Offer] = {}
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Publish: self._publish,
            Started: self._on_started,
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

    # ---- what protocols do in their own way ---------------------------------------------------------------

    @abstractmethod
    def _send(self, message: ClientWord) -> None:
        """Tell the broker."""

    def _objection(self, call: Advertise | Subscribe | Publish) -> str:
        """Why nothing can be asked for at the moment; empty if it can."""
        return ""

    def _took_back(self, number: int, offer: Offer) -> None:
        """An advertisement is over."""

    def _published(self, event: Event) -> None:
        """An event is about to leave."""

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, self._offers)
        if pattern is not None:
            self._calls += 1
            self._offers[self._calls] = Offer(call.advertisement, pattern)
            self._send(ClientAdvertise(self._calls, call.filter))

    def _unadvertise(self, call: Unadvertise) -> None:
        number = _find(call.advertisement, self._offers)
        if number is None:
            self._reject(call, f"there is no advertisement {call.advertisement!r} to take back")
            return
        self._took_back(number, self._offers.pop(number))
        self._send(ClientUnadvertise(number))

    def _subscribe(self, call: Subscribe) -> None:
        if self._parse(call, call.subscription, self._subscriptions) is not None:
            self._calls += 1
            self._subscriptions[self._calls] = Held(call.subscription)
            self._send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = _find(call.subscription, self._subscriptions)
        if number is None:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")
            return
        held = self._subscriptions.pop(number)
        self._effects.append(Ended(held.name, held.last()))
        self._send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        if not any(offer.filter.matches(call.attributes) for offer in self._offers.values()):
            self._reject(call, "the event matches none of your advertisements; advertise it first")
            return
        objection = self._objection(call)
        if objection:
            self._reject(call, objection)
            return
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._published(event)
        self._effects.append(Published(event))
        self._send(ClientPublish(event))

    def _parse(self, call: Advertise | Subscribe, name: str, taken: Mapping[int, Held | Offer]) -> Filter | None:
        """The filter of a call that can be made."""
        if _find(name, taken) is not None:
            self._reject(call, f"{name!r} is taken; give it another name")
            return None
        try:
            pattern = parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return None
        objection = self._objection(call)
        if objection:
            self._reject(call, objection)
        return None if objection else pattern

    def _reject(self, call: _Call, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

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

    def _deliver(self, event: Event, numbers: Iterable[int]) -> None:
        """An event for some of the subscriptions."""
        for number in numbers:
            held = self._subscriptions.get(number)
            if held is not None:
                held.got[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))

    def _stabilise(self, number: int) -> None:
        """An advertisement is known to all whom it concerns."""
        offer = self._offers.get(number)
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._effects.append(Advertised(offer.name))


def _find(name: str, entries: Mapping[int, Held | Offer]) -> int | None:
    """The number of the entry of that name; a client has few."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
