"""A broker of the `delta` protocol: dispatches each input to the module with the rules for it.

| rules | module |
| --- | --- |
| nearby brokers, reachability, and routes | `neighbourhood` |
| the shared state of two brokers | `sessions` |
| unreachable brokers, and who must know of them | `partitions` |
| subscriptions: forwarding, confirming, partial recovery | `subscriptions`, `propagation` |
| full recovery | `recovery` |
| publications: forwarding, confirming | `forwarding` |
| duplicates and legitimacy | `sequences` |
| clients | `attachments` |

The broker itself adds a time limit. A gate that is unreachable for longer than `patience_ms` is given up, and the
events kept for it are dropped. If the gate is a subscriber's broker, the subscription ends, and its broker is notified
if it returns. If the gate is on the path to others, more than δ brokers in a row have failed, and those behind it may
be running; their subscriptions end only if the path opens again and something was dropped. With `legitimacy = relaxed`
they continue with a gap.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    Effect,
    Input,
    Received,
    Send,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
    Trusted,
)
from gapless_papers.protocols.delta.attachments import Attachments
from gapless_papers.protocols.delta.forwarding import Forwarding
from gapless_papers.protocols.delta.messages import (
    Acknowledge,
    AddSubscription,
    Attach,
    ClientOffers,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    ConfirmPublication,
    ConfirmSubscription,
    Detach,
    FromBroker,
    FromClient,
    Hello,
    Partition,
    PartitionOver,
    Partitions,
    Publication,
    Recovered,
    RemoveSubscription,
    SubscriptionsReceived,
    Synchronised,
    Use,
)
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.options import DeltaOptions
from gapless_papers.protocols.delta.partitions import PartitionTable
from gapless_papers.protocols.delta.propagation import Propagation
from gapless_papers.protocols.delta.recovery import Recovery
from gapless_papers.protocols.delta.sequences import Sequences
from gapless_papers.protocols.delta.sessions import Session, Sessions
from gapless_papers.protocols.delta.subscriptions import SubscriptionTable

__all__ = ["DeltaBroker"]

GATE, CLIENT, RECOVERY = "gate/", "client/", "recovery/"
"""The kinds of timers."""


class DeltaBroker(BrokerNode):
    """A broker node."""

    def __init__(self, place: BrokerPlace, options: DeltaOptions) -> None:
        self._incarnation = place.incarnation
        self._patience_us = round(options.patience_ms * 1000)
        self._now = 0
        self._effects: list[Effect] = []
        self._is_strict = options.legitimacy == "wait"
        self._unreachable: dict[str, int] = {}
        """Unreachable gates, with the time at which each became unreachable."""
        send = self._send
        self._neighbourhood = Neighbourhood(place.name, place.overlay, place.f + 1)
        self._sessions = Sessions(place.incarnation, self._neighbourhood, send, self)
        self._table = SubscriptionTable(self._neighbourhood)
        self._sequences = Sequences(place.name, place.incarnation, place.f)
        self._partitions = PartitionTable(place, self._neighbourhood, self._sessions, send)
        self._attachments = Attachments(
            send, lambda: self._recovery.is_recovering, lambda client: self._set_timer(CLIENT, client)
        )
        self._forwarding = Forwarding(
            self._neighbourhood, self._sessions, self._table, self._partitions, self._sequences, self._attachments,
            options, send,
        )  # fmt: skip
        self._propagation = Propagation(
            place, self._neighbourhood, self._sessions, self._table, self._partitions, self._sequences,
            self._forwarding, self._attachments, options, send,
        )  # fmt: skip
        self._attachments.forwarding = self._forwarding
        self._attachments.propagation = self._propagation
        self._recovery = Recovery(
            self._neighbourhood, self._sessions, send, self._attachments.on_broker_recovered,
            is_recovering=place.incarnation > 0 and "synchronise" not in options.switched_off,
        )  # fmt: skip

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        self._effects = []
        self._now = now
        match item:
            case Received():
                self._on_received(item)
            case TimerFired():
                self._on_timer(item)
            case Connected():
                self._on_connected(item)
            case Suspected():
                self._on_suspected(item)
            case Trusted():
                self._on_trusted(item)
            case Start():
                self._on_start()
            case _:
                raise AssertionError(f"no input of a broker: {item!r}")
        return self._effects

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's tables; the paper's figures show `active_sessions` and `neighbourhood`."""
        return {
            "neighbourhood": len(self._neighbourhood.paths),
            "active_sessions": len(self._neighbourhood.active),
            "sessions": len(self._sessions),
            "partitions": len(self._partitions),
            "barriers": self._partitions.barriers,
            "subscriptions": len(self._table),
            "pending": len(self._table.pending),
            "publications": len(self._forwarding),
            "parked": self._forwarding.parked,
            "backlog": self._attachments.backlog,
            "sequences": len(self._sequences),
            "clients": len(self._attachments),
        }

    @property
    def active_sessions(self) -> tuple[str, ...]:
        """Return the brokers to which this one routes."""
        return tuple(self._neighbourhood.active)

    # ---- inputs -------------------------------------------------------------------------------------------

    def _on_start(self) -> None:
        if self._incarnation == 0:
            self._sessions.agree_silently()
        else:
            self._sessions.use_active()
            self._recovery.proceed()
            self._set_timer(RECOVERY, "")

    def _on_received(self, item: Received) -> None:
        peer, message = item.peer, item.message
        if peer not in self._neighbourhood.paths:
            self._on_asked(peer, message)
        elif message.__class__ is Hello:
            self._sessions.on_hello(peer, message)
        elif message.__class__ is Use:
            self._sessions.on_use(peer, message)
        else:
            session = self._sessions.get(peer)
            if session.is_peer_informed_of_session:
                self._on_neighbour_message(session, message)

    def _on_neighbour_message(self, session: Session, message: FromBroker) -> None:
        match message:
            case Publication():
                self._forwarding.on_publication(session, message)
            case ConfirmPublication():
                self._forwarding.on_confirmed(session, message)
            case Recovered():
                self._forwarding.on_notice(session, message)
            case AddSubscription():
                self._on_add(session, message)
            case ConfirmSubscription():
                self._propagation.on_confirm(session, message)
            case RemoveSubscription():
                self._propagation.on_remove(session, message)
            case SubscriptionsReceived():
                self._propagation.on_receipt(session, message)
            case Synchronised():
                self._on_synchronised(session, message)
            case Partitions():
                self._partitions.on_partitions(session, message)
            case PartitionOver():
                self._partitions.on_over(session, message)
            case _:
                assert_never(message)

    def _on_asked(self, client: str, call: FromClient) -> None:
        match call:
            case ClientPublish():
                self._attachments.on_publish(client, call)
            case Acknowledge():
                self._attachments.on_acknowledge(client, call)
            case Attach():
                self._attachments.on_attach(client, call)
            case Detach():
                self._attachments.on_detach(client)
            case ClientSubscribe():
                self._attachments.on_subscribe(client, call)
            case ClientUnsubscribe():
                self._attachments.on_unsubscribe(client, call.name)
            case ClientOffers():
                self._attachments.on_offers(client)
            case _:
                assert_never(call)

    def _on_connected(self, item: Connected) -> None:
        if item.peer in self._neighbourhood.paths:
            self._sessions.on_connected(item.peer)
        else:
            self._attachments.on_missing(item.peer, is_broken=True)

    def _on_suspected(self, item: Suspected) -> None:
        if item.peer not in self._neighbourhood.paths:
            self._attachments.on_missing(item.peer, is_broken=False)
            return
        changed = self._neighbourhood.suspect(item.peer)
        self._sessions.on_suspected(item.peer)
        if changed:
            self._rearrange()

    def _on_trusted(self, item: Trusted) -> None:
        if item.peer not in self._neighbourhood.paths:
            self._attachments.on_back(item.peer)
            return
        if self._neighbourhood.trust(item.peer):
            self._rearrange()
        self._sessions.on_trusted(item.peer)

    def _on_timer(self, item: TimerFired) -> None:
        latest = self._now - self._patience_us
        if item.key == RECOVERY:
            self._recovery.give_up()
        elif item.key.startswith(GATE):
            self._give_up(item.key.removeprefix(GATE), latest)
        else:
            self._attachments.on_timer(item.key.removeprefix(CLIENT), latest)

    def _on_add(self, session: Session, message: AddSubscription) -> None:
        self._propagation.on_add(session, message)
        if self._neighbourhood.failed:
            self._watch_gates()

    def _on_synchronised(self, session: Session, message: Synchronised) -> None:
        session.is_synchronised = True
        session.is_peer_informed = message.is_informed
        self._propagation.end_partitions(session)
        self._forwarding.flush(session)
        self._recovery.proceed()

    # ---- callbacks of sessions -------------------------------------------------------------------------------

    def summary(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Partition, ...]]:
        """Return the confirmed subscriptions, the other known ones, and the partitions detected here."""
        return *self._table.summary(), self._partitions.own

    def on_greeted(self, session: Session, hello: Hello) -> None:
        """Begin a session."""
        self._partitions.learn_all(session, hello.partitions)
        self._partitions.introduce(session)
        self._propagation.send_all(session, hello)
        self._recovery.proceed()

    def on_closed(self, session: Session) -> None:
        """End a session."""
        self._propagation.on_closed(session)

    # ---- internals -------------------------------------------------------------------------------------------

    def _rearrange(self) -> None:
        """Recompute routes after the set of bypassed brokers has changed."""
        self._neighbourhood.survey()
        self._table.forget_plans()
        self._partitions.detect()
        self._sessions.use_active()
        self._forwarding.reroute()
        self._propagation.conclude_all()
        self._recovery.proceed()
        self._watch_gates()

    def _watch_gates(self) -> None:
        """Start the time limit of gates that are unreachable."""
        for gate in [gate for gate in self._unreachable if self._neighbourhood.hop(gate)]:
            del self._unreachable[gate]
            if self._forwarding.take_back(gate) and self._is_strict:
                for subscription in self._table.behind(gate):
                    self._propagation.unsubscribe(subscription.name)
        if self._neighbourhood.failed:
            for gate in self._table.gates:
                if gate not in self._unreachable and not self._neighbourhood.hop(gate):
                    self._unreachable[gate] = self._set_timer(GATE, gate)

    def _give_up(self, gate: str, latest: int) -> None:
        if self._unreachable.get(gate, latest + 1) <= latest:
            self._forwarding.give_up(gate)
            for subscription in self._table.behind(gate):
                if subscription.source == gate:
                    self._propagation.unsubscribe(subscription.name)

    def _send(self, peer: str, message: object) -> None:
        self._effects.append(Send(peer, message))

    def _set_timer(self, kind: str, name: str) -> int:
        self._effects.append(SetTimer(f"{kind}{name}", self._patience_us))
        return self._now
