"""The subscriptions of a client and their deliveries: which events are due, and which ones the application
has taken."""

from collections import deque

from gapless.event_runs import EventRun
from gapless.filters import parse
from gapless.positions import Position
from gapless.protocol import NEWEST, Activated, CaughtUp, CutFixed, Deliver, DeliverMany, Ended, Skipped, Subscribe
from gapless.protocols.gapless import client_messages as messages
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_subscription import HeldState, HeldSubscription
from gapless.protocols.gapless.durable.exclusive import ExclusiveAttachment
from gapless.protocols.gapless.durable.messages import DurableRecord
from gapless.protocols.gapless.tombstones import (
    first_lost,
    is_tombstone,
    last_settled,
    publisher_of,
    times_of,
)

__all__ = ["ClientDeliveries"]


class ClientDeliveries:
    """All subscriptions and deliveries of one client, except those of shared subscriptions."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._subscriptions: dict[str, HeldSubscription] = {}
        self.received = 0
        """The number of the last delivery or note received in this session."""
        self._taken = 0
        """The number of delivered events that the application has taken."""
        self._untaken: deque[tuple[int, int]] = deque()
        """Deliveries that were not reported to the broker as taken: the number of delivered events so far, and the
        number of the message."""

    def __contains__(self, subscription: str) -> bool:
        return subscription in self._subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def is_reading(self) -> bool:
        """Return whether any subscription reads history."""
        return any(held.is_reading for held in self._subscriptions.values())

    # ---- subscribing ---------------------------------------------------------------------------------------

    def subscribe(self, call: Subscribe) -> None:
        """Start a subscription that is not durable."""
        replays = sum(held.is_replay for held in self._subscriptions.values())
        pattern = self._connection.parse(call, 0 if call.since is None else 1 + replays)
        if pattern is not None:
            self._begin(HeldSubscription(call.subscription, pattern, call.since, call.until, call.survey))

    def resume(self, call: Subscribe, attachment: ExclusiveAttachment, record: DurableRecord) -> None:
        """Start a durable subscription after its acknowledged events."""
        held = HeldSubscription(call.subscription, parse(call.filter), record.begin, None)
        held.attachment, held.got = attachment, dict(record.progress.got)
        self._begin(held)

    def _begin(self, held: HeldSubscription) -> None:
        self._subscriptions[held.name] = held
        self._connection.subscribed[held.name] = held.filter
        self._connection.say(held.call(self._connection.session, is_new=True))

    def begin_ending(self, subscription: str) -> bool:
        """Stop delivering events of a subscription. Return False if it does not exist or is ending already."""
        held = self._subscriptions.get(subscription)
        if held is None or held.state is HeldState.ENDING:
            return False
        held.state = HeldState.ENDING
        if held.attachment is None:
            self._connection.say(messages.ClientUnsubscribe(self._connection.session, subscription))
        return True

    def stop_resumed(self, subscription: str) -> None:
        """End a durable subscription at the broker. Its last acknowledgement is already stored."""
        held = self._subscriptions.get(subscription)
        if held is not None:
            held.attachment = None
            self._connection.say(messages.ClientUnsubscribe(self._connection.session, subscription))

    def end_resumed(self, subscription: str, reason: str) -> None:
        """Remove a durable subscription that has ended."""
        if subscription in self._subscriptions:
            self._connection.say(messages.ClientUnsubscribe(self._connection.session, subscription))
            held = self._drop(subscription)
            self._connection.emit(Ended(subscription, held.last(), reason=reason))

    def _drop(self, subscription: str) -> HeldSubscription:
        del self._connection.subscribed[subscription]
        return self._subscriptions.pop(subscription)

    # ---- the session ---------------------------------------------------------------------------------------

    def ready(self, message: messages.Ready) -> None:
        """Send the broker all subscriptions that it does not know."""
        if not message.is_resumed:
            self.received = 0
            self._untaken.clear()
        for held in list(self._subscriptions.values()):
            self._bring(held, message)

    def _bring(self, held: HeldSubscription, ready: messages.Ready) -> None:
        connection = self._connection
        if held.state is HeldState.ENDING:
            if not ready.is_resumed:
                self._drop(held.name)
                connection.emit(Ended(held.name, held.last()))
            elif held.attachment is None:  # a durable subscription ends when its last acknowledgement is stored
                connection.say(messages.ClientUnsubscribe(connection.session, held.name))
        elif held.state is HeldState.REQUESTED:
            connection.say(held.call(connection.session, is_new=True))
        elif not ready.is_resumed:
            if held.born is not None:
                clocks = [
                    clock for (broker, below), clock in ready.sealed
                    if broker == held.born.broker and below > held.born.number
                ]  # fmt: skip
                held.begin = min([held.begin, *clocks])
            connection.say(held.call(connection.session, is_new=False))
            held.begin_reading()

    def is_next(self, message: messages.Delivery | messages.Note) -> bool:
        """Return whether the message is the next delivery or note of the session. If so, count it as received."""
        if message.number != self.received + 1:
            return False
        self.received = message.number
        return True

    def receive(self, message: messages.Delivery | messages.Note) -> None:
        """Process the next delivery or note of the session."""
        match message:
            case messages.Delivery():
                self._deliver(message)
            case messages.Active():
                self._activate(message)
            case messages.Position():
                for held in self._subscriptions.values():
                    if not held.is_reading:
                        self._pass(held, message.position)
                        if held.begins is not None:
                            self._connection.emit(CaughtUp(held.name, held.reached(), True))
            case messages.Reached():
                self._reach(message)
            case messages.Lagging():
                self._lag(message)
            case messages.Unsubscribed():
                if message.subscription in self._subscriptions:
                    ended = self._drop(message.subscription)
                    is_complete = ended.state is not HeldState.ENDING
                    self._connection.emit(Ended(ended.name, ended.last(), is_complete))

    def _activate(self, message: messages.Active) -> None:
        held = self._subscriptions.get(message.subscription)
        if held is None or held.state is not HeldState.REQUESTED:
            return
        held.state = HeldState.ACTIVE
        held.cuts, held.begin, held.position = dict(message.cuts), message.begin, message.position
        held.ticket = message.ticket
        if held.begins is None:
            held.born = self._connection.incarnation
        elif held.begins == NEWEST:
            held.begins = Position.at(message.position)
        if held.ends == NEWEST:
            held.ends = Position.at(message.until)
        for publisher, cut in held.cuts.items():
            self._connection.emit(CutFixed(held.name, publisher, cut))
        self._connection.emit(Activated(held.name))

    def _reach(self, message: messages.Reached) -> None:
        emit = self._connection.emit
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is None:
                continue
            self._pass(held, message.position)
            if message.is_live:
                held.go_live(message.position)
            if message.gap is not None:
                emit(Skipped(name, {}, message.gap))
            lost = held.newly_lost(message.lost)
            if lost:
                emit(Skipped(name, lost))
            if held.is_replay:
                emit(CaughtUp(name, held.reached(), message.is_live, message.counted))
                held.is_replay = not message.is_live

    def _lag(self, message: messages.Lagging) -> None:
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is not None:
                held.begin_reading()
                held.is_replay = True
                self._connection.emit(CaughtUp(name, held.reached(), False))

    @staticmethod
    def _pass(held: HeldSubscription, position: int) -> None:
        """Record that everything up to a position has arrived for a subscription. Do nothing if it is ending."""
        if held.state is not HeldState.ENDING:
            held.position = max(held.position, position)
            if held.attachment is not None:
                held.attachment.reached(held.position)

    # ---- deliveries ----------------------------------------------------------------------------------------

    def _deliver(self, message: messages.Delivery) -> None:
        lost = None
        if is_tombstone(message.events.publisher):
            lost = message.events
            self._connection.largest = max(self._connection.largest, lost.stamp)
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is None or held.state is not HeldState.ACTIVE:
                continue
            if lost is not None:
                self._skip(held, lost)
                continue
            due = self._due(held, message.events)
            if due is None:
                continue
            if held.attachment is not None:
                for event in due:
                    held.attachment.take(event)
            else:
                connection = self._connection
                connection.largest = max(connection.largest, due.stamp)
                connection.delivered += len(due)
                connection.emit(Deliver(due.event(0), name) if len(due) == 1 else DeliverMany(due, name))

    def _skip(self, held: HeldSubscription, lost: EventRun) -> None:
        """Report the lost numbers of a publisher that were due and did not arrive."""
        publisher = publisher_of(lost.publisher)
        ranges = held.lose(publisher, first_lost(lost), lost.last, last_settled(lost), times_of(lost), lost.stamp)
        if ranges:
            if held.attachment is not None:
                held.attachment.skip(publisher, held.got[publisher], lost.stamp)
            self._connection.emit(Skipped(held.name, {publisher: ranges}))

    def _due(self, held: HeldSubscription, events: EventRun) -> EventRun | None:
        """Return the due events, or None if there are none."""
        due = held.due(events)
        if due is not None:
            if held.begins is None and due.publisher not in held.cuts:
                held.cuts[due.publisher] = due.first
                self._connection.emit(CutFixed(held.name, due.publisher, due.first))
            held.record_arrival(due.publisher, due.first, due.last, due.stamp)
        return due

    def taken(self, count: int) -> None:
        """Record that the application has taken all deliveries up to this one."""
        self._taken = count
        self._acknowledge()

    def handled(self) -> None:
        """Record that the last delivery or note was passed to the application."""
        self._untaken.append((self._connection.delivered, self.received))
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Tell the broker which deliveries the application has taken."""
        number = 0
        while self._untaken and self._untaken[0][0] <= self._taken:
            number = self._untaken.popleft()[1]
        if number:
            self._connection.say(messages.ClientGot(self._connection.session, number))
