"""What a client's node does about durable subscriptions, beside what it does about all: opening, confirming,
leaving."""

from typing import Protocol

from gapless.events import Event
from gapless.names import (
    Acknowledge,
    Acknowledged,
    Attached,
    DurableChanged,
    DurableInfo,
    DurablesListed,
    ListDurables,
    MoveDurable,
)
from gapless.printable import name_complaint
from gapless.protocol import Rejected, SetTimer, Subscribe
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client.named import Named
from gapless.protocols.gapless.client_messages import (
    ClientConfirm,
    ClientMove,
    ClientNames,
    ClientUnsubscribe,
    NameKept,
    NameLost,
    NameMoved,
    NameOpened,
    NameRefused,
    NamesTold,
)
from gapless.protocols.gapless.name_messages import NameRecord

__all__ = ["CONFIRM", "NamedClient"]

CONFIRM = "confirm"
"""The key of the timer."""
CONFIRM_US = 50_000
"""How long confirmations gather that nobody waits for."""
MANUAL_MAX = 100_000
"""How many deliveries may wait to be confirmed by the application."""


class Reader(Protocol):
    """Who reads for durable subscriptions, as for all others."""

    def begin_named(self, call: Subscribe, named: Named, record: NameRecord) -> None:
        """It is this client's: read from what the record says."""
        ...

    def end_named(self, subscription: str, reason: str) -> None:
        """Tell the application that it is over, and why."""
        ...


class NamedClient:
    """The durable subscriptions of one client."""

    def __init__(self, line: Line, reader: Reader) -> None:
        self._send = line.send
        self._emit = line.emit
        self._reader = reader
        self._attempt = 0
        self._named: dict[str, Named] = {}
        """By subscription."""
        self._questions: dict[int | str, ListDurables | MoveDurable] = {}
        """What was asked and not answered."""
        self._found: dict[int, list[DurableInfo]] = {}
        self._is_gathering = False

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._named

    # ---- calls --------------------------------------------------------------------------------------------

    def objection(self, call: Subscribe, *, is_held: bool) -> str:
        """Why the client cannot have it; nothing if it can. `is_held`: it is in a group of that name."""
        complaint = name_complaint("the name of a subscription", call.name)
        if complaint:
            return complaint
        if call.since is not None or call.until is not None:
            return (
                f"the durable subscription {call.name!r} goes on after what was confirmed; subscribe without `since` "
                "and `until`, or move it first"
            )
        if is_held or any(named.call.name == call.name for named in self._named.values()):
            return f"this client listens to the durable subscription {call.name!r} already; close that one first"
        return ""

    def subscribe(self, call: Subscribe) -> None:
        """Open it."""
        named = self._named[call.subscription] = Named(call)
        self._send(named.opening(self._attempt))

    def confirm(self, call: Acknowledge) -> None:
        """The application confirms all up to a delivery."""
        named = self._named.get(call.subscription)
        if named is not None:
            named.confirm(call.count)
            (self._tell if call.is_urgent else self._tell_later)(named)

    def unsubscribe(self, subscription: str) -> bool:
        """The client wants no more of it; whether the broker has to know what is confirmed before it ends."""
        named = self._named[subscription]
        if not named.is_open:
            del self._named[subscription]
            self._send(ClientUnsubscribe(self._attempt, subscription))
            return False
        named.is_leaving = True
        self._tell(named)
        return True

    def ask(self, call: ListDurables | MoveDurable) -> None:
        """The application wants to know, or to change, what there is."""
        self._questions[call.request] = call
        self._repeat(call)

    def _repeat(self, call: ListDurables | MoveDurable) -> None:
        if isinstance(call, ListDurables):
            self._found[call.request] = []
            self._send(ClientNames(self._attempt, call.request))
        else:
            self._send(self._moving(call))

    def _moving(self, call: MoveDurable) -> ClientMove:
        to = call.position
        after = None if to is None or to.is_network_wide else (to.timestamp, to.publisher, to.number)
        return ClientMove(self._attempt, call.request, call.name, call.filter, -1 if to is None else to.floor, after)

    # ---- the session --------------------------------------------------------------------------------------

    def attached(self, attempt: int) -> None:
        """A broker holds the session: say again what may not have been heard."""
        self._attempt = attempt
        for named in self._named.values():
            if named.is_open:
                self._say(named)
            else:
                self._send(named.opening(attempt))
        for call in list(self._questions.values()):
            self._repeat(call)

    def ended(self, subscription: str) -> None:
        """It is over."""
        self._named.pop(subscription, None)

    # ---- what comes ---------------------------------------------------------------------------------------

    def consumed(self, count: int) -> None:
        """The application has taken all up to this delivery."""
        for named in list(self._named.values()):
            if named.call.ack == "auto":
                named.confirm(count)
                self._tell_later(named)
            elif named.unconfirmed > MANUAL_MAX:
                reason = (
                    f"{MANUAL_MAX:,} events of the durable subscription {named.call.name!r} wait to be "
                    "acknowledged, which is the limit; acknowledge them, and attach again"
                )
                self._give_up(named, reason)

    def reached(self, named: Named, number: int, position: int) -> None:
        """All up to this position was delivered."""
        named.reached(number, position)
        self._tell_later(named)

    def delivered(self, named: Named, number: int, event: Event) -> None:
        """An event was delivered."""
        named.delivered(number, event)

    def receive(self, message: NameOpened | NameRefused | NameKept | NameLost | NamesTold | NameMoved) -> None:
        """The broker answers."""
        match message:
            case NameOpened():
                self._on_opened(message)
            case NameRefused():
                named = self._named.pop(message.subscription, None)
                if named is not None:
                    self._send(ClientUnsubscribe(self._attempt, message.subscription))
                    self._emit(Rejected(named.call, message.reason))
            case NameKept():
                self._on_kept(message)
            case NameLost():
                named = self._named.get(message.subscription)
                if named is not None:
                    self._give_up(named, message.reason)
            case NamesTold():
                self._on_told(message)
            case NameMoved():
                if self._questions.pop(message.request, None) is not None:
                    self._send(ClientUnsubscribe(self._attempt, message.request))
                    self._emit(DurableChanged(message.request, message.reason))

    def _on_opened(self, message: NameOpened) -> None:
        record = message.record
        named = self._named.get(message.subscription)
        if named is None:
            leaving = ClientConfirm(
                self._attempt, message.subscription, record.name, record.generation, 1, record.position, record.got,
                record.latest, True, record.done, 0, record.delivered,
            )  # fmt: skip
            self._send(leaving)
        elif not named.is_open:
            named.opened(record)
            self._emit(
                Attached(
                    message.subscription, record.name, record.generation, record.position, dict(record.got),
                    record.delivered,
                )
            )  # fmt: skip
            self._reader.begin_named(named.call, named, record)

    def _on_kept(self, message: NameKept) -> None:
        named = self._named.get(message.subscription)
        count = None if named is None else named.kept(message.serial)
        if named is None or count is None:
            return
        self._emit(Acknowledged(message.subscription, count, True))
        if named.has_left:
            self._send(ClientUnsubscribe(self._attempt, message.subscription))
        else:
            self._tell(named)

    def _on_told(self, message: NamesTold) -> None:
        if message.request not in self._questions:
            return
        found = self._found[message.request]
        for item in message.records:
            lag_s = max(0, message.position - item.position) / 1e6
            client = item.client if item.broker else ""
            found.append(DurableInfo(item.name, item.filter, item.begin, client, lag_s, item.is_shared))
        if message.is_last:
            del self._questions[message.request], self._found[message.request]
            self._emit(DurablesListed(message.request, found, message.position))

    def _give_up(self, named: Named, reason: str) -> None:
        subscription = named.call.subscription
        del self._named[subscription]
        if named.is_open:
            self._send(ClientUnsubscribe(self._attempt, subscription))
            self._reader.end_named(subscription, reason)
        else:
            self._emit(Rejected(named.call, reason))

    # ---- confirming ---------------------------------------------------------------------------------------

    def _tell(self, named: Named) -> None:
        if named.is_due:
            self._say(named)

    def _say(self, named: Named) -> None:
        message = named.confirming(self._attempt)
        self._emit(Acknowledged(message.subscription, named.count, False))
        self._send(message)

    def _tell_later(self, named: Named) -> None:
        if named.is_due and not self._is_gathering:
            self._is_gathering = True
            self._emit(SetTimer(CONFIRM, CONFIRM_US))

    def tell_gathered(self) -> None:
        """Acknowledge what has gathered."""
        self._is_gathering = False
        for named in list(self._named.values()):
            self._tell(named)
