"""A client of the `delta` protocol: attached to one broker, and waits for it if it fails.

It keeps each publication until it has reached every subscriber, and the position of each subscription. After a lost
connection it attaches again with this state: it repeats events that may have been lost, and receives the events of its
subscriptions that arrived in the meantime.

If the broker is away for longer than `patience_ms`, the client attaches to the next of its contacts and publishes the
kept events there, so that none is lost. Its subscriptions that have started end exactly at their positions, because no
broker keeps their next events; those that have not started are requested there.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import assert_never

from gapless.events import Event
from gapless.protocol import (
    Activated,
    Advertise,
    Advertised,
    ClientPlace,
    Confirmed,
    Connected,
    Deliver,
    Effect,
    Ended,
    Input,
    Publish,
    SetTimer,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)  # fmt: skip
from gapless_papers.protocols.delta.messages import (
    Accepted,
    Acknowledge,
    Attach,
    Claim,
    ClientOffers,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Cuts,
    Delivery,
    Detach,
    Lost,
    Started,
    ToClient,
)
from gapless_papers.protocols.delta.options import DeltaOptions
from gapless_papers.protocols.parts.calling_client import CallingClient
from gapless_papers.protocols.parts.numbered_names import name_of

__all__ = ["DeltaClient"]

PATIENCE = "patience"


class _Subscription:
    """A subscription as the client keeps it: its filter, and its position with each publisher."""

    def __init__(self, name: str, number: int, text: str) -> None:
        self.name = name
        self.number = number
        self.text = text
        self.wire_name = ""
        self.has_started = False
        self.positions: Cuts = {}
        """The last number of each publisher that was delivered, or that precedes the start."""


class DeltaClient(CallingClient):
    """A client node."""

    def __init__(self, place: ClientPlace, options: DeltaOptions) -> None:
        super().__init__(place)
        self._contacts = place.contacts
        self._patience_us = round(options.patience_ms * 1000)
        self._window = options.window
        self._now = 0
        self._attempts = 0
        self._suspected: dict[str, int] = {}
        self._kept: deque[Event] = deque()
        self._subscriptions: dict[str, _Subscription] = {}
        """By the name that the user chose."""
        self._by_wire_name: dict[str, _Subscription] = {}
        self._offers: dict[str, None] = {}
        self._publishes = False

    @property
    def window(self) -> int:
        """Return how many publications may be unconfirmed at a time."""
        return self._window

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        self._now = now
        return super().step(item, now)

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        return {"subscriptions": len(self._subscriptions), "kept": len(self._kept)}

    def _on_other_input(self, item: Input) -> None:
        match item:
            case Start():
                self._attach()
            case Connected():
                self._on_connected(item)
            case Suspected():
                self._on_suspected(item)
            case Trusted():
                self._on_trusted(item)
            case TimerFired():
                self._leave_unreachable_broker()
            case _:
                pass

    # ---- the broker ---------------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Send the broker the client's whole state; subscriptions that had not started are requested again."""
        self._attempts += 1
        claims, wishes = [], []
        for held in self._subscriptions.values():
            if held.has_started:
                claims.append(Claim(held.wire_name, dict(held.positions)))
            else:
                wishes.append(self._wish(held))
        self._send(Attach(self._seq, self._publishes, tuple(claims), tuple(wishes)))
        for event in self._kept:
            self._send(ClientPublish(event))

    def _wish(self, held: _Subscription) -> ClientSubscribe:
        self._by_wire_name.pop(held.wire_name, None)
        held.wire_name = name_of(self._name, f"{held.number}.{self._attempts}")
        self._by_wire_name[held.wire_name] = held
        return ClientSubscribe(held.wire_name, held.text)

    def _on_connected(self, item: Connected) -> None:
        if item.peer == self._broker:
            self._attach()

    def _on_suspected(self, item: Suspected) -> None:
        self._suspected[item.peer] = self._now
        if item.peer == self._broker:
            self._effects.append(SetTimer(PATIENCE, self._patience_us))

    def _on_trusted(self, item: Trusted) -> None:
        self._suspected.pop(item.peer, None)
        self._leave_unreachable_broker()

    def _leave_unreachable_broker(self) -> None:
        """Move to another broker if this one has been unreachable for too long and another is available."""
        since = self._suspected.get(self._broker)
        if since is None or self._now - since < self._patience_us:
            return
        found = next((contact for contact in self._contacts if contact not in self._suspected), None)
        if found is None:
            return
        self._send(Detach())
        self._broker = found
        for held in [held for held in self._subscriptions.values() if held.has_started]:
            self._end(held)
        self._attach()

    # ---- calls --------------------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        """Accept the advertisement at once. Delta floods subscriptions, so no broker needs advertisements."""
        if self._can_be_made(call, call.advertisement, self._offers):
            self._offers[call.advertisement] = None
            self._effects.append(Advertised(call.advertisement))
            if not self._publishes:
                self._publishes = True
                self._send(ClientOffers())

    def _unadvertise(self, call: Unadvertise) -> None:
        if call.advertisement not in self._offers:
            self._reject_unknown(call)
            return
        del self._offers[call.advertisement]

    def _subscribe(self, call: Subscribe) -> None:
        if self._can_be_made(call, call.subscription, self._subscriptions):
            self._calls += 1
            held = self._subscriptions[call.subscription] = _Subscription(call.subscription, self._calls, call.filter)
            self._send(self._wish(held))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        held = self._subscriptions.get(call.subscription)
        if held is None:
            self._reject_unknown(call)
            return
        self._end(held)
        self._send(ClientUnsubscribe(held.wire_name))

    def _publish(self, call: Publish) -> None:
        if len(self._kept) >= self._window:
            self._reject(call, f"{len(self._kept)} publications have not reached every subscriber; try later")
            return
        self._publishes = True
        event = self._next_event(call)
        self._kept.append(event)
        self._send(ClientPublish(event))

    def _can_be_made(self, call: Advertise | Subscribe, name: str, taken: Mapping[str, object]) -> bool:
        if name in taken:
            self._reject_taken(call, name)
            return False
        return self._filter_of(call) is not None

    def _end(self, held: _Subscription) -> None:
        del self._subscriptions[held.name]
        del self._by_wire_name[held.wire_name]
        self._effects.append(Ended(held.name, held.positions))

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_message(self, message: ToClient) -> None:
        match message:
            case Delivery():
                self._on_delivery(message)
            case Accepted():
                self._on_accepted(message)
            case Started():
                self._on_started(message)
            case Lost():
                self._on_lost(message)
            case _:
                assert_never(message)

    def _on_accepted(self, message: Accepted) -> None:
        before = len(self._kept)
        while self._kept and self._kept[0].seq <= message.seq:
            self._kept.popleft()
        if len(self._kept) != before:
            self._effects.append(Confirmed(message.seq))

    def _on_started(self, message: Started) -> None:
        held = self._by_wire_name.get(message.name)
        if held is not None:
            held.has_started = True
            held.positions = message.skipped | {publisher: cut - 1 for publisher, cut in message.cuts.items()}
            self._fix(held.name, message.cuts)
            self._effects.append(Activated(held.name))

    def _on_delivery(self, message: Delivery) -> None:
        event = message.event
        for name in message.names:
            held = self._by_wire_name.get(name)
            if held is not None:
                held.positions[event.publisher] = event.seq
                self._effects.append(Deliver(event, held.name))
        self._send(Acknowledge(message.ticket))

    def _on_lost(self, message: Lost) -> None:
        held = self._by_wire_name.get(message.name)
        if held is not None:
            self._end(held)
