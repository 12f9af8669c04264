"""A client of the `gapless` protocol: feeds each input to the part whose rule it is."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from gapless.errors import CallError
from gapless.filters import Filter, FilterError, parse
from gapless.names import Acknowledge, ListDurables, MoveDurable
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
    Start,
    Subscribe,
    Suspected,
    TimerFired,
    Trusted,
    Unadvertise,
    Unsubscribe,
)  # fmt: skip
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client.named_client import CONFIRM
from gapless.protocols.gapless.client.publishing import Publishing
from gapless.protocols.gapless.client.session_search import Luggage, SessionSearch
from gapless.protocols.gapless.client.subscriptions import Subscriptions
from gapless.protocols.gapless.client_messages import (
    Answer,
    Attached,
    Behind,
    Cut,
    Delivery,
    Expired,
    Gone,
    Invite,
    NameHanded,
    NameKept,
    NameLost,
    NameMoved,
    NameOpened,
    NameRefused,
    NamesTold,
    NotYet,
    Parted,
    Reached,
    Redirect,
    Safe,
    Stable,
    Unsubscribed,
)
from gapless.protocols.gapless.groups.client import GROUP_TIMERS
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.parts.bounds import check_readings, check_texts

__all__ = ["GaplessClient"]


class GaplessClient(ClientNode):
    """A client node of the `gapless` protocol."""

    def __init__(self, place: ClientPlace, options: GaplessOptions) -> None:
        self._name = place.name
        self._options = options
        self._line = Line(place.broker)
        self._search = SessionSearch(self._line, place.name, place.contacts, options.retry_ms * 1000, self._pack)
        self._publishing = Publishing(self._line, place.name, options.client_window)
        self._subscriptions = Subscriptions(self._line, place.name)
        self._deliveries = self._subscriptions.deliveries
        self._named = self._subscriptions.named
        self._groups = self._subscriptions.groups

    # ---- inputs -------------------------------------------------------------------------------------------

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        effects = self._line.effects = []
        self._line.now = now
        self._handle(item)
        return effects

    def _handle(self, item: Input) -> None:
        match item:
            case Received():
                self._receive(item.peer, item.message)
            case Consumed():
                self._deliveries.consumed(item.count)
            case Publish():
                self._publishing.publish([item])
            case PublishMany():
                self._publishing.publish_many(item)
            case Advertise():
                self._advertise(item)
            case Unadvertise():
                self._publishing.unadvertise(item)
            case Subscribe():
                self._subscribe(item)
            case Unsubscribe():
                self._subscriptions.unsubscribe(item)
            case Start():
                self._search.attach()
            case Connected():
                self._search.connected(item.peer)
            case Suspected():
                self._search.suspected(item.peer)
            case TimerFired():
                if item.key == CONFIRM:
                    self._named.tell_gathered()
                elif item.key in GROUP_TIMERS:
                    self._groups.timer_fired(item.key)
                    self._deliveries.tell_taken()
                else:
                    self._search.timed_out()
            case Trusted():
                self._search.trusted(item.peer)
            case Acknowledge():
                (self._groups if item.subscription in self._groups else self._named).confirm(item)
            case ListDurables() | MoveDurable():
                self._named.ask(item)
            case _:
                raise AssertionError(f"no input of a client: {item!r}")

    def _receive(self, peer: str, message: Answer) -> None:
        if not self._search.awaits(peer, message):
            if isinstance(message, Attached):
                self._search.granted_late(peer, message)
            return
        match message:
            case Delivery():
                self._deliveries.receive(message)
            case Safe():
                self._publishing.safe(message)
            case Cut():
                self._subscriptions.cut(message)
            case Stable():
                self._publishing.stable(message)
            case Unsubscribed():
                self._subscriptions.unsubscribed(message)
            case Reached():
                self._subscriptions.reached(message)
            case Behind():
                self._subscriptions.behind(message)
            case Parted():
                self._subscriptions.parted(message)
            case Attached():
                self._search.granted(message)
                self._publishing.lose(message.lost)
                self._subscriptions.begin_anew(message.fresh)
                self._publishing.attached()
                self._named.attached(message.attempt)
                self._groups.attached()
            case NotYet() | Gone():
                self._search.put_off()
            case NameHanded():
                self._groups.receive(message)
                self._deliveries.tell_taken()
            case NameOpened() | NameRefused() | NameKept() | NameLost() if self._groups.has_line(message.subscription):
                self._groups.receive(message)
                self._deliveries.tell_taken()
            case NameOpened() | NameRefused() | NameKept() | NameLost() | NamesTold() | NameMoved():
                self._named.receive(message)
            case Redirect():
                self._search.redirected(message)
            case Invite():
                self._search.begin(message.home)
            case Expired():
                self._subscriptions.expired()
                self._search.begin("")
            case _:
                assert_never(message)

    def _pack(self) -> Luggage:
        """All that whoever holds the session has to know."""
        self._deliveries.begin_anew()
        return Luggage(
            self._subscriptions.progress(),
            self._publishing.offers(),
            self._publishing.unsafe_events(),
            self._publishing.first_unsafe,
            self._deliveries.received,
            self._deliveries.clock,
            dict(self._subscriptions.seen),
        )

    # ---- calls with a filter ------------------------------------------------------------------------------

    def _advertise(self, call: Advertise) -> None:
        pattern = self._parse(call, call.advertisement, is_taken=call.advertisement in self._publishing)
        if pattern is not None:
            self._publishing.advertise(call, pattern)

    def _subscribe(self, call: Subscribe) -> None:
        if self._parse(call, call.subscription, is_taken=call.subscription in self._subscriptions) is not None:
            self._subscriptions.subscribe(call)

    def _parse(self, call: Advertise | Subscribe, name: str, *, is_taken: bool) -> Filter | None:
        """The filter of the call; None if the call was rejected."""
        if is_taken:
            self._line.emit(Rejected(call, f"{name!r} is taken; give it another name"))
            return None
        try:
            check_texts(self._name, (*self._subscriptions.texts(), *self._publishing.texts(), (name, call.filter)))
            if isinstance(call, Subscribe) and call.since is not None:
                check_readings(self._name, 1 + self._subscriptions.reading)
            return parse(call.filter)
        except (CallError, FilterError) as error:
            self._line.emit(Rejected(call, str(error)))
            return None

    # ---- what is asked of a node --------------------------------------------------------------------------

    def state_size(self) -> Mapping[str, int]:
        """How much the client keeps."""
        return {"subscriptions": len(self._subscriptions), "unsafe": self._publishing.unsafe}

    @property
    def window(self) -> int:
        """How many publications may wait to become safe."""
        return self._options.client_window

    @property
    def delivery_window(self) -> int:
        """How many deliveries a broker sends ahead of the application."""
        return self._options.delivery_window

    @property
    def is_attached(self) -> bool:
        """Whether a broker holds the session, and knows what the client wants."""
        return self._search.is_attached

    @property
    def broker(self) -> str:
        """The broker that holds the session, or is asked for it."""
        return self._line.broker

    @property
    def standing(self) -> tuple[str, int, int]:
        """Who holds its session, its attempt, and the number of its last event."""
        return self._search.home, self._line.attempt, self._publishing.seq

    def take_over(self, home: str, attempt: int, seq: int) -> None:
        """Before it starts: it goes on as a client of the same name that is no more."""
        self._search.home, self._line.attempt, self._publishing.seq = home, attempt, seq
