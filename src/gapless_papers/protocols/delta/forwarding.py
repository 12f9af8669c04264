"""Publication forwarding (section V): queueing, barrier checking, matching, routing, clean-up.

A broker keeps each publication until all relevant brokers downstream have confirmed it, and then confirms it to the
broker that sent it. So there is always a broker upstream that keeps an undelivered publication. A broker that loses a
session sends its unconfirmed publications again, in order, over the session that replaces it. Receivers detect
duplicates by their sequence vectors.

**Missed subscriptions.** A publication must be delivered to a subscription only if every broker on its path knew the
subscription when it processed the publication; otherwise a broker may have dropped the next one, which would be a gap.
FIFO links alone do not ensure this, because publications are sent again and bypass brokers. So each publication carries
the names of the subscriptions that it *missed*. A broker adds a name

- when it learns of a subscription while it keeps the publication, and
- when the publication comes from a broker that had not received the subscription yet (`Session.unheard`).

**No receiver.** A publication for a gate that is unreachable, with no broker behind it that could be used instead, is
parked (under the empty name) until the gate is reachable or is given up.

**Legitimacy.** A session whose next publication must not be sent, because it would have bypassed too many brokers, is
paused until another copy arrives that has bypassed fewer, or until another session replaces it.
"""

from collections.abc import Callable
from typing import Protocol

from gapless.events import Event
from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.delta.messages import (
    ConfirmPublication,
    Number,
    Publication,
    Recovered,
    SubscriptionsReceived,
    Vector,
)
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.options import DeltaOptions
from gapless_papers.protocols.delta.partitions import PartitionTable, ended_by
from gapless_papers.protocols.delta.sequences import Sequences
from gapless_papers.protocols.delta.sessions import Session, Sessions
from gapless_papers.protocols.delta.subscriptions import HERE, Route, Subscription, SubscriptionTable
from gapless_papers.protocols.delta.unconfirmed import ContentId, Unconfirmed

__all__ = ["Forwarding"]

HOMES_MAX = 100_000
"""The number of nearby publishers whose direction is remembered."""


class _Clients(Protocol):
    """The clients attached here."""

    def offer(self, held: Unconfirmed, routes: list[Route]) -> None: ...

    def on_delivered(self, client: str, seq: int) -> None: ...


class Forwarding:
    """The queue of one broker."""

    def __init__(
        self, neighbourhood: Neighbourhood, sessions: Sessions, table: SubscriptionTable, partitions: PartitionTable,
        sequences: Sequences, clients: _Clients, options: DeltaOptions, send: Callable[[str, object], None],
    ) -> None:  # fmt: skip
        self._neighbourhood = neighbourhood
        self._sessions = sessions
        self._table = table
        self._partitions = partitions
        self._sequences = sequences
        self._clients = clients
        self._send = send
        self._waits = options.legitimacy == "wait"
        self._detects_duplicates = "duplicates" not in options.switched_off
        self._notes_missed = "missed" not in options.switched_off
        self._synchronises = "synchronise" not in options.switched_off
        self._queue: dict[int, Unconfirmed] = {}
        self._by_id: dict[ContentId, Unconfirmed] = {}
        self._homes: dict[str, str] = {}
        self._given_up: dict[str, bool] = {}
        """Gates for which nothing is kept any longer, with whether something was dropped."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def parked(self) -> int:
        """Return how many publications wait for an unreachable gate."""
        return sum(HERE in held.waiting for held in self._queue.values())

    # ---- arriving messages ------------------------------------------------------------------------------------

    def publish(self, client: str, event: Event) -> None:
        """Process an event published by a client here, possibly for a second time."""
        held = Unconfirmed(event, (event.publisher, event.seq), ((client, 0, event.seq),))
        self._take(held, HERE, client, (event.seq, ()))

    def on_publication(self, session: Session, message: Publication) -> None:
        """Process an event from another broker."""
        event = message.event
        held = Unconfirmed(event, (event.publisher, event.seq), message.vector)
        held.tags = message.tags
        held.missed = message.missed
        if session.unacknowledged and self._notes_missed:
            subscriptions = [subscription for _, subscription in session.unacknowledged.values()]
            held.missed |= {sub.name for sub in subscriptions if sub.filter.matches(event.attributes)}
        if len(self._partitions):
            held.tags |= self._partitions.tags_of(event.publisher, message.vector)
        self._take(held, session.direction, session.peer, (message.number, session.theirs))

    def on_notice(self, session: Session, message: Recovered) -> None:
        """Process a partition recovery notifier from another broker."""
        held = Unconfirmed(message, (message.origin, *message.serial), message.vector)
        self._take(held, session.direction, session.peer, (message.number, session.theirs))

    def notify(self, origin: str, serial: Number, detector: str, node: str) -> None:
        """Send subscribers the notifier that ends the detector's partitions with the node."""
        notice = Recovered(origin, serial, detector, node, 0, ())
        self._process(Unconfirmed(notice, (origin, *serial), ()), HERE)

    def _take(self, held: Unconfirmed, direction: str, sender: str, number: tuple[int, Number]) -> None:
        """Queue the event and return True if it is new."""
        known = self._by_id.get(held.id)
        home = self._home(held, direction)
        if known is not None:
            known.senders[sender] = number
            self._sequences.is_duplicate(held.vector)
            if home != direction:
                self._serve_home(known, home)
            else:
                self._merge(known, held.vector)
            return
        held.senders[sender] = number
        if self._sequences.is_duplicate(held.vector) and self._detects_duplicates:
            if home != direction:
                self._serve_home(held, home)
            else:
                self._confirm(held)
            return
        if home != direction:
            self._homes[held.vector[0][0]] = direction
        self._process(held, direction)

    def _home(self, held: Unconfirmed, direction: str) -> str:
        """Return the direction of the publisher when it last published something new; the present one if unknown."""
        if not isinstance(held.content, Event) or held.vector[0][0] != held.content.publisher:
            return direction
        home = self._homes.setdefault(held.content.publisher, direction)
        forget_oldest(self._homes, HOMES_MAX)
        return home

    def _serve_home(self, held: Unconfirmed, home: str) -> None:
        """Forward a duplicate towards the publisher's former broker, because brokers there may not have the event.

        It gets a new number, because its receivers may have seen higher ones, and all brokers that wait for it start
        over.
        """
        if held.number:
            self._withdraw(held)
        held.number = self._sequences.next()
        self._queue[held.number] = self._by_id[held.id] = held
        hops = [hop for hop in held.waiting if hop == HERE or hop in self._neighbourhood.paths]
        gates = dict.fromkeys([gate for hop in hops for gate in held.waiting.pop(hop)])
        if home != HERE:
            gates |= dict.fromkeys([gate for gate in self._gates(held) if self._neighbourhood.direction(gate) == home])
        for gate in gates:
            hop = self._neighbourhood.hop(gate)
            held.waiting[hop] = (*held.waiting.get(hop, ()), gate)
        self._send_out(held)

    def _process(self, held: Unconfirmed, direction: str) -> None:
        """Match the event and route it."""
        held.number = self._sequences.next()
        self._queue[held.number] = self._by_id[held.id] = held
        content = held.content
        if isinstance(content, Event):
            routes = self._table.match(content.attributes)
            held.waiting = self._table.plan(routes, direction)
            self._clients.offer(held, routes)
        else:
            for gate in self._gates(held):
                if self._neighbourhood.direction(gate) != direction:
                    hop = self._neighbourhood.hop(gate)
                    held.waiting[hop] = (*held.waiting.get(hop, ()), gate)
        self._send_out(held)

    def _gates(self, held: Unconfirmed) -> dict[str, None]:
        """Return the gates behind which a subscription matches it."""
        content = held.content
        if isinstance(content, Event):
            return {gate: None for route in self._table.match(content.attributes) for gate in route.gates}
        gates: dict[str, None] = {}
        for subscription in self._table:
            ended = ended_by(subscription.tags, content.detector, content.node)
            if ended:
                subscription.tags -= ended
                if subscription.gate != HERE:
                    gates[subscription.gate] = None
        return gates

    # ---- outgoing messages ------------------------------------------------------------------------------------

    def _send_out(self, held: Unconfirmed) -> None:
        if self._given_up and HERE in held.waiting:
            self._park(held)
        if not held.waiting:
            self._finish(held)
            return
        message: Publication | Recovered | None = None
        for hop in held.waiting:
            if hop not in self._neighbourhood.paths:
                continue
            session = self._sessions.get(hop)
            session.outbox[held.number] = held
            if session.unsent or not self._is_ready(session):
                session.unsent[held.number] = held
            elif session.bypassed:
                session.unsent[held.number] = held
                self.flush(session)
            else:
                if message is None:
                    message = self._message(held, ())
                self._send_receipt(session)
                self._send(hop, message)

    def flush(self, session: Session) -> None:
        """Send, in order, all publications not yet sent in this session, up to the first that must wait."""
        if not session.unsent or not self._is_ready(session):
            return
        self._send_receipt(session)
        for number, held in list(session.unsent.items()):
            message = self._message(held, session.bypassed)
            if session.bypassed and self._waits and not self._sequences.is_legitimate(message.vector):
                return
            del session.unsent[number]
            self._send(session.peer, message)

    def _is_ready(self, session: Session) -> bool:
        """Return whether this broker and the peer have exchanged all missing subscriptions."""
        return session.has_sent_all and (session.is_synchronised or not self._synchronises)

    def _send_receipt(self, session: Session) -> None:
        if session.received != session.received_reported:
            session.received_reported = session.received
            self._send(session.peer, SubscriptionsReceived(session.received))

    def _message(self, held: Unconfirmed, bypassed: tuple[str, ...]) -> Publication | Recovered:
        vector = self._sequences.extended(held.vector, held.number, bypassed)
        content = held.content
        if isinstance(content, Event):
            return Publication(content, held.number, vector, held.tags, held.missed)
        return Recovered(content.origin, content.serial, content.detector, content.node, held.number, vector)

    def _merge(self, held: Unconfirmed, vector: Vector) -> None:
        """Merge another copy, which may have passed brokers that the first one bypassed."""
        merged = self._sequences.merged(held.vector, vector)
        if merged != held.vector:
            held.vector = merged
            for hop in list(held.waiting):
                if hop in self._neighbourhood.paths:
                    self.flush(self._sessions.get(hop))

    # ---- confirmations and clean-up -----------------------------------------------------------------------

    def on_confirmed(self, session: Session, message: ConfirmPublication) -> None:
        """Record that all brokers behind the peer have the publication."""
        held = self._queue.get(message.number)
        if held is not None:
            session.outbox.pop(held.number, None)
            session.unsent.pop(held.number, None)
            self.settle(held, session.peer)

    def settle(self, held: Unconfirmed, waiting: str) -> None:
        """Remove one of the brokers that a publication waits for."""
        if held.waiting.pop(waiting, None) is not None and not held.waiting:
            self._finish(held)

    def _finish(self, held: Unconfirmed) -> None:
        del self._queue[held.number]
        del self._by_id[held.id]
        self._confirm(held)

    def _confirm(self, held: Unconfirmed) -> None:
        for sender, (number, session) in held.senders.items():
            if sender not in self._neighbourhood.paths:
                self._clients.on_delivered(sender, number)
            elif self._sessions.get(sender).theirs == session:
                self._send(sender, ConfirmPublication(number))

    def _withdraw(self, held: Unconfirmed) -> None:
        del self._queue[held.number]
        for hop in held.waiting:
            if hop in self._neighbourhood.paths:
                session = self._sessions.get(hop)
                session.outbox.pop(held.number, None)
                session.unsent.pop(held.number, None)

    # ---- changes ------------------------------------------------------------------------------------------

    def reroute(self) -> None:
        """Move unconfirmed publications to the sessions that replaced closed ones."""
        changed: dict[str, Session] = {}
        for held in self._queue.values():
            for hop in [hop for hop in held.waiting if hop == HERE or hop in self._neighbourhood.paths]:
                gates = held.waiting[hop]
                if all(self._neighbourhood.hop(gate) == hop for gate in gates):
                    continue
                del held.waiting[hop]
                if hop != HERE:
                    session = self._sessions.get(hop)
                    session.outbox.pop(held.number, None)
                    session.unsent.pop(held.number, None)
                for gate in gates:
                    new = self._neighbourhood.hop(gate)
                    held.waiting[new] = (*held.waiting.get(new, ()), gate)
                    if new != HERE:
                        session = changed[new] = self._sessions.get(new)
                        session.outbox[held.number] = session.unsent[held.number] = held
        for session in changed.values():
            session.outbox = dict(sorted(session.outbox.items()))
            session.unsent = dict(sorted(session.unsent.items()))
            self.flush(session)

    def give_up(self, gate: str) -> None:
        """Stop waiting for brokers behind the gate."""
        self._given_up[gate] = False
        for held in list(self._queue.values()):
            if HERE in held.waiting:
                self._park(held)
                if not held.waiting:
                    self._finish(held)

    def take_back(self, gate: str) -> bool:
        """Mark the gate as reachable again; return whether publications for it were dropped."""
        return self._given_up.pop(gate, False)

    def _park(self, held: Unconfirmed) -> None:
        """Keep a publication for an unreachable gate, unless the gate was given up."""
        gates = held.waiting.pop(HERE)
        kept = tuple([gate for gate in gates if gate not in self._given_up])
        if kept:
            held.waiting[HERE] = kept
        for gate in gates:
            if gate in self._given_up:
                self._given_up[gate] = True

    def note_missed(self, subscription: Subscription) -> None:
        """Record that the kept publications were processed without this new subscription."""
        if self._notes_missed:
            for held in self._queue.values():
                if isinstance(held.content, Event) and subscription.filter.matches(held.content.attributes):
                    held.missed |= {subscription.name}
