"""A client of the protocol, which owns its subscriptions, its advertisements and its unconfirmed publications.

It has all the state needed to continue at another broker: for each subscription the filter, the cuts, the position up
to which everything has arrived, and the last number of each publisher. A broker forwards matching events; the client
decides which are *due*. An event is due from the cut of its publisher on, or, without a cut, if its timestamp is after
the beginning of the successful attempt. No event is due twice.

Three parts share the connection: publications, deliveries, and durable subscriptions. This module moves the session
between brokers, and dispatches each input to its part.
"""

import zlib
from collections.abc import Mapping, Sequence

from gapless.names import Acknowledge, AcknowledgeEach, ExtendAck, ListDurables, MoveDurable, Nack
from gapless.protocol import (
    Advertise,
    ClientNode,
    ClientPlace,
    Connected,
    Consumed,
    Effect,
    Input,
    Publish,
    PublishMany,
    Received,
    Rejected,
    Send,
    SetTimer,
    Start,
    Subscribe,
    Superseded,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)
from gapless.protocols.gapless import client_messages as messages
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_deliveries import ClientDeliveries
from gapless.protocols.gapless.client_publications import ClientPublications
from gapless.protocols.gapless.durable.client import DURABLE_TIMERS, DurableClient
from gapless.protocols.gapless.durable.client_messages import DealtNote, DurableReply
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.options import GaplessOptions

__all__ = ["GaplessClient"]

RETRY = "retry"
RETURN = "return"
PATIENCE_MAX = 64
PATIENCE_MIN = 8
"""The minimum timeout, as a multiple of the retry interval. A broker that is not ready says so every 100 ms, and can be
several times slower on a busy machine."""
RETRIES_MAX = 50
"""How many times a broker can answer that it is not ready before the client asks another."""


class GaplessClient(ClientNode):
    def __init__(self, place: ClientPlace, options: GaplessOptions) -> None:
        self._options = options
        self._contacts = list(place.contacts)
        self._preferred = place.broker
        self._connection = ClientConnection(place.name, place.broker)
        self._publications = ClientPublications(self._connection, options.client_window)
        self._deliveries = ClientDeliveries(self._connection)
        self._durable = DurableClient(self._connection, self._publications, self._deliveries)
        self._opened = 0
        """The number of the session that was last open."""
        self._patience = 1
        self._retries = 0
        self._silent: dict[str, None] = {}
        """The brokers that the failure detector suspects, as an ordered set."""
        self._asked: dict[str, None] = {}
        """The brokers that were asked in this round through all contacts, as an ordered set."""
        self._is_superseded = False
        """Whether another process continues as this client. Brokers then ignore this one."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        effects = self._connection.effects = []
        self._connection.now = now
        self._handle(item)
        self._durable.after_step()
        return effects

    def _handle(self, item: Input) -> None:
        match item:
            case Received():
                self._receive(item.peer, item.message)
            case Consumed():
                self._deliveries.taken(item.count)
                self._durable.taken(item.count)
            case Publish():
                self._publications.publish([item])
            case PublishMany():
                self._publications.publish_many(item)
            case Advertise():
                self._publications.advertise(item)
            case Unadvertise():
                self._publications.unadvertise(item)
            case Subscribe():
                self._subscribe(item)
            case Unsubscribe():
                self._unsubscribe(item)
            case Start():
                self._attach()
            case Connected() | Trusted():
                self._found(item.peer, is_new=isinstance(item, Connected))
            case Suspected():
                self._silent[item.peer] = None
                if item.peer == self.broker:
                    self._try_next()
            case Acknowledge() | AcknowledgeEach() | Nack() | ExtendAck() | ListDurables() | MoveDurable():
                self._durable.call(item)
            case TimerFired() if item.key in DURABLE_TIMERS:
                self._durable.timer_fired(item.key)
            case TimerFired() if item.key == RETURN:
                self._wish()
            case TimerFired():
                if not self.is_attached:
                    self._try_next()
            case _:
                raise AssertionError(f"no input of a client: {item!r}")

    def _subscribe(self, call: Subscribe) -> None:
        if call.subscription in self._durable:
            self._connection.emit(Rejected(call, f"the name {call.subscription!r} is in use; choose another name"))
        elif not call.name:
            self._deliveries.subscribe(call)
        elif self._connection.parse(call) is not None:
            self._durable.subscribe(call)

    def _unsubscribe(self, call: Unsubscribe) -> None:
        is_durable = call.subscription in self._durable
        is_waiting = is_durable and call.subscription not in self._deliveries
        if not is_waiting and not self._deliveries.begin_ending(call.subscription):
            self._connection.emit(Rejected(call, f"there is no subscription {call.subscription!r} to end"))
        elif is_durable:
            self._durable.unsubscribe(call.subscription)

    # ---- the session --------------------------------------------------------------------------------------

    def _attach(self) -> None:
        if self._is_superseded:
            return
        connection, publications, deliveries = self._connection, self._publications, self._deliveries
        connection.session += 1
        connection.is_attached, self._retries = False, 0
        published = publications.last + publications.is_successor  # if unsure, a broker looks up the last number
        attach = messages.Attach(
            connection.session, connection.incarnation, self._opened, deliveries.received, connection.largest,
            published, publications.confirmed, publications.base, publications.settled,
        )  # fmt: skip
        connection.emit(Send(self.broker, attach))
        self._set_timer()

    def _set_timer(self) -> None:
        patience = min(self._patience, PATIENCE_MIN) if self.broker in self._silent else self._patience
        self._connection.emit(SetTimer(RETRY, int(self._options.retry_ms * 1000 * patience)))

    def _set_return(self) -> None:
        """Set the timer after which a client that had to move asks for its preferred broker."""
        if self.broker != self._preferred:
            spread = 1 + zlib.crc32(self._connection.client.encode()) / (1 << 32)
            self._connection.emit(SetTimer(RETURN, int(self._options.rebalance_ms * 1000 * spread)))

    def _wish(self) -> None:
        if not self._deliveries.is_reading:
            self._connection.say(messages.ClientWish(self._connection.session, self._preferred))
        self._set_return()

    def _found(self, broker: str, *, is_new: bool) -> None:
        """Attach to a broker that became reachable if it is the current one on a new connection, or if the current one
        seems unreachable."""
        self._silent.pop(broker, None)
        self._asked.pop(broker, None)
        if broker == self.broker:
            if is_new:
                self._attach()
        elif broker in self._contacts and self.broker in self._silent:
            self._try_next()

    def _try_next(self) -> None:
        """Ask the next contact for a session. Suspected contacts come last, with a shorter timeout. The timeout doubles
        after each round."""
        place = self._contacts.index(self.broker) if self.broker in self._contacts else -1
        following = self._contacts[place + 1 :] + self._contacts[: place + 1]
        if all(name in self._asked for name in following):
            self._asked.clear()
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        due = [name for name in following if name not in self._asked]
        self._connection.broker = next((name for name in due if name not in self._silent), due[0])
        self._asked[self.broker] = None
        self._attach()

    def _receive(self, peer: str, message: messages.Answer) -> None:
        if peer != self.broker or message.session != self._connection.session:
            if isinstance(message, messages.Ready):
                self._connection.emit(Send(peer, messages.Detach(message.session)))
            return
        match message:
            case messages.Ready():
                self._ready(message)
            case messages.Retry():
                self._retries += 1
                self._patience = max(self._patience, PATIENCE_MIN)
                if self._retries > RETRIES_MAX:
                    self._try_next()
                else:
                    self._set_timer()
            case messages.Closed():
                self._connection.is_attached = False
                if message.is_superseded:
                    self._is_superseded = True
                    self._connection.emit(Superseded())
                else:
                    self._try_next()
            case messages.Granted():
                self._connection.broker, self._patience = message.broker, PATIENCE_MIN
                self._attach()
            case (
                messages.Stable() | messages.Unadvertised() | messages.Confirmed() | messages.Missing()
                | messages.LossKept()
            ):  # fmt: skip
                self._publications.receive(message)
            case DurableReply():
                self._durable.receive(message)
            case _:
                if self._deliveries.is_next(message):
                    if isinstance(message, DealtNote):
                        self._durable.dealt(message)
                    else:
                        self._deliveries.receive(message)
                    self._deliveries.handled()

    def _ready(self, message: messages.Ready) -> None:
        connection = self._connection
        connection.is_attached = True
        connection.incarnation, self._opened = Incarnation(*message.incarnation), connection.session
        self._patience = 1
        self._asked.clear()
        self._contacts = message.contacts
        self._publications.ready(message)
        self._deliveries.ready(message)
        self._durable.ready()
        self._publications.send_again(is_resumed=message.is_resumed)
        self._set_return()

    # ---- queries ------------------------------------------------------------------------------------------

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's state, by component."""
        return {"subscriptions": len(self._deliveries), "unsafe": self._publications.waiting}

    @property
    def window(self) -> int:
        """Return the maximum number of unconfirmed publications."""
        return self._options.client_window

    @property
    def delivery_window(self) -> int:
        """Return the maximum number of deliveries that a broker sends before the application takes them."""
        return self._options.delivery_window

    @property
    def is_attached(self) -> bool:
        """Return whether a broker has the session, and has received the subscriptions and advertisements."""
        return self._connection.is_attached

    @property
    def broker(self) -> str:
        """Return the broker that has the session, or the one being asked for it."""
        return self._connection.broker

    @property
    def standing(self) -> tuple[str, int, int]:
        """Return the incarnation that has the session, the number of the session, and the number of the last event."""
        incarnation = self._connection.incarnation
        home = "" if incarnation is None else f"{incarnation.broker}/{incarnation.number}"
        return home, self._connection.session, self._publications.last

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Continue the identity of a client whose process has ended. Must be called before the first input."""
        broker, _, number = home.rpartition("/")
        self._connection.incarnation = Incarnation(broker, int(number)) if broker else None
        self._connection.session = attempt
        self._publications.take_over(seq)
