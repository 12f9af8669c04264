"""Subscription propagation, with confirmations, and recovery (sections IV and VII).

A subscription travels away from its source over all sessions, and each broker uses it from the moment it is known. Once
every broker beyond has confirmed it, or is unreachable, a broker confirms it to the peer that sent it; the source's
confirmation starts it. Confirmations carry the partitions that did not receive it (tags), and where the subscription
starts with the publishers there (cuts).

**Back to the island.** Brokers behind a partition learn of a subscription past its nodes. They send it back to brokers
on the path to the source, or around it, with which they have sessions. So no publication is sent to a broker that does
not know its subscriptions, and no broker forgets a source that is unreachable for a while.

**Partial recovery** takes place when a session begins. Each end lists the subscriptions it knows, and sends the other
those it lacks: those from its own side, to be forwarded and confirmed, and those from the other's side, sent back.
Publications follow only then. When the peer has confirmed all of them, the partitions with it are over, and the
notifier is sent.

**Why no broker is left out.** A broker confirms a subscription only when each broker beyond with which it has or wants
a session has confirmed it; a broker that returns later receives it when its session begins.
"""

from collections.abc import Callable
from typing import Protocol

from gapless.protocol import BrokerPlace
from gapless_papers.protocols.delta.forwarding import Forwarding
from gapless_papers.protocols.delta.messages import (
    NO_TAGS,
    AddSubscription,
    ConfirmSubscription,
    Cuts,
    Hello,
    RemoveSubscription,
    SubscriptionsReceived,
)
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.options import DeltaOptions
from gapless_papers.protocols.delta.partitions import PartitionTable
from gapless_papers.protocols.delta.sequences import Sequences
from gapless_papers.protocols.delta.sessions import Session, Sessions
from gapless_papers.protocols.delta.subscriptions import HERE, Subscription, SubscriptionTable

__all__ = ["Propagation"]


class _Clients(Protocol):
    """The clients attached here."""

    def next_numbers(self) -> Cuts: ...

    def on_known(self, subscription: Subscription) -> None: ...

    def on_confirmed(self, subscription: Subscription, cuts: dict[str, Cuts]) -> None: ...

    def on_removed(self, subscription: Subscription) -> None: ...


class Propagation:
    """The subscription handling of one broker."""

    def __init__(
        self, place: BrokerPlace, neighbourhood: Neighbourhood, sessions: Sessions, table: SubscriptionTable,
        partitions: PartitionTable, sequences: Sequences, forwarding: Forwarding, clients: _Clients,
        options: DeltaOptions, send: Callable[[str, object], None],
    ) -> None:  # fmt: skip
        self._name = place.name
        self._neighbourhood = neighbourhood
        self._sessions = sessions
        self._table = table
        self._partitions = partitions
        self._sequences = sequences
        self._forwarding = forwarding
        self._clients = clients
        self._waits = options.legitimacy == "wait"
        self._send = send
        self._incarnation = place.incarnation
        self._notices = 0

    # ---- subscriptions of clients here --------------------------------------------------------------------

    def subscribe(self, name: str, text: str) -> None:
        """Add a subscription of a client here."""
        self._learn(AddSubscription(name, text, self._name, (), ()), None)

    def unsubscribe(self, name: str) -> None:
        """End a subscription."""
        self._remove(name, None)

    # ---- messages -----------------------------------------------------------------------------------------

    def on_add(self, session: Session, message: AddSubscription) -> None:
        """Process a subscription that travels away from its source or back towards it."""
        session.received += 1
        subscription = self._table.get(message.name)
        if self._table.is_removed(message.name):
            self._send(session.peer, RemoveSubscription(message.name))
        elif subscription is None:
            self._learn(message, session)
        elif session.direction == subscription.direction:
            if subscription.is_confirmed:
                self._confirm(session, subscription, {})
            else:
                subscription.senders[session.peer] = None
                self._shorten(subscription, message)
        session.unacknowledged.pop(message.name, None)

    def on_confirm(self, session: Session, message: ConfirmSubscription) -> None:
        """Record that every broker behind the peer knows the subscription."""
        session.unacknowledged.pop(message.name, None)
        subscription = self._table.pending.get(message.name)
        if subscription is not None:
            subscription.confirmed[session.peer] = (message.tags, message.cuts)
            self._conclude(subscription)
        self._pay(session, message.name)

    def on_remove(self, session: Session, message: RemoveSubscription) -> None:
        """Process the end of a subscription."""
        self._remove(message.name, session)

    def on_receipt(self, session: Session, message: SubscriptionsReceived) -> None:
        """Record how many subscriptions the peer had received before it sent the messages that follow."""
        for name in [name for name, (place, _) in session.unacknowledged.items() if place <= message.count]:
            del session.unacknowledged[name]

    # ---- the beginning and the end of sessions --------------------------------------------------------------

    def send_all(self, session: Session, hello: Hello) -> None:
        """Send the peer of a new session the subscriptions it lacks."""
        confirmed, pending = set(hello.confirmed), set(hello.pending)
        for name in (*hello.confirmed, *hello.pending):
            if self._table.is_removed(name):
                self._send(session.peer, RemoveSubscription(name))
        for subscription in self._table:
            name = subscription.name
            if self._is_beyond(session, subscription):
                if name not in confirmed:
                    if subscription.is_confirmed:
                        session.owed[name] = None
                    self._send_away(session, subscription)
                    if name in pending:
                        session.unacknowledged.pop(name, None)
                elif not subscription.is_confirmed:
                    subscription.confirmed[session.peer] = (NO_TAGS, {})
            elif name not in confirmed and name not in pending:
                self._send_back(session, subscription)
        session.has_sent_all = True
        self.conclude_all()

    def on_closed(self, session: Session) -> None:
        """Discard the peer's confirmations and requests, because its session is over."""
        for subscription in self._table.pending.values():
            subscription.confirmed.pop(session.peer, None)
            subscription.senders.pop(session.peer, None)
        self.conclude_all()

    def conclude_all(self) -> None:
        """Confirm subscriptions that no longer wait for any broker, after sessions have changed."""
        for subscription in list(self._table.pending.values()):
            self._conclude(subscription)

    def end_partitions(self, session: Session) -> None:
        """End the partitions with the peer if it has confirmed everything it lacked."""
        if session.has_sent_all and session.is_synchronised and not session.owed:
            for detector in self._partitions.recover(session.peer):
                self._notices += 1
                serial = (self._incarnation, self._notices)
                self._forwarding.notify(self._name, serial, detector, session.peer)

    # ---- internals -------------------------------------------------------------------------------------------

    def _is_beyond(self, session: Session, subscription: Subscription) -> bool:
        """Return whether the peer is further from the source than this broker."""
        return session.direction != subscription.direction

    def _learn(self, message: AddSubscription, sender: Session | None) -> None:
        subscription = self._table.enter(message)
        numbers = self._clients.next_numbers()
        if numbers:
            subscription.cuts = {self._name: numbers}
        if sender is not None and not self._is_beyond(sender, subscription):
            subscription.senders[sender.peer] = None
        self._forwarding.note_missed(subscription)
        for session in self._sessions.usable():
            if self._is_beyond(session, subscription):
                self._send_away(session, subscription)
            elif session is not sender:
                self._send_back(session, subscription)
        if subscription.gate == HERE:
            self._clients.on_known(subscription)
        self._conclude(subscription)

    def _send_away(self, session: Session, subscription: Subscription) -> None:
        """Send the subscription away from the source, to be confirmed."""
        path = (*subscription.path, self._name, *session.bypassed)[-self._sequences.strong_window :]
        bypassed = subscription.bypassed + session.bypassed
        if bypassed:
            bypassed = tuple([name for name in bypassed if name in path])
            if session.bypassed and self._waits and not self._sequences.is_strongly_legitimate(path, bypassed):
                session.illegitimate[subscription.name] = subscription
                return
        session.sent += 1
        session.unacknowledged[subscription.name] = (session.sent, subscription)
        text, source = subscription.filter.text, subscription.source
        self._send(session.peer, AddSubscription(subscription.name, text, source, path, bypassed))

    def _send_back(self, session: Session, subscription: Subscription) -> None:
        """Send the subscription back to a peer on the path to the source, or around the source."""
        there = self._neighbourhood.paths[session.peer]
        shared = sum(name in subscription.path for name in there)
        turn = subscription.path.index(there[shared - 1])
        path = subscription.path[: turn + 1] + there[shared:]
        if path[0] != subscription.source and len(path) <= self._neighbourhood.radius:
            return
        session.sent += 1
        bypassed = tuple([name for name in path if name in subscription.bypassed or name in session.bypassed])
        text, source = subscription.filter.text, subscription.source
        self._send(session.peer, AddSubscription(subscription.name, text, source, path[:-1], bypassed))

    def _shorten(self, subscription: Subscription, message: AddSubscription) -> None:
        """Merge the path of another copy, which may have bypassed fewer brokers."""
        if len(message.bypassed) < len(subscription.bypassed):
            subscription.bypassed = message.bypassed
            for session in self._sessions.usable():
                if session.illegitimate.pop(subscription.name, None) is not None:
                    self._send_away(session, subscription)

    def _conclude(self, subscription: Subscription) -> None:
        """Confirm the subscription if every broker beyond has confirmed it."""
        confirmed = subscription.confirmed
        for peer in self._sessions.beyond(subscription.direction):
            if peer not in confirmed:
                return
        if subscription.name not in self._table.pending:
            return
        del self._table.pending[subscription.name]
        subscription.is_confirmed = True
        tags, cuts = self._partitions.tags_away_from(subscription.direction), subscription.cuts
        for further_tags, further_cuts in confirmed.values():
            tags |= further_tags
            cuts |= further_cuts
        if tags:
            subscription.tags = frozenset([each for each in tags if each.nodes[-1] not in cuts])
        senders, subscription.senders = subscription.senders, {}
        subscription.cuts = {}
        subscription.confirmed = {}
        if subscription.gate == HERE:
            self._clients.on_confirmed(subscription, cuts)
        for peer in senders:
            self._confirm(self._sessions.get(peer), subscription, cuts)

    def _confirm(self, session: Session, subscription: Subscription, cuts: dict[str, Cuts]) -> None:
        self._send(session.peer, ConfirmSubscription(subscription.name, subscription.tags, cuts))

    def _remove(self, name: str, source: Session | None) -> None:
        if self._table.is_removed(name):
            return
        subscription = self._table.remove(name)
        for session in self._sessions.usable():
            if subscription is not None and session is not source:
                self._send(session.peer, RemoveSubscription(name))
            session.unacknowledged.pop(name, None)
            session.illegitimate.pop(name, None)
            self._pay(session, name)
        if subscription is not None and subscription.gate == HERE:
            self._clients.on_removed(subscription)

    def _pay(self, session: Session, name: str) -> None:
        if name in session.owed:
            del session.owed[name]
            self.end_partitions(session)
