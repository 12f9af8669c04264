"""A client of the `locaps` protocol: attached to one broker, and to another if that one fails.

**If its broker fails**, its subscriptions end at their positions, and the client is notified. It attaches to the next
live broker with its advertisements, its unconfirmed events, and its causal past; later calls are served there.
"""

from collections.abc import Mapping
from typing import assert_never

from gapless.events import Event
from gapless.protocol import (
    Advertise,
    ClientPlace,
    Ended,
    Input,
    Publish,
    Subscribe,
    Suspected,
    Trusted,
)  # fmt: skip
from gapless.protocols.parts.held import Offer
from gapless_papers.protocols.locaps.messages import (
    ClientReturn,
    Confirmation,
    Dead,
    Delivery,
    Due,
    Stable,
    Started,
    ToClient,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.parts.numbered_client import NumberedClient

__all__ = ["LocapsClient"]

HELD_MAX = 10_000
"""The number of events that a client can publish before its advertisements are stable; its broker keeps them."""


class LocapsClient(NumberedClient):
    """A client node."""

    def __init__(self, place: ClientPlace, options: LocapsOptions) -> None:
        super().__init__(place)
        self._held_back = 0
        self._closing: dict[int, Offer] = {}
        """Withdrawn advertisements that still have unconfirmed events."""
        self._contacts = place.contacts
        self._suspects: dict[str, None] = {}
        self._excluded: dict[str, None] = {}
        """Brokers that will not serve this client again: its former ones, and those that reported their exclusion."""
        self._former: tuple[str, ...] = ()
        self._events: dict[int, Event] = {}
        """The unconfirmed events."""
        self._is_keeping = options.paths == "f+1"
        self._due: Due = {}
        """The messages that others must process before any later event of this client."""

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        return {**super().state_size(), "unconfirmed": len(self._events)}

    # ---- requests ---------------------------------------------------------------------------------

    def _objection(self, call: Advertise | Subscribe | Publish) -> str:
        if not isinstance(call, Publish):
            return ""
        if self._held_back >= HELD_MAX:
            return f"{self._held_back} publications wait for stable advertisements; try again later"
        if len(self._events) >= HELD_MAX:
            return f"{len(self._events)} publications are not confirmed yet; try again later"
        return ""

    def _took_back(self, number: int, offer: Offer) -> None:
        if self._events:
            offer.last = self._seq
            self._closing[number] = offer

    def _published(self, event: Event) -> None:
        self._held_back += not all(offer.is_stable for offer in self._offers.values())
        if self._is_keeping:
            self._events[event.seq] = event

    # ---- failure of the broker ------------------------------------------------------------------------------

    def _on_other_input(self, item: Input) -> None:
        match item:
            case Suspected():
                self._on_suspected(item)
            case Trusted():
                self._suspects.pop(item.peer, None)
            case _:
                pass

    def _on_suspected(self, item: Suspected) -> None:
        self._suspects[item.peer] = None
        if item.peer == self._broker and self._is_keeping:
            self._attach_elsewhere()

    def _on_dead(self, message: Dead) -> None:
        """Move away from a broker that reports its exclusion. It does so in answer to each call; the first answer
        counts."""
        self._excluded[message.broker] = None
        if message.broker == self._broker:
            self._attach_elsewhere()

    def _attach_elsewhere(self) -> None:
        """Attach to the next contact, preferably one that is not suspected. Without any, stay here."""
        for held in self._subscriptions.values():
            self._effects.append(Ended(held.name, held.last()))
        self._subscriptions = {}
        self._excluded[self._broker] = None  # the broker that serves this client next considers its former brokers dead
        left = [name for name in self._contacts if name not in self._excluded]
        left.sort(key=self._suspects.__contains__)
        if not left:
            return
        self._former = (*self._former, self._broker)
        self._broker = left[0]
        offers = {number: offer.filter.text for number, offer in {**self._closing, **self._offers}.items()}
        events = list(self._events.values())
        self._send(ClientReturn(self._former, offers, tuple(self._closing), events, self._due))

    def _on_confirmation(self, message: Confirmation) -> None:
        for seq in [seq for seq in self._events if seq <= message.seq]:
            del self._events[seq]
        for number in [number for number, offer in self._closing.items() if offer.last <= message.seq]:
            del self._closing[number]

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_message(self, message: ToClient) -> None:
        match message:
            case Delivery():
                self._on_delivery(message)
            case Confirmation():
                self._on_confirmation(message)
            case Started():
                self._on_started(message)
            case Stable():
                self._on_stable(message)
            case Dead():
                self._on_dead(message)
            case _:
                assert_never(message)

    def _on_delivery(self, message: Delivery) -> None:
        if message.due:
            self._due = message.due  # the latest message, which includes all before it
        self._deliver(message.event, message.numbers, self._subscriptions)

    def _on_stable(self, message: Stable) -> None:
        if not message.confirms:
            self._is_keeping = False
            self._events = {}
            self._closing = {}
        self._stabilise(message.number)
        if all(offer.is_stable for offer in self._offers.values()):
            self._held_back = 0
