"""A client that takes calls, refuses those that cannot be made, and numbers its events.

Every protocol's calls are refused in the same words. How a call is carried out, and what the broker's answers mean, is
the protocol's own.
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
    """What such clients have in common. A protocol says what it hears (`_hear`), and which other inputs it heeds."""

    def __init__(self, place: ClientPlace) -> None:
        self._name = place.name
        self._broker = place.broker
        self._seq = 0
        self._calls = 0
        """How many subscriptions and advertisements were numbered."""
        self._effects: list[Effect] = []

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
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
                self._heed(item)
        return self._effects

    # ---- what protocols do in their own way ---------------------------------------------------------------

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
    def _hear(self, message: Any) -> None:
        """What the broker says."""

    def _heed(self, item: Input) -> None:
        """An input that is neither a call nor a message; most protocols let most of them pass."""

    def _send(self, message: Any) -> None:
        """Tell the broker."""
        self._effects.append(Send(self._broker, message))

    def _receive(self, item: Received) -> None:
        """What a former broker said last comes too late."""
        if item.peer == self._broker:
            self._hear(item.message)

    # ---- calls --------------------------------------------------------------------------------------------

    def _reject(self, call: Call, reason: str) -> None:
        self._effects.append(Rejected(call, reason))

    def _reject_taken(self, call: Advertise | Subscribe, name: str) -> None:
        self._reject(call, f"{name!r} is taken; give it another name")

    def _reject_unknown(self, call: Unadvertise | Unsubscribe) -> None:
        if isinstance(call, Unadvertise):
            self._reject(call, f"there is no advertisement {call.advertisement!r} to take back")
        else:
            self._reject(call, f"there is no subscription {call.subscription!r} to end")

    def _filter_of(self, call: Advertise | Subscribe) -> Filter | None:
        """The filter of the call; one that cannot be read is refused."""
        try:
            return parse(call.filter)
        except FilterError as error:
            self._reject(call, str(error))
            return None

    def _next_event(self, call: Publish) -> Event:
        """The event of the call, with its number."""
        self._seq += 1
        event = Event(self._name, self._seq, call.attributes, call.payload)
        self._effects.append(Published(event))
        return event

    # ---- answers ------------------------------------------------------------------------------------------

    def _fix(self, name: str, cuts: Cuts) -> None:
        """Where a subscription starts with some publishers."""
        self._effects += [CutFixed(name, publisher, cut) for publisher, cut in cuts.items()]

    def _deliver(self, event: Event, numbers: Iterable[int], held_by_number: Mapping[int, Held]) -> None:
        """An event for some of the subscriptions; those that have ended are left out."""
        for number in numbers:
            held = held_by_number.get(number)
            if held is not None:
                held.got[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))


def number_of(name: str, entries: Mapping[int, Held | Offer]) -> int | None:
    """The number of the entry of that name; a client has few."""
    return next((number for number, entry in entries.items() if entry.name == name), None)
