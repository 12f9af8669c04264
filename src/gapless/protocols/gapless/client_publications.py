"""The advertisements and publications of a client. It resends unconfirmed publications, and reports which filters lost
events may have matched."""

from collections import deque

import msgspec

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.filters import Filter
from gapless.filters.tables import is_covered
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
from gapless.protocols.gapless import client_messages as messages
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.identities import TIMES_MAX, Timed
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["ClientPublications"]

WITHDRAWN_MAX = 100
"""The maximum number of ended advertisements whose filters are remembered. If there were more, lost events may have
matched anything."""
TEXT_MAX = 10_000


class _Offer:
    def __init__(self, pattern: Filter) -> None:
        self.filter = pattern
        self.is_stable = False
        self.ends_after: int | None = None
        """The number of the last publication that relies on the advertisement, once it is withdrawn."""


class ClientPublications:
    """The publications and advertisements of one client."""

    def __init__(self, connection: ClientConnection, window: int) -> None:
        self._connection = connection
        self._window = window
        self.last = 0
        """The number of the client's last event."""
        self.confirmed = 0
        self.base = 0
        """The number of the client's last event before it attached to the incarnation that has its session."""
        self.settled = 0
        """The number up to which all brokers have processed the publications."""
        self._times: list[Timed] = []
        """The times at which confirmed publications were made, in order."""
        self.is_successor = False
        """Whether an earlier process of this client may have published more events than this one knows. False once a
        broker reports the last number."""
        self._admitted = 0
        """The largest publication number of this client that any broker has admitted, perhaps from an earlier
        process."""
        self._unconfirmed: deque[EventRun] = deque()
        self._offers: dict[str, _Offer] = {}
        self._withdrawn: dict[str, int] = {}
        """The filters of ended advertisements, each with the number of the last publication under it."""
        self._losses: dict[int, messages.Missing] = {}
        """Lost publications, by their first number, until f + 1 brokers have the loss report."""

    @property
    def waiting(self) -> int:
        """Return the number of unconfirmed publications."""
        return self.last - self.confirmed

    def take_over(self, last: int) -> None:
        """Continue the identity of a client whose process has ended."""
        self.last = self.confirmed = self.base = last
        self.is_successor = True

    def ready(self, message: messages.Ready) -> None:
        """Send the broker the advertisements that it does not know."""
        self._admitted, self.is_successor = message.last, False
        self._confirm(message.last)
        if not message.is_resumed:
            self.base = min(message.last, self.last)
        for name, offer in self._offers.items():
            is_needed = offer.ends_after is None or offer.ends_after > self.confirmed
            if is_needed and not (message.is_resumed and offer.is_stable):
                self._connection.say(messages.ClientAdvertise(self._connection.session, name, offer.filter.text))

    def send_again(self, *, is_resumed: bool) -> None:
        """Resend unconfirmed publications, and calls that may not have arrived."""
        connection = self._connection
        if not is_resumed:
            self._report_losses()
        for events in self._unconfirmed:
            connection.say(messages.ClientPublish(connection.session, events))
        for name, offer in list(self._offers.items()):
            if offer.ends_after is not None:
                if not is_resumed and offer.ends_after <= self.confirmed:
                    self._withdraw(name)
                else:
                    connection.say(messages.ClientUnadvertise(connection.session, name))

    def receive(
        self,
        message: messages.Stable | messages.Unadvertised | messages.Confirmed | messages.Missing | messages.LossKept,
    ) -> None:
        """Process an answer of the broker."""
        match message:
            case messages.Stable():
                offer = self._offers.get(message.advertisement)
                if offer is not None and not offer.is_stable:
                    offer.is_stable = True
                    self._connection.emit(Advertised(message.advertisement))
            case messages.Unadvertised():
                self._withdraw(message.advertisement)
            case messages.Confirmed():
                self._confirm(message.last)
                self.settled = max(self.settled, min(message.settled, self.confirmed))
                self._note_time(Timed(message.first, message.last, message.timestamp, message.timestamp))
            case messages.Missing():
                self._miss(message)
            case messages.LossKept():
                self._losses = {first: lost for first, lost in self._losses.items() if lost.last > message.last}

    def _note_time(self, timed: Timed) -> None:
        """Record when events were published. Older records are merged if there are too many."""
        known = self._times
        if timed.last > self.confirmed or (known and timed.first <= known[-1].last):
            return
        known.append(timed)
        if len(known) > TIMES_MAX:
            pairs = zip(known[: TIMES_MAX // 2 : 2], known[1 : TIMES_MAX // 2 : 2], strict=True)
            known[: TIMES_MAX // 2] = [Timed(one.first, other.last, one.begin, other.end) for one, other in pairs]

    def _confirm(self, last: int) -> None:
        last = min(last, self.last)
        if last <= self.confirmed:
            return
        self.confirmed = last
        while self._unconfirmed and self._unconfirmed[0].last <= last:
            self._unconfirmed.popleft()
        if self._unconfirmed and self._unconfirmed[0].first <= last:
            left = self._unconfirmed.popleft().after(last)
            if left is not None:
                self._unconfirmed.appendleft(left)
        self._connection.emit(Confirmed(last))

    # ---- advertisements ------------------------------------------------------------------------------------

    def advertise(self, call: Advertise) -> None:
        """Process an advertisement of the application, or one for the dead letters of a durable subscription."""
        pattern = self._connection.parse(call)
        if pattern is not None:
            self._offers[call.advertisement] = _Offer(pattern)
            self._connection.advertised[call.advertisement] = pattern
            self._connection.say(messages.ClientAdvertise(self._connection.session, call.advertisement, call.filter))

    def unadvertise(self, call: Unadvertise) -> None:
        """Withdraw an advertisement."""
        offer = self._offers.get(call.advertisement)
        if offer is None or offer.ends_after is not None:
            reason = f"there is no advertisement {call.advertisement!r} to withdraw"
            self._connection.emit(Rejected(call, reason))
            return
        offer.ends_after = self.last
        self._connection.say(messages.ClientUnadvertise(self._connection.session, call.advertisement))

    def _withdraw(self, name: str) -> None:
        """Remember the filter of an ended advertisement in case its publications turn out to be lost."""
        offer = self._offers.pop(name, None)
        if offer is None:
            return
        del self._connection.advertised[name]
        if offer.ends_after:
            self._withdrawn.pop(offer.filter.text, None)
            self._withdrawn[offer.filter.text] = offer.ends_after
            forget_oldest(self._withdrawn, WITHDRAWN_MAX)

    # ---- losses --------------------------------------------------------------------------------------------

    def _miss(self, message: messages.Missing) -> None:
        """Report lost publications to the broker, with a filter that they may have matched."""
        first, last = message.first, min(message.last, self.last)
        self._confirm(last)
        settled_to = self._losses[first].last if first in self._losses else first - 1
        if last > settled_to:
            self._losses[first] = msgspec.structs.replace(message, last=last)
            settled_to = max(settled_to, message.settled)
            if last > settled_to:
                self._connection.emit(PublicationsLost([(settled_to + 1, last)]))
            self._report_losses()

    def _report_losses(self) -> None:
        session = self._connection.session
        for first, lost in self._losses.items():
            texts = [offer.filter.text for offer in self._offers.values()]
            texts += [text for text, ends_after in self._withdrawn.items() if ends_after >= first]
            text = " OR ".join(f"({text})" for text in dict.fromkeys(texts))
            is_known = 0 < len(text) <= TEXT_MAX and len(self._withdrawn) < WITHDRAWN_MAX
            filter_ = text if is_known else "TRUE"
            times = tuple(each for each in self._times if each.last >= first and each.first <= lost.last)
            self._connection.say(messages.ClientLost(session, first, lost.last, lost.settled, filter_, times))

    # ---- publications --------------------------------------------------------------------------------------

    def publish_many(self, call: PublishMany) -> None:
        """Publish the events as one run, or one by one if some of them are rejected."""
        offers = [offer.filter for offer in self._offers.values() if offer.ends_after is None]
        if len(call.table) > self._window - self.waiting or not is_covered(call.table, offers):
            self.publish(call.publications())
            return
        run = EventRun(self._connection.client, self.last + 1, call.table)
        self.last = run.last
        self._unconfirmed.append(run)
        self._connection.emit(PublishedMany(run))
        self._send(run)

    def publish(self, calls: list[Publish]) -> None:
        """Publish those events that match an advertisement, as far as the window has room."""
        tests = [offer.filter.test for offer in self._offers.values() if offer.ends_after is None]
        for call in calls:
            reason = ""
            if self.waiting >= self._window:
                reason = f"{self.waiting} publications wait to be confirmed; try later"
            elif not any(test(call.attributes) for test in tests):
                reason = "the event matches none of your advertisements; advertise it first"
            if reason:
                self._connection.emit(Rejected(call, reason))
                continue
            self.last += 1
            event = Event(self._connection.client, self.last, call.attributes, call.payload)
            run = EventRun.of_one(event.publisher, event.seq, event.attributes, event.payload)
            self._unconfirmed.append(run)
            self._connection.emit(Published(event))
            self._send(run)

    def publish_letter(self, call: Publish) -> int:
        """Publish a dead letter; return its number, or 0 if there is no room now."""
        before = self.last
        if self.waiting < self._window:
            self.publish([call])
        return self.last if self.last > before else 0

    def _send(self, events: EventRun) -> None:
        """Send the events, unless a broker admitted these numbers from an earlier process. Confirm the admitted
        ones."""
        if events.last > self._admitted:
            self._connection.say(messages.ClientPublish(self._connection.session, events))
        self._confirm(self._admitted)
