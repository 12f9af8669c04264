"""The client's side: a leaf of the tree that takes its session along when its broker dies.

It keeps what it published until the broker says that it is safe, and the cut and position of each subscription.
When the connection or the broker is lost it asks its contacts in turn, tells whoever holds its session all of
this (`Attach`), and continues: what it saw already is not delivered again, what it lacks is.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from operator import lt
from typing import Any, assert_never

from gapless.errors import CallError
from gapless.events import Event
from gapless.filters import Filter, FilterError, parse
from gapless.filters.evaluation import Test
from gapless.names import Confirm, ListNames, MoveName
from gapless.protocol import (
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
    CutsVoided,
    Deliver,
    DeliverMany,
    Effect,
    Ended,
    Input,
    Publish,
    Published,
    PublishedMany,
    PublishMany,
    Ready,
    Received,
    Rejected,
    Send,
    SetTimer,
    Skipped,
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)  # fmt: skip
from gapless.protocols.gapless.alike import stretches
from gapless.protocols.gapless.bounds import check_readings, check_texts
from gapless.protocols.gapless.client_messages import (
    Answer,
    Attach,
    Attached,
    Behind,
    ClientAdvertise,
    ClientGot,
    ClientPublish,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
    Cut,
    Delivery,
    Expired,
    Gone,
    Invite,
    NameKept,
    NameLost,
    NameMoved,
    NameOpened,
    NameRefused,
    NamesTold,
    NotYet,
    Reached,
    Redirect,
    Safe,
    Stable,
    SubscriptionProgress,
    Unsubscribed,
)
from gapless.protocols.gapless.messages import Cuts, NameRecord, Ranges
from gapless.protocols.gapless.named import Named
from gapless.protocols.gapless.named_client import CONFIRM, NamedClient
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.ranges import add_range, without
from gapless.protocols.parts.held import Held

__all__ = ["GaplessClient"]

RETRY = "retry"
REDIRECTS_MAX = 3
PATIENCE_MAX = 64


class _Held(Held):
    """A subscription as the client holds it."""

    def __init__(self, name: str, text: str, ready: Ready, since: int, until: int) -> None:
        super().__init__(name)
        self.text = text
        self.ready = ready
        self.since = since
        """If it reads history: all up to this position has come; else -1."""
        self.until = until
        self.has_history = since >= 0
        self._start = since
        self.is_whole = False
        self.is_behind = False
        """Whether it reads history because the client lay behind."""
        self.began = 0
        """Of publishers without a cut, what has a larger stamp is due: they came after the subscription."""
        self.skipped: Ranges = {}
        """What will not come, and the application was told so."""
        self.is_ending = False
        self.named: Named | None = None
        self.reached = since
        """If it is named: all up to this position has come."""

    def is_due(self, event: Event) -> bool:
        """Whether an event that was read again comes from its cut on, or after the position where it began."""
        cut = self.cuts.get(event.publisher)
        if self.has_history or cut is None:
            return event.stamp > (self._start if self.has_history else self.began)
        return event.seq >= cut

    def miss(self, lost: Ranges) -> Ranges:
        """Of what nobody has any more: what is due, has not come, and was not told before."""
        starts = {} if self.has_history else self.cuts
        past: Ranges = {p: [(1, max(self.got.get(p, 0), starts.get(p, 1) - 1))] for p in lost}
        missed = without(without(lost, past), self.skipped)
        for publisher, ranges in missed.items():
            for first, last in ranges:
                add_range(self.skipped, publisher, first, last)
        return missed

    def last(self) -> Cuts:
        """The ending cut, if the subscription ended now."""
        return dict(self.got) if self.has_history else super().last()


class _Offer:
    """An advertisement of what comes from number `first` on; it may go when all up to `leaving_after` is safe."""

    def __init__(self, pattern: Filter, first: int) -> None:
        self.filter = pattern
        self.first = first
        self.is_stable = False
        self.leaving_after: int | None = None


class GaplessClient(ClientNode):
    """A client node of the `gapless` protocol."""

    is_attached: bool = False
    """Whether a broker holds the session, and knows what the client wants."""

    def __init__(self, place: ClientPlace, options: GaplessOptions) -> None:
        self._name = place.name
        self._contacts = place.contacts
        self._options = options
        self._broker = place.broker
        self._home = ""
        self._attempt = 0
        self._heard = 0
        """The last attempt that was answered by `Attached`."""
        self._late = 0
        """The last that was, when another was under way already."""
        self._asked = 0
        self._redirects = 0
        self._patience = 1
        """How many times longer than usual it waits for an answer: longer each time that none came in time, because the
        way may be long, or what it has to tell large."""
        self._received = 0
        self._clock = 0
        """No stamp of what it was delivered is larger."""
        self._delivered = 0
        self._taken = 0
        self._untaken: deque[tuple[int, int]] = deque()
        self._seq = 0
        self._unsafe: deque[Event] = deque()
        self._subscriptions: dict[str, _Held] = {}
        self._advertisements: dict[str, _Offer] = {}
        self._effects: list[Effect] = []
        self._named = NamedClient(
            self._send,
            lambda effect: self._effects.append(effect),
            self._begin_named,
            lambda name, reason: self._end(name, self._subscriptions[name].last(), reason=reason),
        )

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        self._effects = []
        self._handle(item)
        return self._effects

    def _handle(self, item: Input) -> None:
        match item:
            case Received():
                self._receive(item.peer, item.message)
            case Consumed():
                self._on_consumed(item)
            case Publish():
                self._publish((item,))
            case PublishMany():
                self._publish(item.publications)
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
            case Connected():
                self._on_connected(item)
            case Suspected():
                self._on_suspected(item)
            case TimerFired():
                self._on_timer(item)
            case Trusted():
                pass
            case Confirm():
                self._named.confirm(item)
            case ListNames() | MoveName():
                self._named.ask(item)
            case _:
                raise AssertionError(f"no input of a client: {item!r}")

    def state_size(self) -> Mapping[str, int]:
        """How much the client keeps."""
        return {"subscriptions": len(self._subscriptions), "unsafe": len(self._unsafe)}

    @property
    def window(self) -> int:
        """How many publications may wait to become safe."""
        return self._options.client_window

    @property
    def delivery_window(self) -> int:
        """How many deliveries a broker sends ahead of the application."""
        return self._options.delivery_window

    @property
    def broker(self) -> str:
        """The broker that holds the session, or is asked for it."""
        return self._broker

    @property
    def standing(self) -> tuple[str, int, int]:
        """Who holds its session, its attempt, and the number of its last event."""
        return self._home, self._attempt, self._seq

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Before it starts: it goes on as a client of the same name that is no more."""
        self._home, self._attempt, self._seq = home, attempt, seq

    # ---- finding the session ------------------------------------------------------------------------------

    def _attach(self) -> None:
        """Ask the broker that should hold the session."""
        self.is_attached = False
        self._attempt += 1
        self._received = self._delivered - self._taken
        self._untaken = deque([(self._delivered, self._received)])
        for name in [name for name, held in self._subscriptions.items() if held.is_ending]:
            self._end(name, self._subscriptions[name].last())
        brought = [
            SubscriptionProgress(
                name, held.text, dict(held.cuts), dict(held.got), held.is_whole, held.since, held.until, held.is_behind
            )
            for name, held in self._subscriptions.items()
        ]
        offers = {name: (offer.filter.text, offer.first) for name, offer in self._advertisements.items()}
        first = self._unsafe[0].seq if self._unsafe else self._seq + 1
        unsafe = list(self._unsafe)
        self._send(
            Attach(self._attempt, self._home, brought, offers, unsafe, first, self._received, self._clock, self._heard)
        )
        self._set_timer()

    def _set_timer(self) -> None:
        self._effects.append(SetTimer(RETRY, int(self._options.retry_ms * 1000 * self._patience)))

    def _try_next(self) -> None:
        self._asked = (self._asked + 1) % len(self._contacts)
        self._broker = self._contacts[self._asked]
        self._attach()

    def _on_connected(self, item: Connected) -> None:
        if item.peer == self._broker:
            self._attach()

    def _on_suspected(self, item: Suspected) -> None:
        if item.peer == self._broker:
            self._try_next()

    def _on_timer(self, item: TimerFired) -> None:
        if item.key == CONFIRM:
            self._named.tell_gathered()
            return
        self._redirects = 0
        if not self.is_attached:
            self._patience = min(2 * self._patience, PATIENCE_MAX)
            self._try_next()

    def _receive(self, peer: str, message: Answer) -> None:
        if message.attempt != self._attempt or peer != self._broker:
            if isinstance(message, Attached):
                self._on_late_answer(peer, message)
            return
        match message:
            case Delivery():
                self._on_delivery(message)
            case Safe():
                self._on_safe(message)
            case Cut():
                self._on_cut(message)
            case Stable():
                self._on_stable(message)
            case Unsubscribed():
                self._on_unsubscribed(message)
            case Reached():
                self._on_reached(message)
            case Behind():
                self._on_behind(message)
            case Attached():
                self._on_attached(message)
            case NotYet() | Gone():
                self.is_attached = False
                self._patience = 1
                self._set_timer()
            case NameOpened() | NameRefused() | NameKept() | NameLost() | NamesTold() | NameMoved():
                self._named.receive(message)
            case Redirect():
                self._on_redirect(message)
            case Invite():
                self._home = message.home
                self._attach()
            case Expired():
                for name, held in list(self._subscriptions.items()):
                    if held.named is not None:
                        held.since, held.is_behind, held.cuts = held.reached, False, {}
                    elif held.since < 0 or held.is_behind:
                        self._end(name, held.last())
                self._home = ""
                self._attach()
            case _:
                assert_never(message)

    def _on_redirect(self, message: Redirect) -> None:
        """Go there; but if brokers send us in a circle, let some time pass before the next step."""
        self._redirects += 1
        self._broker = message.broker
        if self._redirects <= REDIRECTS_MAX:
            self._attach()

    def _on_late_answer(self, peer: str, message: Attached) -> None:
        """The client has asked elsewhere since. The session is where it was granted: go back there, and stay longer.

        Its smallest story: b9 gives the session back to b8, and b8 answers too late. The client goes on to others, says
        that b9 held its session, and b9 dies. Its heir does not know the session, and takes it for expired.
        """
        if not self.is_attached and message.attempt > max(self._heard, self._late):
            self._late = message.attempt
            self._home = message.home
            self._patience = min(2 * self._patience, PATIENCE_MAX)
            if peer == self._broker:
                self._set_timer()
            else:
                self._broker = peer
                self._attach()

    def _on_attached(self, message: Attached) -> None:
        self.is_attached = True
        self._patience = 1
        self._home = message.home
        self._heard = message.attempt
        self._contacts = tuple(message.contacts)
        self._asked = 0
        for name in message.fresh:
            held = self._subscriptions[name]
            assert not held.got, "a subscription that delivered cannot be unknown to its heir"
            held.is_behind, held.since = False, -1
            if held.cuts:
                self._effects.append(CutsVoided(name))
                held.cuts = {}
        for name, offer in self._advertisements.items():
            if offer.leaving_after is not None:
                self._send(ClientUnadvertise(self._attempt, name))
        self._named.attached(self._attempt)

    def _send(self, message: Any) -> None:
        """To the broker asked last: it comes after the `Attach`, and counts if that is granted."""
        self._effects.append(Send(self._broker, message))

    # ---- calls --------------------------------------------------------------------------------------------

    def _parse(self, call: Advertise | Subscribe, taken: bool, name: str) -> Filter | None:
        if taken:
            self._effects.append(Rejected(call, f"{name!r} is taken; give it another name"))
            return None
        try:
            check_texts(self._name, (*self._texts(), (name, call.filter)))
            if isinstance(call, Subscribe) and call.since >= 0:
                reading = [held for held in self._subscriptions.values() if held.since >= 0 and not held.is_behind]
                check_readings(self._name, 1 + len(reading))
            return parse(call.filter)
        except (CallError, FilterError) as error:
            self._effects.append(Rejected(call, str(error)))
            return None

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from ((name, held.text) for name, held in self._subscriptions.items())
        yield from ((name, offer.filter.text) for name, offer in self._advertisements.items())

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement in self._advertisements, call.advertisement)
        if pattern is not None:
            first = self._seq + 1
            self._advertisements[call.advertisement] = _Offer(pattern, first)
            self._send(ClientAdvertise(self._attempt, call.advertisement, call.filter, first))

    def _unadvertise(self, call: Unadvertise) -> None:
        offer = self._advertisements.get(call.advertisement)
        if offer is None or offer.leaving_after is not None:
            self._effects.append(Rejected(call, f"there is no advertisement {call.advertisement!r} to take back"))
            return
        offer.leaving_after = self._seq
        self._send(ClientUnadvertise(self._attempt, call.advertisement))
        self._drop_left()

    def _drop_left(self) -> None:
        safe = self._unsafe[0].seq - 1 if self._unsafe else self._seq
        for name, offer in list(self._advertisements.items()):
            if offer.leaving_after is not None and offer.leaving_after <= safe:
                del self._advertisements[name]

    def _subscribe(self, call: Subscribe) -> None:
        is_taken = call.subscription in self._subscriptions or call.subscription in self._named
        if self._parse(call, is_taken, call.subscription) is None:
            return
        if call.name:
            reason = self._named.objection(call)
            if reason:
                self._effects.append(Rejected(call, reason))
            else:
                self._named.subscribe(call)
        else:
            held = _Held(call.subscription, call.filter, call.ready, call.since, call.until)
            self._subscriptions[call.subscription] = held
            self._send(ClientSubscribe(self._attempt, call.subscription, call.filter, call.since, call.until))

    def _begin_named(self, call: Subscribe, named: Named, record: NameRecord) -> None:
        """It goes on after what is confirmed."""
        held = _Held(call.subscription, call.filter, call.ready, record.position, 0)
        held.named, held.got = named, dict(record.got)
        self._subscriptions[call.subscription] = held
        self._send(ClientSubscribe(self._attempt, call.subscription, call.filter, record.position))

    def _unsubscribe(self, call: Unsubscribe) -> None:
        held = self._subscriptions.get(call.subscription)
        if call.subscription in self._named and not (held is not None and held.is_ending):
            if not self._named.unsubscribe(call.subscription):
                self._effects.append(Ended(call.subscription, {}))
            elif held is not None:
                held.is_ending = True
        elif held is None or held.is_ending:
            self._effects.append(Rejected(call, f"there is no subscription {call.subscription!r} to end"))
        else:
            held.is_ending = True
            self._send(ClientUnsubscribe(self._attempt, call.subscription))

    def _publish(self, calls: Sequence[Publish]) -> None:
        tests = [offer.filter.test for offer in self._advertisements.values() if offer.leaving_after is None]
        if len(calls) > 1 and self._takes_all(tests, calls):
            self._publish_run(calls)
            return
        events: list[Event] = []
        for call in calls:
            reason = self._refusal(tests, call)
            if reason:
                self._effects.append(Rejected(call, reason))
                continue
            self._seq += 1
            event = Event(self._name, self._seq, call.attributes, call.payload)
            self._unsafe.append(event)
            self._effects.append(Published(event))
            events.append(event)
        if events:
            self._send(ClientPublish(self._attempt, events))

    def _takes_all(self, tests: list[Test], calls: Sequence[Publish]) -> bool:
        """Whether there is room for all of them, and each is advertised."""
        has_room = len(self._unsafe) + len(calls) <= self._options.client_window
        return has_room and all(any(test(attributes) for test in tests) for attributes, _ in stretches(calls))

    def _publish_run(self, calls: Sequence[Publish]) -> None:
        name, first = self._name, self._seq + 1
        self._seq += len(calls)
        events = [Event(name, seq, call.attributes, call.payload) for seq, call in enumerate(calls, first)]
        self._unsafe.extend(events)
        self._effects.append(PublishedMany(events))
        self._send(ClientPublish(self._attempt, events))

    def _refusal(self, tests: list[Test], call: Publish) -> str:
        """Why the event cannot be published; nothing if it can."""
        if len(self._unsafe) >= self._options.client_window:
            return f"{len(self._unsafe)} publications wait to become safe; try later"
        for test in tests:
            if test(call.attributes):
                return ""
        return "the event matches none of your advertisements; advertise it first"

    # ---- answers ------------------------------------------------------------------------------------------

    def _on_delivery(self, message: Delivery) -> None:
        if message.number != self._received + 1:
            return
        self._received += len(message.events)
        known = self._subscriptions
        asked = [(name, known[name], known[name].got) for name in message.subscriptions if name in known]
        is_run = len(message.events) > 1 and len(asked) == 1
        if not is_run or not self._deliver_run(asked[0][1], message.events):
            self._deliver_each(asked, message.events)
        self._untaken.append((self._delivered, self._received))
        self._tell_taken()

    def _deliver_run(self, held: _Held, events: list[Event]) -> bool:
        """Hand the events over as one, if they are of one publisher, in order, and none of them has come before.

        What an heir collected may come twice, or in another order: the client leaves out what it has.
        """
        first, last = events[0], events[-1]
        publisher = first.publisher
        if held.is_behind or held.named is not None or held.got.get(publisher, 0) >= first.seq:
            return False
        seqs = [event.seq for event in events]
        if not all(map(lt, seqs, seqs[1:])) or [event.publisher for event in events].count(publisher) < len(events):
            return False
        held.got[publisher] = last.seq
        self._clock = max(self._clock, last.stamp)
        self._delivered += len(events)
        self._effects.append(DeliverMany(events, held.name))
        return True

    def _deliver_each(self, asked: list[tuple[str, _Held, Cuts]], events: list[Event]) -> None:
        for event in events:
            publisher, seq = event.publisher, event.seq
            if event.stamp > self._clock:
                self._clock = event.stamp
            for name, held, got in asked:
                if got.get(publisher, 0) < seq and (not held.is_behind or self._is_due(held, event)):
                    got[publisher] = seq
                    self._delivered += 1
                    self._effects.append(Deliver(event, name))
                    if held.named is not None:
                        self._named.delivered(held.named, self._delivered, event)

    def _is_due(self, held: _Held, event: Event) -> bool:
        if not held.is_due(event):
            return False
        if event.publisher not in held.cuts and not held.has_history:
            held.cuts[event.publisher] = event.seq
            self._effects.append(CutFixed(held.name, event.publisher, event.seq))
        return True

    def _on_consumed(self, item: Consumed) -> None:
        self._taken = item.count
        self._named.consumed(item.count)
        self._tell_taken()

    def _tell_taken(self) -> None:
        """Tell the broker up to which number the application has taken everything."""
        number = 0
        while self._untaken and self._untaken[0][0] <= self._taken:
            number = self._untaken.popleft()[1]
        if number:
            self._send(ClientGot(self._attempt, number))

    def _on_cut(self, message: Cut) -> None:
        held = self._subscriptions.get(message.subscription)
        if held is None:
            return
        for publisher, cut in message.cuts.items():
            if publisher not in held.cuts:
                held.cuts[publisher] = cut
                if not held.has_history:
                    self._effects.append(CutFixed(message.subscription, publisher, cut))
        if message.is_whole and not held.is_whole:
            held.is_whole, held.began = True, message.began
        if not held.is_active and (message.is_whole or held.ready == "first"):
            held.is_active = True
            self._effects.append(Activated(message.subscription))

    def _on_safe(self, message: Safe) -> None:
        unsafe = self._unsafe
        count = min(len(unsafe), message.seq - unsafe[0].seq + 1) if unsafe else 0
        for _ in range(count):
            unsafe.popleft()
        if count > 0:
            self._effects.append(Confirmed(message.seq))
            self._drop_left()

    def _on_stable(self, message: Stable) -> None:
        offer = self._advertisements.get(message.advertisement)
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._effects.append(Advertised(message.advertisement))

    def _on_unsubscribed(self, message: Unsubscribed) -> None:
        held = self._subscriptions.get(message.subscription)
        if held is not None:
            last = {} if message.last else held.last()
            last |= {publisher: max(seq, held.got.get(publisher, 0)) for publisher, seq in message.last.items()}
            is_complete = held.until != 0 and not held.is_ending
            self._end(message.subscription, {**held.got, **last} if held.has_history else last, is_complete)

    def _on_behind(self, message: Behind) -> None:
        for name in message.subscriptions:
            held = self._subscriptions.get(name)
            if held is not None:
                held.is_behind, held.since = True, message.position
                self._effects.append(CaughtUp(name, message.position, False))

    def _on_reached(self, message: Reached) -> None:
        if message.subscription:
            names = [message.subscription] if message.subscription in self._subscriptions else []
        else:
            names = [name for name, held in self._subscriptions.items() if held.is_behind]
        for name in names:
            held = self._subscriptions[name]
            held.since = -1 if message.is_live else message.position
            held.is_behind = held.is_behind and not message.is_live
            missed = held.miss(message.lost)
            if missed or message.gap:
                self._effects.append(Skipped(name, missed, message.gap))
            if held.named is not None and message.position > held.reached:
                held.reached = message.position
                self._named.reached(held.named, self._delivered, message.position)
            self._effects.append(CaughtUp(name, message.position, message.is_live))

    def _end(self, name: str, last: Cuts, is_complete: bool = False, reason: str = "") -> None:
        del self._subscriptions[name]
        self._named.ended(name)
        self._effects.append(Ended(name, last, is_complete, reason))
