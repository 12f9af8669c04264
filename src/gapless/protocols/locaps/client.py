"""A client of the `locaps` protocol: attached to one broker, and to another if that fails.

It numbers its events and its calls, checks what it can check itself, and turns its broker's answers into effects. The
connection is FIFO, so what has been delivered when a subscription ends is an exact ending cut: everything of each
publisher up to its last event, and nothing after. Whatever is still on its way then is dropped.

**If its broker fails** its subscriptions end where they stand, and the client is told so. It turns to the next broker
that lives, with its advertisements, the events of which it does not know that they came through, and its past; what
is asked of it from then on happens there.
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
    Suspected,
    Trusted,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.locaps.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientReturn,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Confirmation,
    Cuts,
    Dead,
    Delivery,
    Due,
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
        self.last = 0
        """Once it is taken back: the last event that may rely on it."""


class LocapsClient(ClientNode):
    """A client node."""

    def __init__(self, place: ClientPlace, options: LocapsOptions) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        self._held_back = 0
        self._subscriptions: dict[int, _Held] = {}
        self._offers: dict[int, _Offer] = {}
        self._closing: dict[int, _Offer] = {}
        """Taken back, with events before that that may not have come through."""
        self._contacts = place.contacts
        self._suspects: dict[str, None] = {}
        self._former: tuple[str, ...] = ()
        self._events: dict[int, Event] = {}
        """Those that may not have come through."""
        self._is_keeping = options.paths == "f+1"
        self._due: Due = {}
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Publish: self._publish,
            Received: self._receive,
            Suspected: self._on_suspected,
            Trusted: lambda item: self._suspects.pop(item.peer, None),
            Confirmation: self._on_confirmation,
            Dead: self._on_dead,
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
        return {
            "subscriptions": len(self._subscriptions),
            "advertisements": len(self._offers),
            "unconfirmed": len(self._events),
        }

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
        offer = self._offers.pop(number)
        if self._events:
            offer.last = self._seq
            self._closing[number] = offer
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
        self._effects.append(Ended(held.name, _last(held)))
        self._send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        offers = [offer for offer in self._offers.values() if offer.filter.matches(call.attributes)]
        if not offers:
            self._reject(call, "the event matches none of your advertisements; advertise it first")
            return
        if self._held_back >= HELD_MAX:
            self._reject(call, f"{self._held_back} publications wait for your advertisements to be stable; try later")
            return
        if len(self._events) >= HELD_MAX:
            self._reject(call, f"{len(self._events)} publications have not come through yet; try later")
            return
        self._held_back += not all(offer.is_stable for offer in self._offers.values())
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        if self._is_keeping:
            self._events[self._seq] = event
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

    # ---- if the broker fails ------------------------------------------------------------------------------

    def _on_suspected(self, item: Suspected) -> None:
        self._suspects[item.peer] = None
        if item.peer == self._broker and self._is_keeping:
            self._go_on_elsewhere()

    def _on_dead(self, message: Dead) -> None:
        """Its broker was taken for dead, and says so itself."""
        self._suspects[message.broker] = None
        self._go_on_elsewhere()

    def _go_on_elsewhere(self) -> None:
        for held in self._subscriptions.values():
            self._effects.append(Ended(held.name, _last(held)))
        self._subscriptions = {}
        self._former = (*self._former, self._broker)
        self._broker = next((name for name in self._contacts if name not in self._suspects), self._broker)
        offers = {number: offer.filter.text for number, offer in {**self._closing, **self._offers}.items()}
        events = list(self._events.values())
        self._send(ClientReturn(self._former, offers, tuple(self._closing), events, self._due))

    def _on_confirmation(self, message: Confirmation) -> None:
        for seq in [seq for seq in self._events if seq <= message.seq]:
            del self._events[seq]
        for number in [number for number, offer in self._closing.items() if offer.last <= message.seq]:
            del self._closing[number]

    # ---- answers ------------------------------------------------------------------------------------------

    def _receive(self, item: Received) -> None:
        """What a former broker said last comes too late."""
        if item.peer == self._broker:
            self._handlers[type(item.message)](item.message)

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
        if message.due:
            self._learn(message.due)
        for number in message.numbers:
            held = self._subscriptions.get(number)
            if held is not None:
                held.got[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))

    def _on_stable(self, message: Stable) -> None:
        offer = self._offers.get(message.number)
        if not message.confirms:
            self._is_keeping = False
            self._events = {}
            self._closing = {}
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._effects.append(Advertised(offer.name))
        if all(offer.is_stable for offer in self._offers.values()):
            self._held_back = 0

    def _learn(self, due: Due) -> None:
        """What others must have before anything that this client publishes from now on: the latest word, which stands
        on all before it."""
        self._due = due


def _last(held: _Held) -> Cuts:
    """Up to where the subscription got everything."""
    return {publisher: held.got.get(publisher, cut - 1) for publisher, cut in held.cuts.items()}


def _find(name: str, entries: Mapping[int, _Held | _Offer]) -> int | None:
    """The number of the entry of that name; a client has few."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
