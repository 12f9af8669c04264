"""A client that numbers its subscriptions and advertisements, and turns its broker's answers into effects.

The broker's messages arrive in order, so the events delivered when a subscription ends are an exact ending cut:
everything of each publisher up to its last event, and nothing after. Events still in transit then are dropped.
"""

from collections.abc import Mapping

from gapless.events import Event
from gapless.filters import Filter
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Ended,
    Publish,
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
    Started,
)
from gapless_papers.protocols.parts.calling_client import CallingClient, number_of

__all__ = ["NumberedClient"]


class NumberedClient(CallingClient):
    """Base of clients that number subscriptions and advertisements. A protocol defines the messages."""

    def __init__(self, place: ClientPlace) -> None:
        super().__init__(place)
        self._subscriptions: dict[int, Held] = {}
        self._offers: dict[int, Offer] = {}

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        return {"subscriptions": len(self._subscriptions), "advertisements": len(self._offers)}

    # ---- hooks for protocols ---------------------------------------------------------------

    def _objection(self, call: Advertise | Subscribe | Publish) -> str:
        """Return why this call cannot be made at the moment; empty if it can."""
        return ""

    def _took_back(self, number: int, offer: Offer) -> None:
        """Hook: an advertisement was withdrawn."""

    def _published(self, event: Event) -> None:
        """Hook: an event is about to be sent."""

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, self._offers)
        if pattern is not None:
            self._calls += 1
            self._offers[self._calls] = Offer(call.advertisement, pattern)
            self._send(ClientAdvertise(self._calls, call.filter))

    def _unadvertise(self, call: Unadvertise) -> None:
        number = number_of(call.advertisement, self._offers)
        if number is None:
            self._reject_unknown(call)
            return
        self._took_back(number, self._offers.pop(number))
        self._send(ClientUnadvertise(number))

    def _subscribe(self, call: Subscribe) -> None:
        if self._parse(call, call.subscription, self._subscriptions) is not None:
            self._calls += 1
            self._subscriptions[self._calls] = Held(call.subscription)
            self._send(ClientSubscribe(self._calls, call.filter))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        number = number_of(call.subscription, self._subscriptions)
        if number is None:
            self._reject_unknown(call)
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
        event = self._next_event(call)
        self._published(event)
        self._send(ClientPublish(event))

    def _parse(self, call: Advertise | Subscribe, name: str, taken: Mapping[int, Held | Offer]) -> Filter | None:
        """Return the filter of a valid call."""
        if number_of(name, taken) is not None:
            self._reject_taken(call, name)
            return None
        pattern = self._filter_of(call)
        if pattern is None:
            return None
        objection = self._objection(call)
        if objection:
            self._reject(call, objection)
        return None if objection else pattern

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_started(self, message: Started) -> None:
        held = self._subscriptions.get(message.number)
        if held is None:
            return
        held.cuts.update(message.cuts)
        self._fix(held.name, message.cuts)
        if not held.is_active:
            held.is_active = True
            self._effects.append(Activated(held.name))

    def _stabilise(self, number: int) -> None:
        """Report that every relevant broker knows the advertisement."""
        offer = self._offers.get(number)
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._effects.append(Advertised(offer.name))
