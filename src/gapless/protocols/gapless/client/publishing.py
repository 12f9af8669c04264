"""What a client offers and publishes.

An event has a number, one after the other, and must match an advertisement. It is kept until the broker says that it is
safe: whoever holds the session next is brought it. An advertisement that was taken back is kept for as long as an event
that relies on it is.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain

from gapless.events import Event, EventRun, Events
from gapless.filters import Filter
from gapless.filters.evaluation import Test
from gapless.protocol import (
    Advertise,
    Advertised,
    Confirmed,
    PublicationsLost,
    Publish,
    Published,
    PublishedMany,
    PublishMany,
    Rejected,
    Unadvertise,
)
from gapless.protocols.gapless.client.line import Line
from gapless.protocols.gapless.client_messages import ClientAdvertise, ClientPublish, ClientUnadvertise, Safe, Stable
from gapless.protocols.gapless.messages import Ranges
from gapless.protocols.parts.ranges import add_range, take_away

__all__ = ["Publishing"]


class _Offer:
    """An advertisement of what comes from number `first` on; it may go when all up to `leaving_after` is safe."""

    def __init__(self, pattern: Filter, first: int) -> None:
        self.filter = pattern
        self.first = first
        self.is_stable = False
        self.leaving_after: int | None = None


class Publishing:
    """The advertisements of one client, and its events that are not safe yet."""

    def __init__(self, line: Line, client: str, window: int) -> None:
        """At most `window` events wait to become safe."""
        self.seq = 0
        """The number of the last event."""
        self._unsafe: deque[Events] = deque()
        self._waiting = 0
        self._line = line
        self._client = client
        self._window = window
        self._offers: dict[str, _Offer] = {}
        self._lost: Ranges = {}
        """What it was told to be lost: it hears the same from each broker that it comes to."""

    def __contains__(self, advertisement: str) -> bool:
        return advertisement in self._offers

    def texts(self) -> Iterator[tuple[str, str]]:
        """Names and filters of what is offered."""
        return ((name, offer.filter.text) for name, offer in self._offers.items())

    # ---- the session --------------------------------------------------------------------------------------

    def offers(self) -> dict[str, tuple[str, int]]:
        """By name: the filter, and from which number on it counts."""
        return {name: (offer.filter.text, offer.first) for name, offer in self._offers.items()}

    @property
    def unsafe(self) -> int:
        """How many events are not safe yet."""
        return self._waiting

    def unsafe_events(self) -> list[Event]:
        """Those that are not safe yet."""
        return [*chain.from_iterable(self._unsafe)]

    @property
    def first_unsafe(self) -> int:
        """All before this number is safe."""
        return self.seq + 1 - self._waiting

    def attached(self) -> None:
        """A broker holds the session: say again what may not have been heard."""
        for name, offer in self._offers.items():
            if offer.leaving_after is not None:
                self._line.send(ClientUnadvertise(self._line.attempt, name))

    def lose(self, ranges: list[tuple[int, int]]) -> None:
        """These numbers are lost. Tell the application what it does not know yet."""
        known = list(self._lost.get(self._client, []))
        for first, last in ranges:
            add_range(self._lost, self._client, first, last)
        news = take_away(self._lost.get(self._client, []), known)
        if news:
            self._line.emit(PublicationsLost(news))

    # ---- calls --------------------------------------------------------------------------------------------

    def advertise(self, call: Advertise, pattern: Filter) -> None:
        """Offer it, from the next event on."""
        first = self.seq + 1
        self._offers[call.advertisement] = _Offer(pattern, first)
        self._line.send(ClientAdvertise(self._line.attempt, call.advertisement, call.filter, first))

    def unadvertise(self, call: Unadvertise) -> None:
        """Take it back, behind the last event."""
        offer = self._offers.get(call.advertisement)
        if offer is None or offer.leaving_after is not None:
            self._line.emit(Rejected(call, f"there is no advertisement {call.advertisement!r} to take back"))
            return
        offer.leaving_after = self.seq
        self._line.send(ClientUnadvertise(self._line.attempt, call.advertisement))
        self._drop_left()

    def _drop_left(self) -> None:
        safe = self.first_unsafe - 1
        for name, offer in list(self._offers.items()):
            if offer.leaving_after is not None and offer.leaving_after <= safe:
                del self._offers[name]

    def publish_many(self, call: PublishMany) -> None:
        """Publish them as one, if there is room for all of them, and each is advertised."""
        tests = self._tests()
        is_run = 1 < len(call.payloads) <= self._window - self._waiting
        if not is_run or not all(any(test(attributes) for test in tests) for attributes, _ in call.alike):
            self.publish(call.publications())
            return
        run = EventRun(self._client, self.seq + 1, call.payloads, call.alike)
        self.seq = run.last
        self._keep(run)
        self._line.emit(PublishedMany(run))
        self._line.send(ClientPublish(self._line.attempt, run))

    def _tests(self) -> list[Test]:
        return [offer.filter.test for offer in self._offers.values() if offer.leaving_after is None]

    def publish(self, calls: list[Publish]) -> None:
        """Give each event its number, or say why it cannot be published."""
        tests = self._tests()
        events: list[Event] = []
        for call in calls:
            reason = self._refusal(tests, call)
            if reason:
                self._line.emit(Rejected(call, reason))
                continue
            self.seq += 1
            event = Event(self._client, self.seq, call.attributes, call.payload)
            self._keep([event])
            self._line.emit(Published(event))
            events.append(event)
        if events:
            self._line.send(ClientPublish(self._line.attempt, events))

    def _keep(self, events: Events) -> None:
        self._unsafe.append(events)
        self._waiting += len(events)

    def _refusal(self, tests: list[Test], call: Publish) -> str:
        """Why the event cannot be published; nothing if it can."""
        if self._waiting >= self._window:
            return f"{self._waiting} publications wait to become safe; try later"
        for test in tests:
            if test(call.attributes):
                return ""
        return "the event matches none of your advertisements; advertise it first"

    # ---- answers ------------------------------------------------------------------------------------------

    def safe(self, message: Safe) -> None:
        """All up to a number is safe."""
        count = min(self._waiting, message.seq - self.first_unsafe + 1)
        if count > 0:
            self._drop_safe(count)
            self._line.emit(Confirmed(message.seq))
            self._drop_left()

    def _drop_safe(self, count: int) -> None:
        self._waiting -= count
        while count:
            events = self._unsafe.popleft()
            if len(events) > count:
                self._unsafe.appendleft(events[count:])
            count -= min(count, len(events))

    def stable(self, message: Stable) -> None:
        """Every broker knows the advertisement."""
        offer = self._offers.get(message.advertisement)
        if offer is not None and not offer.is_stable:
            offer.is_stable = True
            self._line.emit(Advertised(message.advertisement))
