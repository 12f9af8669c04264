"""The durable subscriptions of a client's node: calls of the application, and answers of the broker."""

from gapless.names import (
    Acknowledge,
    AcknowledgeEach,
    DurableChanged,
    DurableInfo,
    DurablesListed,
    ExtendAck,
    ListDurables,
    MoveDurable,
    Nack,
)
from gapless.printable import name_complaint
from gapless.protocol import Rejected, SetTimer, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_deliveries import ClientDeliveries
from gapless.protocols.gapless.client_publications import ClientPublications
from gapless.protocols.gapless.durable.client_messages import (
    AckResult,
    ClientList,
    ClientMove,
    DealtNote,
    DurableAttached,
    DurableListed,
    DurableLost,
    DurableMoved,
    DurableRefused,
    DurableReply,
    GroupOver,
)
from gapless.protocols.gapless.durable.exclusive import AGAIN, ExclusiveSubscriptions
from gapless.protocols.gapless.durable.joined_groups import BEAT, JoinedGroups
from gapless.protocols.gapless.durable.letters import Letters

__all__ = ["DURABLE_TIMERS", "DurableClient"]

GATHER = "durable-gather"
GATHER_US = 20_000
"""How long acknowledgements without a waiting caller are collected before they are sent."""
DURABLE_TIMERS = (GATHER, BEAT, AGAIN)


class DurableClient:
    """The durable subscriptions of one client."""

    def __init__(
        self, connection: ClientConnection, publications: ClientPublications, deliveries: ClientDeliveries
    ) -> None:
        self._connection = connection
        self._letters = Letters(connection, publications)
        self._exclusive = ExclusiveSubscriptions(connection, deliveries, self._letters)
        self._groups = JoinedGroups(connection, deliveries, self._letters)
        self._questions: dict[int | str, ListDurables | MoveDurable] = {}
        """Requests without an answer."""
        self._found: dict[int, list[DurableInfo]] = {}
        self._is_gathering = False

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._exclusive or subscription in self._groups

    # ---- calls --------------------------------------------------------------------------------------------

    def call(self, call: Acknowledge | AcknowledgeEach | Nack | ExtendAck | ListDurables | MoveDurable) -> None:
        """Process a call of the application, except subscribe and unsubscribe."""
        if isinstance(call, ListDurables | MoveDurable):
            self._questions[call.request] = call
            self._ask(call)
            return
        if call.subscription in self._exclusive:
            self._exclusive.call(call)
        elif call.subscription in self._groups:
            self._groups.call(call)
        if isinstance(call, Acknowledge | AcknowledgeEach) and call.is_urgent:
            self._send_reports()

    def subscribe(self, call: Subscribe) -> None:
        """Attach."""
        objection = self._objection(call)
        if objection:
            self._connection.emit(Rejected(call, objection))
            return
        self._letters.advertise(call)
        if call.group:
            self._groups.subscribe(call)
        else:
            self._exclusive.subscribe(call)

    def _objection(self, call: Subscribe) -> str:
        complaint = name_complaint("the name of a durable subscription", call.name)
        if complaint:
            return complaint
        if call.since is not None or call.until is not None:
            return (
                f"the durable subscription {call.name!r} goes on after what was acknowledged; subscribe without "
                "`since` and `until`, or move it first"
            )
        if self._exclusive.has(call.name) or self._groups.has(call.name):
            return f"this client is attached to the durable subscription {call.name!r} already; close that one first"
        return ""

    def unsubscribe(self, subscription: str) -> None:
        """Leave: send the last acknowledgements first."""
        if subscription in self._groups:
            self._groups.unsubscribe(subscription)
        else:
            self._exclusive.unsubscribe(subscription)

    def taken(self, count: int) -> None:
        """Note that the application has taken everything up to this delivery."""
        self._exclusive.taken(count)
        self._groups.taken(count)

    # ---- the session --------------------------------------------------------------------------------------

    def ready(self) -> None:
        """Repeat calls that may not have arrived, at the broker with the session."""
        self._exclusive.ready()
        self._groups.ready()
        for question in list(self._questions.values()):
            self._ask(question)

    def _ask(self, call: ListDurables | MoveDurable) -> None:
        session = self._connection.session
        if isinstance(call, ListDurables):
            self._found[call.request] = []
            self._connection.say(ClientList(session, call.request))
            return
        to = call.position
        after = None if to is None or to.is_network_wide else (to.timestamp, to.publisher, to.number)
        position = -1 if to is None else to.floor
        self._connection.say(ClientMove(session, call.request, call.name, call.filter, position, after))

    # ---- answers ------------------------------------------------------------------------------------------

    def receive(self, message: DurableReply) -> None:
        """Process an answer of the broker."""
        match message:
            case DurableAttached():
                if message.subscription in self._groups:
                    self._groups.attached(message)
                else:
                    self._exclusive.attached(message)
            case DurableRefused() | DurableLost():
                if message.subscription in self._groups:
                    self._groups.lose(message.subscription, message.reason)
                else:
                    self._exclusive.lose(message.subscription, message.reason)
            case AckResult():
                self._exclusive.stored(message)
            case DurableListed():
                self._listed(message)
            case DurableMoved():
                if self._questions.pop(message.request, None) is not None:
                    self._connection.emit(DurableChanged(message.request, message.reason))
            case GroupOver():
                self._groups.over(message)

    def _listed(self, message: DurableListed) -> None:
        if message.request not in self._questions:
            return
        found = self._found[message.request]
        for record in message.records:
            has_all = max(record.position, record.latest) >= message.published
            lag_s = 0.0 if has_all else max(0, message.newest - record.position) / 1e6
            who = "" if record.owner is None else record.owner.broker if record.is_shared else record.client
            found.append(DurableInfo(record.name, record.filter, record.begin, who, lag_s, record.is_shared))
        if message.is_last:
            del self._questions[message.request], self._found[message.request]
            self._connection.emit(DurablesListed(message.request, found, message.newest))

    def dealt(self, message: DealtNote) -> None:
        """Process a note of the coordinator of a shared subscription, in its place among the deliveries."""
        self._groups.dealt(message)

    # ---- acknowledgements ---------------------------------------------------------------------------------

    def timer_fired(self, key: str) -> None:
        """Handle a timer."""
        if key == GATHER:
            self._is_gathering = False
            self._send_reports()
        elif key == AGAIN:
            self._exclusive.deliver_again()
        else:
            self._groups.beat()

    def after_step(self) -> None:
        """Schedule due acknowledgements, including those of events whose dead letters are confirmed."""
        for letter in self._letters.take_confirmed():
            self._exclusive.letter_confirmed(letter.subscription, letter.count)
            self._groups.letter_confirmed(letter.subscription, letter.count)
        if not self._is_gathering and (self._exclusive.is_due or self._groups.is_due):
            self._is_gathering = True
            self._connection.emit(SetTimer(GATHER, GATHER_US))

    def _send_reports(self) -> None:
        self._exclusive.send_reports()
        self._groups.send_reports()
