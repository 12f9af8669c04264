"""A client that accepts calls, refuses invalid ones, and numbers its events.

All protocols refuse calls with the same messages. Each protocol defines how to carry out a call and how to interpret
the broker's answers.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.protocol import (
    Advertise,
    ClientNode,
    ClientPlace,
    CutFixed,
    Deliver,
    Effect,
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
from gapless.protocols.parts.held import Held, Offer
from gapless.protocols.parts.messages import Cuts

__all__ = ["Call", "CallingClient", "number_of"]

Call: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | Publish


class CallingClient(ClientNode):
    """Base of clients that accept calls. Protocols implement `_on_message`, and `_on_other_input` for other inputs."""

    def __init__(self, place: ClientPlace) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        """The number of subscriptions and advertisements made so far."""
        self._effects: list[Effect] = []

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        self._effects = []
        match item:
            case Received():
                self._receive(item)
            case Publish():
                self._publish(item)
            case Subscribe():
                self._subscribe(item)
            case Unsubscribe():
                self._unsubscribe(item)
            case Advertise():
                self._advertise(item)
            case Unadvertise():
                self._unadvertise(item)
            case _:
                self._on_other_input(item)
        return self._effects

    # ---- hooks for protocols ---------------------------------------------------------------

    @abstractmethod
    def _advertise(self, call: Advertise) -> None: ...

    @abstractmethod
    def _unadvertise(self, call: Unadvertise) -> None: ...

    @abstractmethod
    def _subscribe(self, call: Subscribe) -> None: ...

    @abstractmethod
    def _unsubscribe(self, call: Unsubscribe) -> None: ...

    @abstractmethod
    def _publish(self, call: Publish) -> None: ...

    @abstractmethod
    def _on_message(self, message: Any) -> None:
        """Process a message of the broker."""

    def _on_other_input(self, item: Input) -> None:
        """Process an input that is neither a call nor a message; most protocols ignore most of them."""

    def _send(self, message: Any) -> None:
        """Send a message to the broker."""
        self._effects.append(Send(self._broker, message))

    def _receive(self, item: Received) -> None:
        """Process a message, unless it comes from a former broker."""
        if item.peer == self._broker:
            self._on_message(item.message)

    # ---- calls --------------------------------------------------------------------------------------------

    def _reject(self, call: Call, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

    def _reject_taken(self, call: Advertise | Subscribe, name: str) -> None:
        self._reject(call, f"the name {name!r} is in use; choose another name")

    def _reject_unknown(self, call: Unadvertise | Unsubscribe) -> None:
        if isinstance(call, Unadvertise):
            self._reject(call, f"there is no advertisement {call.advertisement!r} to withdraw")
        else:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")

    def _filter_of(self, call: Advertise | Subscribe) -> Filter | None:
        """Return the filter of the call; if it is invalid, refuse the call and return None."""
        try:
            return parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return None

    def _next_event(self, call: Publish) -> Event:
        """Return the event of the call, with its number."""
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._effects.append(Published(event))
        return event

    # ---- answers ------------------------------------------------------------------------------------------

    def _fix(self, name: str, cuts: Cuts) -> None:
        """Report where a subscription starts with some publishers."""
        self._effects += [CutFixed(name, publisher, cut) for publisher, cut in cuts.items()]

    def _deliver(self, event: Event, numbers: Iterable[int], held_by_number: Mapping[int, Held]) -> None:
        """Deliver an event to each of these subscriptions that has not ended."""
        for number in numbers:
            held = held_by_number.get(number)
            if held is not None:
                held.got[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))


def number_of(name: str, entries: Mapping[int, Held | Offer]) -> int | None:
    """Return the number of the entry with this name. The search is linear, because a client has few entries."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
