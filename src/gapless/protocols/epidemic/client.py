"""A client of the `epidemic` protocol: attached to one broker for good.

It numbers its events and its calls, and turns its broker's answers into effects. Nobody needs advertisements here, so
one is stable as soon as it is made. A subscription is active when its broker has it; nothing is promised about where it
starts, so there is no cut. What the client has had it does not deliver again, whatever its broker forgot in a crash.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless.events import Event
from gapless.filters import FilterError, parse
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientNode,
    ClientPlace,
    Connected,
    Deliver,
    Effect,
    Ended,
    Input,
    Publish,
    Published,
    Rejected,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocol import Received as ReceivedInput
from gapless.protocols.epidemic.messages import (
    Accepted,
    ClientPublish,
    ClientState,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
)
from gapless.protocols.epidemic.options import EpidemicOptions
from gapless.protocols.epidemic.received import Received

__all__ = ["EpidemicClient"]


class _Held:
    """A subscription as the client holds it."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.filter = text
        self.is_active = False


class EpidemicClient(ClientNode):
    """A client node."""

    def __init__(self, place: ClientPlace, options: EpidemicOptions) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        self._subscriptions: dict[int, _Held] = {}
        self._advertisements: dict[str, None] = {}
        self._received = Received(options.remembered)
        self._effects: list[Effect] = []
        self._handlers: dict[type, Callable[[Any], None]] = {
            Advertise: self._advertise,
            Unadvertise: self._unadvertise,
            Subscribe: self._subscribe,
            Unsubscribe: self._unsubscribe,
            Publish: self._publish,
            Connected: self._on_connected,
            ReceivedInput: lambda item: self._handlers[type(item.message)](item.message),
            Accepted: self._on_accepted,
            Delivery: self._on_delivery,
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
        return {"subscriptions": len(self._subscriptions), "remembered": len(self._received)}

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        if call.advertisement in self._advertisements:
            self._reject(call, f"{call.advertisement!r} is taken; give it another name")
        elif self._is_filter(call):
            self._advertisements[call.advertisement] = None
            self._effects.append(Advertised(call.advertisement))

    def _unadvertise(self, call: Unadvertise) -> None:
        if call.advertisement in self._advertisements:
            del self._advertisements[call.advertisement]
        else:
            self._reject(call, f"there is no advertisement {call.advertisement!r} to take back")

    def _subscribe(self, call: Subscribe) -> None:
        if self._find(call.subscription) is not None:
            self._reject(call, f"{call.subscription!r} is taken; give it another name")
        elif self._is_filter(call):
            self._calls += 1
            self._subscriptions[self._calls] = _Held(call.subscription, call.filter)
            self._send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = self._find(call.subscription)
        if number is None:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")
            return
        del self._subscriptions[number]
        self._effects.append(Ended(call.subscription, {}))
        self._send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._effects.append(Published(event))
        self._send(ClientPublish(event))

    def _is_filter(self, call: Advertise | Subscribe) -> bool:
        try:
            parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return False
        return True

    def _find(self, name: str) -> int | None:
        """The number of the subscription of that name; a client has few."""
        return next((number for number, held in self._subscriptions.items() if held.name == name), None)

    def _reject(self, call: Advertise | Unadvertise | Subscribe | Unsubscribe, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

    def _send(self, message: Any) -> None:
        self._effects.append(Send(self._broker, message))

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_connected(self, item: Connected) -> None:
        if item.peer == self._broker:
            self._send(ClientState({number: held.filter for number, held in self._subscriptions.items()}))

    def _on_accepted(self, message: Accepted) -> None:
        held = self._subscriptions.get(message.number)
        if held is not None and not held.is_active:
            held.is_active = True
            self._effects.append(Activated(held.name))

    def _on_delivery(self, message: Delivery) -> None:
        event = message.event
        if self._received.enter((event.publisher, event.seq)):
            for number in message.numbers:
                held = self._subscriptions.get(number)
                if held is not None:
                    self._effects.append(Deliver(event, held.name))
