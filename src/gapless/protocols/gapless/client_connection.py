"""The state shared by all parts of a client's node: the session at its broker, and the effects of the step."""

from gapless.errors import CallError
from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.protocol import Advertise, Deliver, Effect, Rejected, Send, Subscribe
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.parts.bounds import check_readings, check_texts

__all__ = ["ClientConnection"]


class ClientConnection:
    """The session of a client, and its connections to its broker and to the application."""

    def __init__(self, client: str, broker: str) -> None:
        self.client = client
        self.broker = broker
        """The broker that has the session, or the one being asked for it."""
        self.session = 0
        self.is_attached = False
        """Whether the broker has the session."""
        self.incarnation: Incarnation | None = None
        """The broker incarnation that last had a session of this client."""
        self.subscribed: dict[str, Filter] = {}
        self.advertised: dict[str, Filter] = {}
        """The filters of the advertisements, by name. `subscribed` has those of the subscriptions. Their total length
        is bounded."""
        self.now = 0
        """The time of the current step."""
        self.effects: list[Effect] = []
        self.delivered = 0
        """The number of events delivered to the application."""
        self.largest = 0
        """The largest timestamp delivered."""

    def emit(self, effect: Effect) -> None:
        """Add an effect to those of this step."""
        self.effects.append(effect)

    def say(self, message: object) -> None:
        """Send a message to the broker if the session is open."""
        if self.is_attached:
            self.effects.append(Send(self.broker, message))

    def deliver(self, event: Event, subscription: str, deliveries: int, *, is_again: bool) -> int:
        """Deliver an event of a durable subscription; return the number of the delivery."""
        self.largest = max(self.largest, event.stamp)
        self.delivered += 1
        self.emit(Deliver(event, subscription, is_again, deliveries))
        return self.delivered

    def parse(self, call: Advertise | Subscribe, readings: int = 0) -> Filter | None:
        """Return the parsed filter of the call, or None after rejecting the call."""
        is_advertisement = isinstance(call, Advertise)
        name = call.advertisement if isinstance(call, Advertise) else call.subscription
        if name in (self.advertised if is_advertisement else self.subscribed):
            self.emit(Rejected(call, f"the name {name!r} is in use; choose another name"))
            return None
        try:
            held = (*self.subscribed.items(), *self.advertised.items())
            check_texts(self.client, (*((each, pattern.text) for each, pattern in held), (name, call.filter)))
            check_readings(self.client, readings)
            return parse(call.filter)
        except (CallError, FilterError) as error:
            self.emit(Rejected(call, str(error)))
            return None
