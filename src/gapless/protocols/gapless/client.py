"""A client of the protocol: it owns its subscriptions, its advertisements and its unconfirmed publications.

It knows all that is needed to go on at another broker: for each subscription the filter, the cuts, the position up to
which everything has come, and the last number of each publisher. A broker forwards what matches; what is *due* is
decided here: an event from the cut of its publisher on, or, without a cut, with a timestamp after the beginning of
the attempt that succeeded; and none twice.
"""

import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gapless.errors import CallError
from gapless.events import Event, EventRun, Events
from gapless.filters import Filter, FilterError, parse
from gapless.names import Acknowledge, AcknowledgeEach, ExtendAck, ListDurables, MoveDurable, Nack
from gapless.positions import Position
from gapless.protocol import (
    NEWEST,
    Activated,
    Advertise,
    Advertised,
    CaughtUp,
    ClientNode,
    ClientPlace,
    Confirmed,
    Connected,
    Consumed,
    CutFixed,
    Deliver,
    DeliverMany,
    Effect,
    Ended,
    Input,
    PublicationsLost,
    Publish,
    Published,
    PublishedMany,
    PublishMany,
    Received,
    Rejected,
    Send,
    SetTimer,
    Skipped,
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
from gapless.protocols.gapless.client_subscription import HeldState, HeldSubscription
from gapless.protocols.gapless.durable.attachment import Attachment
from gapless.protocols.gapless.durable.client import DURABLE_TIMERS, DurableClient
from gapless.protocols.gapless.durable.messages import DealtNote, DurableRecord, DurableReply
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.tombstones import first_lost, is_tombstone, last_settled, publisher_of
from gapless.protocols.parts.bounds import check_readings, check_texts
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["GaplessClient"]

RETRY = "retry"
RETURN = "return"
PATIENCE_MAX = 64
PATIENCE_MIN = 8
"""A broker that is there, and not ready, says so every 100 ms: it gets some times as long on a busy machine."""
WITHDRAWN_MAX = 100
"""So many filters of ended advertisements are remembered; if there are more, nobody knows what lost events matched."""
TEXT_MAX = 10_000
RETRIES_MAX = 50
"""So many times a broker may say that it is not ready yet, before the client asks another."""


class _Offer:
    """An advertisement of what comes from number `first` on."""

    def __init__(self, pattern: Filter) -> None:
        self.filter = pattern
        self.is_stable = False
        self.ends_after: int | None = None


class GaplessClient(ClientNode):
    """A client node of the protocol."""

    def __init__(self, place: ClientPlace, options: GaplessOptions) -> None:
        self._name = place.name
        self._options = options
        self._contacts = list(place.contacts)
        self._broker = self._preferred = place.broker
        self._effects: list[Effect] = []
        # the session
        self._session = 0
        self._is_attached = False
        self._incarnation: Incarnation | None = None
        self._opened = 0
        """The session that it had there."""
        self._patience = 1
        self._retries = 0
        self._silent: dict[str, None] = {}
        """The brokers that the failure detector suspects."""
        self._asked: dict[str, None] = {}
        """The brokers that were asked in this round through all contacts."""
        # deliveries
        self._received = 0
        self._count = 0
        self._taken = 0
        self._untaken: deque[tuple[int, int]] = deque()
        self._largest = 0
        self._subscriptions: dict[str, HeldSubscription] = {}
        # publications
        self._seq = 0
        self._confirmed = 0
        self._admitted = 0
        """The client's last number that any broker has admitted: perhaps one of an earlier process."""
        self._is_superseded = False
        """Whether another process goes on as this client: no broker listens to this one any more."""
        self._is_successor = False
        """Whether an earlier process may have published more than this one knows, until a broker says so."""
        self._unconfirmed: deque[Events] = deque()
        self._base = 0
        """The last number before it came to the incarnation that has its session."""
        self._settled = 0
        """All brokers have processed what it published up to this number."""
        self._offers: dict[str, _Offer] = {}
        self._withdrawn: dict[str, int] = {}
        """Filters of advertisements that have ended: after which number."""
        self._losses: dict[int, messages.Missing] = {}
        """Lost publications by their first number, until f + 1 brokers hold the report."""
        self._durable = DurableClient(self)
        self.now = 0
        """The time of the step."""

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        effects = self._effects = []
        self.now = now
        self._handle(item)
        return effects

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _say(self, message: object) -> None:
        """To the broker, if it has the session."""
        if self._is_attached:
            self._effects.append(Send(self._broker, message))

    def _handle(self, item: Input) -> None:
        match item:
            case Received():
                self._receive(item.peer, item.message)
            case Consumed():
                self._taken = item.count
                self._acknowledge()
                self._durable.taken(item.count)
            case Publish():
                self._publish([item])
            case PublishMany():
                self._publish_many(item)
            case Advertise():
                self._advertise(item)
            case Unadvertise():
                self._unadvertise(item)
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
                if item.peer == self._broker:
                    self._try_next()
            case Acknowledge() | AcknowledgeEach() | Nack() | ExtendAck() | ListDurables() | MoveDurable():
                self._durable.call(item)
            case TimerFired() if item.key in DURABLE_TIMERS:
                self._durable.timer_fired(item.key)
            case TimerFired() if item.key == RETURN:
                self._wish()
            case TimerFired():
                if not self._is_attached:
                    self._try_next()
            case _:
                raise AssertionError(f"no input of a client: {item!r}")

    # ---- the session --------------------------------------------------------------------------------------

    def _attach(self) -> None:
        if self._is_superseded:
            return
        self._session += 1
        self._is_attached, self._retries = False, 0
        published = self._seq + self._is_successor  # if in doubt: it makes a broker look for the last number
        attach = messages.Attach(
            self._session, self._incarnation, self._opened, self._received, self._largest, published, self._confirmed,
            self._base, self._settled,
        )  # fmt: skip
        self._emit(Send(self._broker, attach))
        self._set_timer()

    def _set_timer(self) -> None:
        patience = min(self._patience, PATIENCE_MIN) if self._broker in self._silent else self._patience
        self._emit(SetTimer(RETRY, int(self._options.retry_ms * 1000 * patience)))

    def _set_return(self) -> None:
        """It had to move: some time later it asks for the broker that it prefers."""
        if self._broker != self._preferred:
            spread = 1 + zlib.crc32(self._name.encode()) / (1 << 32)
            self._emit(SetTimer(RETURN, int(self._options.rebalance_ms * 1000 * spread)))

    def _wish(self) -> None:
        if self._is_attached and not any(held.is_reading for held in self._subscriptions.values()):
            self._say(messages.ClientWish(self._session, self._preferred))
        self._set_return()

    def _found(self, broker: str, *, is_new: bool) -> None:
        """A broker is there: ask it, if this one has a new connection, or does not seem to be there."""
        self._silent.pop(broker, None)
        self._asked.pop(broker, None)
        if broker == self._broker:
            if is_new:
                self._attach()
        elif broker in self._contacts and self._broker in self._silent:
            self._try_next()

    def _try_next(self) -> None:
        """Ask the next contact: those that seem to be lost after the others, and less patiently. After each round
        through all of them this client has twice the patience."""
        place = self._contacts.index(self._broker) if self._broker in self._contacts else -1
        following = self._contacts[place + 1 :] + self._contacts[: place + 1]
        if all(name in self._asked for name in following):
            self._asked.clear()
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        due = [name for name in following if name not in self._asked]
        self._broker = next((name for name in due if name not in self._silent), due[0])
        self._asked[self._broker] = None
        self._attach()

    def _receive(self, peer: str, message: messages.Answer) -> None:
        if peer != self._broker or message.session != self._session:
            if isinstance(message, messages.Ready):
                self._emit(Send(peer, messages.Detach(message.session)))
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
                self._is_attached = False
                if message.is_superseded:
                    self._is_superseded = True
                    self._emit(Superseded())
                else:
                    self._try_next()
            case messages.Granted():
                self._broker, self._patience = message.broker, PATIENCE_MIN
                self._attach()
            case messages.Stable():
                self._stable(message.advertisement)
            case messages.Unadvertised():
                self._withdraw(message.advertisement)
            case messages.Confirmed():
                self._confirm(message.last)
                self._settled = max(self._settled, min(message.settled, self._confirmed))
            case messages.Missing():
                self._miss(message)
            case messages.LossKept():
                self._losses = {first: lost for first, lost in self._losses.items() if lost.last > message.last}
            case DurableReply():
                self._durable.receive(message)
            case _:
                if message.number == self._received + 1:
                    self._received = message.number
                    self._note(message)
                    self._untaken.append((self._count, message.number))
                    self._acknowledge()

    def _note(self, message: messages.Delivery | messages.Note) -> None:
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
                            self._emit(CaughtUp(held.name, held.reached(), True))
            case messages.Reached():
                self._reach(message)
            case messages.Lagging():
                self._lag(message)
            case DealtNote():
                self._durable.dealt(message)
            case messages.Unsubscribed():
                ended = self._subscriptions.pop(message.subscription, None)
                if ended is not None:
                    is_complete = ended.state is not HeldState.ENDING
                    self._emit(Ended(ended.name, ended.last(), is_complete))

    def _ready(self, message: messages.Ready) -> None:
        self._is_attached = True
        self._patience = 1
        self._asked.clear()
        self._incarnation, self._opened = Incarnation(*message.incarnation), self._session
        self._contacts = message.contacts
        self._admitted, self._is_successor = message.last, False
        self._confirm(message.last)
        if not message.is_resumed:
            self._base = min(message.last, self._seq)
            self._received = 0
            self._untaken.clear()
        for name, offer in self._offers.items():
            is_needed = offer.ends_after is None or offer.ends_after > self._confirmed
            if is_needed and not (message.is_resumed and offer.is_stable):
                self._say(messages.ClientAdvertise(self._session, name, offer.filter.text))
        for held in list(self._subscriptions.values()):
            self._bring(held, message)
        self._durable.ready()
        if not message.is_resumed:
            self._tell_losses()
        for events in self._unconfirmed:
            self._say(messages.ClientPublish(self._session, events))
        for name, offer in list(self._offers.items()):
            if offer.ends_after is not None:
                if not message.is_resumed and offer.ends_after <= self._confirmed:
                    self._withdraw(name)
                else:
                    self._say(messages.ClientUnadvertise(self._session, name))
        self._set_return()

    def _bring(self, held: HeldSubscription, ready: messages.Ready) -> None:
        """Tell a broker that has the session now of a subscription, as far as it does not know it."""
        if held.state is HeldState.ENDING:
            if ready.is_resumed and held.attachment is not None and held.name in self._durable:
                return  # it ends when its last acknowledgement is stored
            if ready.is_resumed:
                self._say(messages.ClientUnsubscribe(self._session, held.name))
            else:
                del self._subscriptions[held.name]
                self._emit(Ended(held.name, held.last()))
            return
        if held.state is HeldState.REQUESTED:
            self._say(held.call(self._session, is_new=True))
        elif not ready.is_resumed:
            if held.born is not None:
                clocks = [
                    clock for (broker, below), clock in ready.sealed
                    if broker == held.born.broker and below > held.born.number
                ]  # fmt: skip
                held.begin = min([held.begin, *clocks])
            self._say(held.call(self._session, is_new=False))
            held.is_reading = True

    # ---- deliveries ---------------------------------------------------------------------------------------

    def _activate(self, message: messages.Active) -> None:
        held = self._subscriptions.get(message.subscription)
        if held is None or held.state is not HeldState.REQUESTED:
            return
        held.state = HeldState.ACTIVE
        held.cuts, held.begin, held.position = dict(message.cuts), message.begin, message.position
        held.ticket = message.ticket
        if held.begins is None:
            held.born = self._incarnation
        elif held.begins == NEWEST:
            held.begins = Position.at(message.position)
        if held.ends == NEWEST:
            held.ends = Position.at(message.until)
        for publisher, cut in held.cuts.items():
            self._emit(CutFixed(held.name, publisher, cut))
        self._emit(Activated(held.name))

    def _reach(self, message: messages.Reached) -> None:
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is None:
                continue
            self._pass(held, message.position)
            held.is_reading = not message.is_live
            if message.is_live:
                held.go_live()
            if message.gap is not None:
                self._emit(Skipped(name, {}, message.gap))
            lost = held.newly_lost(message.lost)
            if lost:
                self._emit(Skipped(name, lost))
            if held.is_replay:
                self._emit(CaughtUp(name, held.reached(), message.is_live))
                held.is_replay = not message.is_live

    def _pass(self, held: HeldSubscription, position: int) -> None:
        """Everything up to a position has come for a subscription. One that is ending takes nothing more."""
        if held.state is HeldState.ENDING:
            return
        held.position = max(held.position, position)
        if held.attachment is not None:
            self._durable.reached(held.attachment, held.position)

    def _lag(self, message: messages.Lagging) -> None:
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is not None:
                held.is_reading = held.is_replay = True
                self._emit(CaughtUp(name, held.reached(), False))

    def _deliver(self, message: messages.Delivery) -> None:
        if isinstance(message.events, list) and is_tombstone(message.events[0].publisher):
            self._skip(message.events[0], message.subscriptions)
            return
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is None or held.state is not HeldState.ACTIVE:
                continue
            due = self._due(held, message.events)
            if due:
                self._largest = max(self._largest, due[-1].stamp)
                if held.attachment is not None:
                    for event in due:
                        deliveries = held.attachment.deliveries_of(event)
                        count = self.hand_over(event, name, deliveries, is_again=deliveries > 1)
                        held.attachment.delivered(count, event)
                    continue
                self._count += len(due)
                self._emit(Deliver(due[0], name) if len(due) == 1 else DeliverMany(due, name))

    def _skip(self, lost: Event, subscriptions: list[str]) -> None:
        """The lost numbers of a publisher that were due and did not come."""
        publisher, last = publisher_of(lost.publisher), lost.seq
        self._largest = max(self._largest, lost.stamp)
        for name in subscriptions:
            held = self._subscriptions.get(name)
            if held is None or held.state is not HeldState.ACTIVE:
                continue
            ranges = held.lose(publisher, first_lost(lost), last, last_settled(lost))
            if ranges:
                if held.attachment is not None:
                    held.attachment.skipped(Event(publisher, held.got[publisher], {}, b"", lost.stamp))
                self._emit(Skipped(name, {publisher: ranges}))

    def _due(self, held: HeldSubscription, events: Events) -> Events:
        """Of these events, those that are due."""
        if isinstance(events, EventRun) and held.is_run_due(events):
            held.came(events.publisher, events.first, events.last)
            return events
        found = []
        for event in events:
            if held.is_due(event):
                if held.begins is None and event.publisher not in held.cuts:
                    held.cuts[event.publisher] = event.seq
                    self._emit(CutFixed(held.name, event.publisher, event.seq))
                held.came(event.publisher, event.seq, event.seq)
                found.append(event)
        return found

    def _acknowledge(self) -> None:
        """Tell the broker up to where the application has taken everything."""
        number = 0
        while self._untaken and self._untaken[0][0] <= self._taken:
            number = self._untaken.popleft()[1]
        if number:
            self._say(messages.ClientGot(self._session, number))

    # ---- publications -------------------------------------------------------------------------------------

    def _confirm(self, last: int) -> None:
        last = min(last, self._seq)
        if last <= self._confirmed:
            return
        self._confirmed = last
        while self._unconfirmed and self._unconfirmed[0][-1].seq <= last:
            self._unconfirmed.popleft()
        if self._unconfirmed and self._unconfirmed[0][0].seq <= last:
            events = self._unconfirmed.popleft()
            self._unconfirmed.appendleft(events[last + 1 - events[0].seq :])
        self._emit(Confirmed(last))
        self._durable.confirmed(last)

    def _stable(self, name: str) -> None:
        offer = self._offers.get(name)
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._emit(Advertised(name))

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, is_taken=call.advertisement in self._offers)
        if pattern is not None:
            self._offers[call.advertisement] = _Offer(pattern)
            self._say(messages.ClientAdvertise(self._session, call.advertisement, call.filter))

    def _unadvertise(self, call: Unadvertise) -> None:
        offer = self._offers.get(call.advertisement)
        if offer is None or offer.ends_after is not None:
            self._emit(Rejected(call, f"there is no advertisement {call.advertisement!r} to take back"))
            return
        offer.ends_after = self._seq
        self._say(messages.ClientUnadvertise(self._session, call.advertisement))

    def _withdraw(self, name: str) -> None:
        """An advertisement has ended: its filter matters only if something is lost."""
        offer = self._offers.pop(name, None)
        if offer is not None and offer.ends_after:
            self._withdrawn.pop(offer.filter.text, None)
            self._withdrawn[offer.filter.text] = offer.ends_after
            forget_oldest(self._withdrawn, WITHDRAWN_MAX)

    def _miss(self, message: messages.Missing) -> None:
        """Some of what was published is lost: say so, and what may have matched."""
        first, last = message.first, min(message.last, self._seq)
        self._confirm(last)
        told = self._losses[first].last if first in self._losses else first - 1
        if last > told:
            self._losses[first] = msgspec.structs.replace(message, last=last)
            told = max(told, message.settled)
            if last > told:
                self._emit(PublicationsLost([(told + 1, last)]))
            self._tell_losses()

    def _tell_losses(self) -> None:
        for first, lost in self._losses.items():
            texts = [offer.filter.text for offer in self._offers.values()]
            texts += [text for text, ends_after in self._withdrawn.items() if ends_after >= first]
            text = " OR ".join(f"({text})" for text in dict.fromkeys(texts))
            is_known = 0 < len(text) <= TEXT_MAX and len(self._withdrawn) < WITHDRAWN_MAX
            self._say(messages.ClientLost(self._session, first, lost.last, lost.settled, text if is_known else "TRUE"))

    def _waiting(self) -> int:
        return self._seq - self._confirmed

    def _publish_many(self, call: PublishMany) -> None:
        tests = [offer.filter.test for offer in self._offers.values() if offer.ends_after is None]
        fits = 1 < len(call.payloads) <= self._options.client_window - self._waiting()
        if not fits or not all(any(test(attributes) for test in tests) for attributes, _ in call.alike):
            self._publish(call.publications())
            return
        run = EventRun(self._name, self._seq + 1, call.payloads, call.alike)
        self._seq = run.last
        self._unconfirmed.append(run)
        self._emit(PublishedMany(run))
        self._send_publications(run)

    def _publish(self, calls: list[Publish]) -> None:
        tests = [offer.filter.test for offer in self._offers.values() if offer.ends_after is None]
        for call in calls:
            reason = ""
            if self._waiting() >= self._options.client_window:
                reason = f"{self._waiting()} publications wait to be confirmed; try later"
            elif not any(test(call.attributes) for test in tests):
                reason = "the event matches none of your advertisements; advertise it first"
            if reason:
                self._emit(Rejected(call, reason))
                continue
            self._seq += 1
            event = Event(self._name, self._seq, call.attributes, call.payload)
            self._unconfirmed.append([event])
            self._emit(Published(event))
            self._send_publications([event])

    def _send_publications(self, events: Events) -> None:
        """Send them, unless an earlier process published these numbers: then they are confirmed."""
        if events[-1].seq > self._admitted:
            self._say(messages.ClientPublish(self._session, events))
        self._confirm(self._admitted)

    # ---- subscriptions ------------------------------------------------------------------------------------

    def _subscribe(self, call: Subscribe) -> None:
        is_taken = call.subscription in self._subscriptions or call.subscription in self._durable
        pattern = self._parse(call, call.subscription, is_taken=is_taken)
        if pattern is None:
            return
        if call.name:
            self._durable.subscribe(call)
        else:
            held = HeldSubscription(call.subscription, pattern, call.since, call.until)
            self._subscriptions[call.subscription] = held
            self._say(held.call(self._session, is_new=True))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        held = self._subscriptions.get(call.subscription)
        is_durable = call.subscription in self._durable
        if (held is None and not is_durable) or (held is not None and held.state is HeldState.ENDING):
            self._emit(Rejected(call, f"there is no subscription {call.subscription!r} to end"))
            return
        if held is not None:
            held.state = HeldState.ENDING
        if is_durable:
            self._durable.unsubscribe(call.subscription)
        elif self._is_attached:
            self._say(messages.ClientUnsubscribe(self._session, call.subscription))

    # ---- for durable subscriptions ------------------------------------------------------------------------

    @property
    def session(self) -> int:
        """The number of the session."""
        return self._session

    def emit(self, effect: Effect) -> None:
        """An effect of a durable subscription."""
        self._effects.append(effect)

    def say(self, message: object) -> None:
        """To the broker, if it has the session."""
        self._say(message)

    def resume(self, call: Subscribe, attachment: Attachment, record: DurableRecord) -> None:
        """Begin a subscription that goes on after what is acknowledged."""
        held = HeldSubscription(call.subscription, parse(call.filter), record.begin, None)
        held.attachment, held.got = attachment, dict(record.got)
        self._subscriptions[call.subscription] = held
        self._say(held.call(self._session, is_new=True))

    def end_resumed(self, subscription: str, reason: str) -> None:
        """A durable subscription is over."""
        held = self._subscriptions.pop(subscription, None)
        if held is not None:
            self._say(messages.ClientUnsubscribe(self._session, subscription))
            self._emit(Ended(subscription, held.last(), reason=reason))

    def stop_resumed(self, subscription: str) -> None:
        """Its last acknowledgement is stored: the broker ends it."""
        if subscription in self._subscriptions:
            self._say(messages.ClientUnsubscribe(self._session, subscription))

    def hand_over(self, event: Event, subscription: str, deliveries: int, *, is_again: bool) -> int:
        """Deliver an event; returns which delivery that is."""
        self._largest = max(self._largest, event.stamp)
        self._count += 1
        self._emit(Deliver(event, subscription, is_again, deliveries))
        return self._count

    def advertise_letters(self, call: Advertise | Unadvertise) -> None:
        """Announce the dead letters of a durable subscription, or take that back."""
        if isinstance(call, Advertise):
            self._advertise(call)
        else:
            self._unadvertise(call)

    def publish_letter(self, call: Publish) -> int:
        """Publish a dead letter; returns its number, or 0 if there is no room now."""
        if self._waiting() >= self._options.client_window:
            return 0
        before = self._seq
        self._publish([call])
        return self._seq if self._seq > before else 0

    def _parse(self, call: Advertise | Subscribe, name: str, *, is_taken: bool) -> Filter | None:
        """The filter of the call; None if the call was rejected."""
        if is_taken:
            self._emit(Rejected(call, f"{name!r} is taken; give it another name"))
            return None
        try:
            check_texts(self._name, (*self._texts(), (name, call.filter)))
            if isinstance(call, Subscribe) and call.since is not None:
                check_readings(self._name, 1 + sum(held.is_replay for held in self._subscriptions.values()))
            return parse(call.filter)
        except (CallError, FilterError) as error:
            self._emit(Rejected(call, str(error)))
            return None

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from ((name, held.filter.text) for name, held in self._subscriptions.items())
        yield from ((name, offer.filter.text) for name, offer in self._offers.items())

    # ---- what is asked of a node --------------------------------------------------------------------------

    def state_size(self) -> Mapping[str, int]:
        """How much the client keeps."""
        return {"subscriptions": len(self._subscriptions), "unsafe": self._waiting()}

    @property
    def window(self) -> int:
        """How many publications may wait to be confirmed."""
        return self._options.client_window

    @property
    def delivery_window(self) -> int:
        """How many deliveries a broker sends ahead of the application."""
        return self._options.delivery_window

    @property
    def is_attached(self) -> bool:
        """Whether a broker has the session, and knows what the client wants."""
        return self._is_attached

    @property
    def broker(self) -> str:
        """The broker that has the session, or is asked for it."""
        return self._broker

    @property
    def standing(self) -> tuple[str, int, int]:
        """The incarnation that has the session, the session, and the number of the last event."""
        home = "" if self._incarnation is None else f"{self._incarnation.broker}/{self._incarnation.number}"
        return home, self._session, self._seq

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Go on, from the start, as a client of the same name in a process that is gone."""
        broker, _, number = home.rpartition("/")
        self._incarnation = Incarnation(broker, int(number)) if broker else None
        self._session, self._is_successor = attempt, True
        self._seq = self._confirmed = self._base = seq
