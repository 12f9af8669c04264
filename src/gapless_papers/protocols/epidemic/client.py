"""A client of the `epidemic` protocol, permanently attached to one broker.

It numbers its events and its calls, and turns its broker's answers into effects. Advertisements are not used, so an
advertisement is stable as soon as it is made. A subscription is active when its broker has it; its start is not
defined, so there is no cut. The client never delivers an event twice, even if its broker lost its memory in a crash.
"""

from collections.abc import Mapping
from typing import assert_never

from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Connected,
    Ended,
    Input,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.parts.held import Held
from gapless_papers.protocols.epidemic.messages import (
    Accepted,
    ClientPublish,
    ClientState,
    ClientSubscribe,
    ClientUnsubscribe,
    Delivery,
    ToClient,
)
from gapless_papers.protocols.epidemic.options import EpidemicOptions
from gapless_papers.protocols.epidemic.received import Received
from gapless_papers.protocols.parts.calling_client import CallingClient, number_of

__all__ = ["EpidemicClient"]


class _Asked(Held):
    """A subscription as the client keeps it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self.filter = text


class EpidemicClient(CallingClient):
    """A client node."""

    def __init__(self, place: ClientPlace, options: EpidemicOptions) -> None:
        super().__init__(place)
        self._subscriptions: dict[int, _Asked] = {}
        self._advertisements: dict[str, None] = {}
        self._received = Received(options.remembered)

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        return {"subscriptions": len(self._subscriptions), "remembered": len(self._received)}

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        if call.advertisement in self._advertisements:
            self._reject_taken(call, call.advertisement)
        elif self._filter_of(call) is not None:
            self._advertisements[call.advertisement] = None
            self._effects.append(Advertised(call.advertisement))

    def _unadvertise(self, call: Unadvertise) -> None:
        if call.advertisement in self._advertisements:
            del self._advertisements[call.advertisement]
        else:
            self._reject_unknown(call)

    def _subscribe(self, call: Subscribe) -> None:
        if number_of(call.subscription, self._subscriptions) is not None:
            self._reject_taken(call, call.subscription)
        elif self._filter_of(call) is not None:
            self._calls += 1
            self._subscriptions[self._calls] = _Asked(call.subscription, call.filter)
            self._send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = number_of(call.subscription, self._subscriptions)
        if number is None:
            self._reject_unknown(call)
            return
        del self._subscriptions[number]
        self._effects.append(Ended(call.subscription, {}))
        self._send(ClientUnsubscribe(number))

    def _publish(self, call: Publish) -> None:
        self._send(ClientPublish(self._next_event(call)))

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_message(self, message: ToClient) -> None:
        match message:
            case Delivery():
                self._on_delivery(message)
            case Accepted():
                self._on_accepted(message)
            case _:
                assert_never(message)

    def _on_other_input(self, item: Input) -> None:
        if isinstance(item, Connected) and item.peer == self._broker:
            self._send(ClientState({number: held.filter for number, held in self._subscriptions.items()}))

    def _on_accepted(self, message: Accepted) -> None:
        held = self._subscriptions.get(message.number)
        if held is not None and not held.is_active:
            held.is_active = True
            self._effects.append(Activated(held.name))

    def _on_delivery(self, message: Delivery) -> None:
        event = message.event
        if self._received.enter((event.publisher, event.seq)):
            self._deliver(event, message.numbers, self._subscriptions)
